output "routes" {
  description = "Names of the routes by function."
  value       = { for name, route in queenbridge_route.this : name => route.name }
}
