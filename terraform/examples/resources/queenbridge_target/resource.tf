resource "queenbridge_target" "ci" {
  name = "ci"
  http = {
    url     = "https://ci.example.com/hook"
    timeout = "30s"
    headers = { X-Team = "ci" }
  }
  auth = {
    type  = "bearer"
    token = "$${file:/run/secrets/ci-token}"
  }
  concurrency = 20
}

resource "queenbridge_target" "thumbnails" {
  name = "thumbnails"
  lambda = {
    function  = "arn:aws:lambda:eu-west-1:123456789012:function:thumbnails"
    qualifier = "live"
  }
}
