# The webhooks of a GitHub organization, in a queue; pushes go to CI in the order
# of each repository, everything goes to an audit log.
terraform {
  required_providers {
    queenbridge = {
      source = "queenbridge/queenbridge"
    }
  }
}

provider "queenbridge" {
  ingress_base_url = "https://hooks.example.com"
}

variable "webhook_secret" {
  description = "The secret of the organization's webhook."
  type        = string
  ephemeral   = true
}

variable "webhook_secret_version" {
  description = "Raise it together with a new secret."
  type        = number
  default     = 1
}

resource "queenbridge_queue" "github" {
  name                = "github-events"
  retention           = "336h"
  deletion_protection = true
}

resource "queenbridge_source" "github" {
  name               = "github"
  scheme             = "github"
  secrets_wo         = [var.webhook_secret]
  secrets_wo_version = var.webhook_secret_version
  queue              = queenbridge_queue.github.name
  partition          = "body:repository.full_name"
}

resource "queenbridge_target" "ci" {
  name = "ci"
  http = {
    url     = "https://ci.example.com/hook"
    timeout = "20s"
  }
  signing = { secrets = ["$${env:CI_SIGNING_SECRET}"] }
}

resource "queenbridge_route" "pushes_to_ci" {
  name     = "pushes-to-ci"
  queue    = queenbridge_source.github.queue
  target   = queenbridge_target.ci.name
  filter   = "event.type == \"push\""
  ordering = "partition"
}

module "everything" {
  source = "../../modules/fanout"
  queue  = queenbridge_source.github.queue
  functions = {
    audit = { url = "https://audit.example.com/github" }
    chat = {
      url    = "https://chat.example.com/github"
      filter = "event.type in [\"issues\", \"pull_request\"]"
    }
  }
}

# With GitHub's own provider this is the webhook's configuration:
#   resource "github_organization_webhook" "bridge" {
#     events = ["*"]
#     configuration {
#       url          = queenbridge_source.github.ingress_url
#       content_type = "json"
#       secret       = ...
#     }
#   }
output "paste_at_github" {
  value = {
    url  = queenbridge_source.github.ingress_url
    hint = queenbridge_source.github.setup_hint
  }
}
