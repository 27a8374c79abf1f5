data "queenbridge_queue" "example" {
  name = "github-events"
}
