variable "queue" {
  description = "The queue whose events every function gets."
  type        = string
}

variable "functions" {
  description = "The functions by name. Each is called, retried and paused by itself."
  type = map(object({
    url         = string
    timeout     = optional(string)
    headers     = optional(map(string))
    filter      = optional(string)
    ordering    = optional(string)
    concurrency = optional(number)
    paused      = optional(bool)
  }))
}

variable "prefix" {
  description = "Goes in front of the names of targets and routes."
  type        = string
  default     = ""
}
