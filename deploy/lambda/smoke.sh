#!/bin/sh
# Sends a signed GitHub ping to a deployed function, and one with a forged
# signature: they must be answered 200 and 401.
#
#   GITHUB_WEBHOOK_SECRET=... ./smoke.sh https://abc.lambda-url.eu-west-1.on.aws
#
# The URL is what stands in front of /in/github: with the stage of an API that
# has one. Needs curl and openssl.
exec sh "$(dirname "$0")/../smoke.sh" "${1:?usage: GITHUB_WEBHOOK_SECRET=... $0 URL}"
