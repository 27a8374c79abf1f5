data "queenbridge_status" "now" {}

check "bridge" {
  assert {
    condition     = data.queenbridge_status.now.ready
    error_message = "The bridge is not ready: ${join("; ", data.queenbridge_status.now.problems)}"
  }
}
