terraform {
  required_providers {
    queenbridge = {
      source = "queenbridge/queenbridge"
    }
  }
}

# Endpoint and token come from QUEENBRIDGE_ENDPOINT and QUEENBRIDGE_TOKEN.
provider "queenbridge" {
  ingress_base_url = "http://127.0.0.1:8080"
}

variable "function_url" {
  type    = string
  default = "http://127.0.0.1:3000/hook"
}

# In no plan and no state; a new version writes it again.
variable "github_secret" {
  type      = string
  ephemeral = true
}

resource "queenbridge_source" "github" {
  name               = "github"
  scheme             = "github"
  secrets_wo         = [var.github_secret]
  secrets_wo_version = 1
}

resource "queenbridge_target" "ci" {
  name = "ci"
  http = { url = var.function_url }
}

resource "queenbridge_route" "pushes_to_ci" {
  name   = "pushes-to-ci"
  queue  = queenbridge_source.github.name
  target = queenbridge_target.ci.name
  filter = "event.type == \"push\""
}

output "paste_at_github" {
  value = "${queenbridge_source.github.setup_hint} URL: ${queenbridge_source.github.ingress_url}"
}
