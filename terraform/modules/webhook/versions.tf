terraform {
  required_version = ">= 1.9"
  required_providers {
    queenbridge = {
      source = "queenbridge/queenbridge"
    }
  }
}
