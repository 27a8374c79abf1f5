# A provider's webhooks, in a queue of their own, delivered to one function.

resource "queenbridge_queue" "this" {
  name                = var.name
  retention           = var.retention
  deletion_protection = var.deletion_protection
}

resource "queenbridge_source" "this" {
  name                = var.name
  scheme              = var.scheme
  scheme_options      = var.scheme_options
  secrets             = var.secrets
  queue               = queenbridge_queue.this.name
  partition           = var.partition
  deletion_protection = var.deletion_protection
}

resource "queenbridge_target" "this" {
  name    = var.name
  http    = var.http
  lambda  = var.lambda
  auth    = var.auth
  signing = var.signing
}

resource "queenbridge_route" "this" {
  name     = var.name
  queue    = queenbridge_source.this.queue
  target   = queenbridge_target.this.name
  filter   = var.filter
  ordering = var.ordering
  retry    = var.retry
}
