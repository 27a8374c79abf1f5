data "queenbridge_source" "example" {
  name = "github"
}
