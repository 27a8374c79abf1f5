variable "name" {
  description = "Name of the function, its role and its log group."
  type        = string
  default     = "queenbridge-ingress"
}

variable "archive" {
  description = "The archive that `make lambda CONFIG=bridge.yaml` built, for this architecture. It holds the configuration."
  type        = string
}

variable "architecture" {
  description = "arm64 or x86_64."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "Must be arm64 or x86_64."
  }
}

variable "queen_urls" {
  description = "Where Queen is."
  type        = list(string)

  validation {
    condition     = length(var.queen_urls) > 0
    error_message = "At least one URL is needed."
  }
}

variable "environment" {
  description = "More environment variables of the function, such as QUEENBRIDGE_LOG_LEVEL. Secrets do not belong here: whoever may read the function's settings reads them."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Secrets to make in Secrets Manager, by name. Their values are put there by other means; the configuration refers to them as $${aws-secretsmanager:ARN#KEY}."
  type        = set(string)
  default     = []
}

variable "secret_arns" {
  description = "ARNs of existing secrets that the configuration refers to."
  type        = list(string)
  default     = []
}

variable "parameter_arns" {
  description = "ARNs of parameters of the Parameter Store that the configuration refers to."
  type        = list(string)
  default     = []
}

variable "kms_key_arns" {
  description = "ARNs of own keys that those secrets and parameters are encrypted under."
  type        = list(string)
  default     = []
}

variable "vpc" {
  description = "Subnets and security groups from which Queen is reached; null: from outside any VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null
}

variable "memory_size" {
  description = "Memory of the function in MB."
  type        = number
  default     = 256
}

variable "timeout" {
  description = "Timeout of the function in seconds: more than the bridge's enqueue_timeout."
  type        = number
  default     = 10
}

variable "reserved_concurrency" {
  description = "Most processes at once; -1: no bound of its own."
  type        = number
  default     = -1
}

variable "log_retention_days" {
  description = "How long the log is kept."
  type        = number
  default     = 30
}
