#!/bin/sh
# Asks a running bridge whether it works: a signed GitHub ping must be answered
# 200, one with a forged signature 401, and the admin listener must be ready.
#
#   GITHUB_WEBHOOK_SECRET=... ./smoke.sh https://hooks.example.com [http://127.0.0.1:8081]
#
# The first URL is what stands in front of /in/github, where a source of that
# name has the scheme github; the second is the admin listener, if it can be
# reached. Needs curl and openssl.
set -eu

url=${1:?usage: GITHUB_WEBHOOK_SECRET=... $0 URL [ADMIN-URL]}
admin=${2:-}
secret=${GITHUB_WEBHOOK_SECRET:?set GITHUB_WEBHOOK_SECRET to the secret of the source github}
body='{"zen":"Approachable is better than simple.","text":"café + %2F"}'
# openssl takes the secret as an argument: run this where nobody else looks on.
mac=$(printf '%s' "$body" | openssl dgst -sha256 -mac HMAC -macopt "key:$secret" | sed 's/^.*= *//')
forged=$(printf '%s' "$mac" | tr 0-9a-f 1-9a-f0)

status() { curl --silent --show-error --max-time 30 --output /dev/null --write-out '%{http_code}' "$@"; }

post() { # signature
	status --header 'Content-Type: application/json' --header 'X-GitHub-Event: ping' \
		--header "X-GitHub-Delivery: smoke-$$-$(date +%s)" --header "X-Hub-Signature-256: sha256=$1" \
		--data-binary "$body" "${url%/}/in/github"
}

expect() { # what, status, answer
	if [ "$3" != "$2" ]; then
		echo "smoke: $1 was answered $3, want $2" >&2
		exit 1
	fi
	echo "smoke: $1: $3"
}

# A bridge that has just started connects to Queen first.
await() { # URL
	tries=30
	while [ $tries -gt 0 ] && [ "$(status "$1")" != 200 ]; do
		tries=$((tries - 1))
		sleep 1
	done
}

if [ -n "$admin" ]; then
	expect "/livez" 200 "$(status "${admin%/}/livez")"
	await "${admin%/}/readyz"
	expect "/readyz" 200 "$(status "${admin%/}/readyz")"
fi
expect "a signed webhook" 200 "$(post "$mac")"
expect "a forged one" 401 "$(post "$forged")"
