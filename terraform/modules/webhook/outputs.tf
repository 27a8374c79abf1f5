output "ingress_url" {
  description = "Where the provider sends its webhooks."
  value       = queenbridge_source.this.ingress_url
}

output "setup_hint" {
  description = "What to paste where at the provider."
  value       = queenbridge_source.this.setup_hint
}

output "queue" {
  description = "Name of the queue, for further routes."
  value       = queenbridge_queue.this.name
}
