#!/bin/sh
# Uploads the dashboard to a Grafana and reads it back.
#
#   ./smoke.sh http://admin:PASSWORD@127.0.0.1:3000
set -eu
grafana=${1:?usage: $0 URL, with user and password}
{ printf '{"overwrite":true,"dashboard":'; cat "$(dirname "$0")/queenbridge.json"; printf '}'; } |
	curl --silent --show-error --fail --output /dev/null --header 'Content-Type: application/json' --data-binary @- "${grafana%/}/api/dashboards/db"
curl --silent --show-error --fail "${grafana%/}/api/dashboards/uid/queenbridge" | grep -q '"title":"Queen Bridge"'
echo "smoke: the dashboard is at ${grafana##*@}/d/queenbridge"
