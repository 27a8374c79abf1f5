variable "name" {
  description = "Name of the source, queue, target and route. Webhooks arrive at /in/<name>."
  type        = string
}

variable "scheme" {
  description = "How the provider proves itself: a preset such as github, or a generic verifier."
  type        = string
}

variable "scheme_options" {
  description = "Options of the scheme."
  type        = any
  default     = null
}

variable "secrets" {
  description = "Secrets, newest first, better as references ($${env:NAME}); null for schemes without."
  type        = list(string)
  default     = null
  sensitive   = true
}

variable "http" {
  description = "The HTTP endpoint that is called. Exactly one of http and lambda."
  type = object({
    url     = string
    method  = optional(string)
    timeout = optional(string)
    headers = optional(map(string))
  })
  default = null
}

variable "lambda" {
  description = "The Lambda function that is called. Exactly one of http and lambda."
  type = object({
    function    = string
    qualifier   = optional(string)
    region      = optional(string)
    assume_role = optional(string)
    invoke      = optional(string)
    payload     = optional(string)
    timeout     = optional(string)
  })
  default = null
}

variable "auth" {
  description = "Credential of the calls, as the argument auth of queenbridge_target; null: none."
  type        = any
  default     = null
  sensitive   = true
}

variable "signing" {
  description = "How the calls are signed, as the argument signing of queenbridge_target; null: not at all."
  type        = any
  default     = null
  sensitive   = true
}

variable "filter" {
  description = "CEL expression of the events that are wanted; null: all."
  type        = string
  default     = null
}

variable "partition" {
  description = "Value whose events stay in order, such as body:repository.full_name; null: spread over lanes."
  type        = string
  default     = null
}

variable "ordering" {
  description = "none, or partition: a failing event delays its partition."
  type        = string
  default     = null
}

variable "retry" {
  description = "The retry policy; null: the bridge's."
  type = object({
    max_attempts = optional(number)
    max_age      = optional(string)
    backoff      = optional(list(string))
    jitter       = optional(string)
  })
  default = null
}

variable "retention" {
  description = "How long events are kept; null: the bridge's default, 168h."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "Refuse to destroy the source and the queue's options."
  type        = bool
  default     = false
}
