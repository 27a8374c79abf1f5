#!/bin/sh
# Checks the rules and runs their tests; with the URL of a Prometheus, asks
# whether it has loaded them.
#
#   ./smoke.sh [http://127.0.0.1:9090]
set -eu
cd "$(dirname "$0")"
promtool=${PROMTOOL:-promtool}
"$promtool" check rules queenbridge.rules.yaml
"$promtool" test rules queenbridge.rules.test.yaml
if [ -n "${1:-}" ]; then
	curl --silent --show-error --fail "${1%/}/api/v1/rules" | grep -q QueenBridgeNotReady
	echo "smoke: $1 has the rules"
fi
