#!/bin/sh
# Asks the running services whether they work.
#
#   GITHUB_WEBHOOK_SECRET=$(cat secrets/github) ./smoke.sh
exec sh "$(dirname "$0")/../smoke.sh" http://127.0.0.1:8080 http://127.0.0.1:8081
