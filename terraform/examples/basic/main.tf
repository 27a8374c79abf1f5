# One provider, one function: a webhook posted to the bridge's ingress calls the
# function. Try it against `queenbridge serve` with
#   terraform apply -var function_url=http://127.0.0.1:9000/
terraform {
  required_providers {
    queenbridge = {
      source = "queenbridge/queenbridge"
    }
  }
}

provider "queenbridge" {
  ingress_base_url = "http://127.0.0.1:8080"
}

variable "function_url" {
  description = "The function that is called."
  type        = string
}

module "github" {
  source  = "../../modules/webhook"
  name    = "github"
  scheme  = "github"
  secrets = ["$${env:GITHUB_WEBHOOK_SECRET}"]
  http    = { url = var.function_url }
}

output "url" {
  value = module.github.ingress_url
}

output "what_to_do" {
  value = module.github.setup_hint
}
