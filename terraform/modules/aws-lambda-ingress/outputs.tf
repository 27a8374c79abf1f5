output "ingress_base_url" {
  description = "Sources are served at /in/<name> behind it: the argument ingress_base_url of the provider queenbridge."
  value       = trimsuffix(aws_lambda_function_url.this.function_url, "/")
}

output "secret_arns" {
  description = "ARNs of the secrets that were made, by name."
  value       = { for name, s in aws_secretsmanager_secret.this : name => s.arn }
}

output "function_name" {
  description = "Name of the function."
  value       = aws_lambda_function.this.function_name
}

output "role_name" {
  description = "Name of the function's role, for further policies."
  value       = aws_iam_role.this.name
}
