resource "queenbridge_target" "ci" {
  name = "ci"
  http = { url = "https://ci.example.com/hook" }
}

resource "queenbridge_route" "pushes_to_ci" {
  name   = "pushes-to-ci"
  queue  = "github-events"
  target = queenbridge_target.ci.name # the reference: the target is made first
  filter = "event.type == \"push\""
  retry = {
    max_attempts = 12
    backoff      = ["5s", "30s", "2m", "10m"]
  }
}

# A pattern instead of a filter: any document.
resource "queenbridge_route" "main_branch" {
  name   = "main-branch"
  queue  = "github-events"
  target = queenbridge_target.ci.name
  pattern = {
    type = ["push"]
    body = { ref = [{ prefix = "refs/heads/main" }] }
  }
  deletion_protection = true
}
