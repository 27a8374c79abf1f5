# Every event of one queue goes to several functions, each by a route of its own:
# one that is slow or down delays only itself.

resource "queenbridge_target" "this" {
  for_each    = var.functions
  name        = "${var.prefix}${each.key}"
  concurrency = each.value.concurrency
  http = {
    url     = each.value.url
    timeout = each.value.timeout
    headers = each.value.headers
  }
}

resource "queenbridge_route" "this" {
  for_each = var.functions
  name     = "${var.prefix}${each.key}"
  queue    = var.queue
  target   = queenbridge_target.this[each.key].name
  filter   = each.value.filter
  ordering = each.value.ordering
  paused   = each.value.paused
}
