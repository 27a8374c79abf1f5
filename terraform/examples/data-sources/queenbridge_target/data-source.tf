data "queenbridge_target" "example" {
  name = "ci"
}
