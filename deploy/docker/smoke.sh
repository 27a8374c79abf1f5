#!/bin/sh
# Builds the image, runs it with the embedded broker on a read-only root, sends
# it a signed and a forged webhook, and removes the container.
#
#   ENGINE=docker IMAGE=queenbridge PORT=18080 ./smoke.sh
set -eu
cd "$(dirname "$0")/../.."

engine=${ENGINE:-docker} image=${IMAGE:-queenbridge} port=${PORT:-18080}
GITHUB_WEBHOOK_SECRET=smoke-$$ QUEENBRIDGE_ADMIN_TOKEN=smoke-$$
export GITHUB_WEBHOOK_SECRET QUEENBRIDGE_ADMIN_TOKEN

"$engine" build -f deploy/docker/Dockerfile -t "$image" .
container=$("$engine" run --detach --read-only --cap-drop ALL --security-opt no-new-privileges \
	--mount "type=bind,source=$PWD/deploy/lambda,target=/etc/queenbridge,readonly" --mount type=volume,target=/data \
	--env GITHUB_WEBHOOK_SECRET --env QUEENBRIDGE_ADMIN_TOKEN --env QUEENBRIDGE_ADMIN_ADDR=:8081 \
	--env QUEENBRIDGE_QUEEN_EMBEDDED=/data/queen \
	--publish "127.0.0.1:$port:8080" --publish "127.0.0.1:$((port + 1)):8081" "$image")
trap '"$engine" logs "$container" | tail -5; "$engine" rm --force --volumes "$container" >/dev/null' EXIT
for _ in $(seq 30); do
	curl --silent --fail --output /dev/null "http://127.0.0.1:$((port + 1))/readyz" && break
	sleep 1
done
sh deploy/smoke.sh "http://127.0.0.1:$port" "http://127.0.0.1:$((port + 1))"
