terraform {
  required_providers {
    queenbridge = {
      source = "queenbridge/queenbridge"
    }
  }
}

# The token comes from QUEENBRIDGE_TOKEN.
provider "queenbridge" {
  endpoint         = "https://bridge.internal.example.com:8081"
  ingress_base_url = "https://hooks.example.com"
}
