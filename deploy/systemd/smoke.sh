#!/bin/sh
# Asks the installed service whether it works.
#
#   GITHUB_WEBHOOK_SECRET=... ./smoke.sh
set -eu
systemctl is-active queenbridge
exec sh "$(dirname "$0")/../smoke.sh" http://127.0.0.1:8080 http://127.0.0.1:8081
