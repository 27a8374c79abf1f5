data "queenbridge_schemes" "all" {}

output "what_stripe_wants" {
  value = data.queenbridge_schemes.all.schemes["stripe"].docs
}
