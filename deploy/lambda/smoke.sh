#!/bin/sh
# Sends a signed GitHub ping to a deployed function, and one with a forged
# signature: they must be answered 200 and 401.
#
#   GITHUB_WEBHOOK_SECRET=... ./smoke.sh https://abc.lambda-url.eu-west-1.on.aws
#
# The URL is what stands in front of /in/github: with the stage of an API that
# has one. Needs curl and openssl.
set -eu

url=${1:?usage: GITHUB_WEBHOOK_SECRET=... $0 URL}
secret=${GITHUB_WEBHOOK_SECRET:?set GITHUB_WEBHOOK_SECRET to the secret of the source github}
body='{"zen":"Approachable is better than simple.","text":"café + %2F"}'
# openssl takes the secret as an argument: run this where nobody else looks on.
mac=$(printf '%s' "$body" | openssl dgst -sha256 -mac HMAC -macopt "key:$secret" | sed 's/^.*= *//')
forged=$(printf '%s' "$mac" | tr 0-9a-f 1-9a-f0)

post() { # signature
	curl --silent --show-error --max-time 30 --output /dev/null --write-out '%{http_code}' \
		--header 'Content-Type: application/json' --header 'X-GitHub-Event: ping' \
		--header "X-GitHub-Delivery: smoke-$$-$(date +%s)" --header "X-Hub-Signature-256: sha256=$1" \
		--data-binary "$body" "${url%/}/in/github"
}

expect() { # what, status, signature
	got=$(post "$3")
	if [ "$got" != "$2" ]; then
		echo "smoke: $1 was answered $got, want $2" >&2
		exit 1
	fi
	echo "smoke: $1: $got"
}

expect "a signed webhook" 200 "$mac"
expect "a forged one" 401 "$forged"
