data "queenbridge_route" "example" {
  name = "pushes-to-ci"
}
