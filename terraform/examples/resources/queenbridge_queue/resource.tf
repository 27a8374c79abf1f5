resource "queenbridge_queue" "github" {
  name         = "github-events"
  retention    = "168h"
  dedup_window = "72h"
}

# Sources and routes refer to it, so that its options are there first.
resource "queenbridge_source" "github" {
  name    = "github"
  scheme  = "github"
  secrets = ["$${env:GITHUB_SECRET}"]
  queue   = queenbridge_queue.github.name
}
