# Stripe's events call a Lambda function, in batches as SQS would; a function
# that fails for one event of a batch says so, and only that one comes again.
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

variable "function" {
  description = "ARN of the function."
  type        = string
  default     = "arn:aws:lambda:eu-west-1:123456789012:function:stripe-events"
}

resource "queenbridge_source" "stripe" {
  name    = "stripe"
  scheme  = "stripe"
  secrets = ["$${env:STRIPE_SECRET}"]
}

resource "queenbridge_target" "function" {
  name = "stripe-events"
  lambda = {
    function  = var.function
    qualifier = "live"
    timeout   = "65s"
  }
  concurrency = 10
}

resource "queenbridge_route" "stripe" {
  name                 = "stripe"
  queue                = queenbridge_source.stripe.name
  target               = queenbridge_target.function.name
  batch                = { size = 10, window = "1s" }
  report_item_failures = true
  retry                = { max_age = "72h" }
}

output "paste_at_stripe" {
  value = {
    url  = queenbridge_source.stripe.ingress_url
    hint = queenbridge_source.stripe.setup_hint
  }
}
