# A secret that is in no plan and no state. Another version writes it again.
variable "github_secret" {
  type      = string
  ephemeral = true
}

resource "queenbridge_source" "github" {
  name               = "github"
  scheme             = "github"
  secrets_wo         = [var.github_secret]
  secrets_wo_version = 1
  queue              = "github-events"
  partition          = "body:repository.full_name"
}

# A secret that the bridge reads from its own environment.
resource "queenbridge_source" "stripe" {
  name    = "stripe"
  scheme  = "stripe"
  secrets = ["$${env:STRIPE_SECRET}"]
}

output "paste_at_github" {
  value = "${queenbridge_source.github.setup_hint} URL: ${queenbridge_source.github.ingress_url}"
}
