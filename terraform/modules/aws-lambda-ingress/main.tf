# The ingress of Queen Bridge as a Lambda function with an URL of its own. Its
# sources are those of the configuration in the archive; targets and routes are
# for the bridge that consumes the queues.

locals {
  secret_arns = concat(var.secret_arns, [for s in aws_secretsmanager_secret.this : s.arn])
}

resource "aws_secretsmanager_secret" "this" {
  for_each = var.secrets
  name     = "${var.name}/${each.key}"
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "this" {
  name               = var.name
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy_attachment" "log" {
  role       = aws_iam_role.this.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/${var.vpc == null ? "AWSLambdaBasicExecutionRole" : "AWSLambdaVPCAccessExecutionRole"}"
}

data "aws_iam_policy_document" "secrets" {
  dynamic "statement" {
    for_each = length(local.secret_arns) > 0 ? [local.secret_arns] : []
    content {
      actions   = ["secretsmanager:GetSecretValue"]
      resources = statement.value
    }
  }
  dynamic "statement" {
    for_each = length(var.parameter_arns) > 0 ? [var.parameter_arns] : []
    content {
      actions   = ["ssm:GetParameter"]
      resources = statement.value
    }
  }
  dynamic "statement" {
    for_each = length(var.kms_key_arns) > 0 ? [var.kms_key_arns] : []
    content {
      actions   = ["kms:Decrypt"]
      resources = statement.value
    }
  }
}

resource "aws_iam_role_policy" "secrets" {
  count  = length(var.secret_arns) + length(var.secrets) + length(var.parameter_arns) > 0 ? 1 : 0
  name   = "secrets"
  role   = aws_iam_role.this.id
  policy = data.aws_iam_policy_document.secrets.json
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
}

resource "aws_lambda_function" "this" {
  function_name                  = var.name
  role                           = aws_iam_role.this.arn
  runtime                        = "provided.al2023"
  handler                        = "bootstrap"
  architectures                  = [var.architecture]
  filename                       = var.archive
  source_code_hash               = filebase64sha256(var.archive)
  memory_size                    = var.memory_size
  timeout                        = var.timeout
  reserved_concurrent_executions = var.reserved_concurrency

  environment {
    variables = merge(var.environment, { QUEENBRIDGE_QUEEN_URLS = join(",", var.queen_urls) })
  }

  dynamic "vpc_config" {
    for_each = var.vpc == null ? [] : [var.vpc]
    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  depends_on = [aws_cloudwatch_log_group.this, aws_iam_role_policy_attachment.log, aws_iam_role_policy.secrets]
}

# The signature of a webhook is its authentication. AWS's provider adds the
# permission to call the URL; since October 2025 calling the function through it
# needs one, too. Nobody may call the function past the URL: such a caller could
# name any source address.
resource "aws_lambda_function_url" "this" {
  function_name      = aws_lambda_function.this.function_name
  authorization_type = "NONE"
  invoke_mode        = "BUFFERED"
}

resource "aws_lambda_permission" "invoke" {
  statement_id             = "InvokeThroughURL"
  action                   = "lambda:InvokeFunction"
  function_name            = aws_lambda_function.this.function_name
  principal                = "*"
  invoked_via_function_url = true
}
