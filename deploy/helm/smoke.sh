#!/bin/sh
# Sends a signed and a forged webhook to an installed release, through
# port-forwards of kubectl. Its configuration needs a source github.
#
#   GITHUB_WEBHOOK_SECRET=... ./smoke.sh RELEASE [NAMESPACE]
set -eu
cd "$(dirname "$0")"

release=${1:?usage: GITHUB_WEBHOOK_SECRET=... $0 RELEASE [NAMESPACE]} namespace=${2:-default}
service=$(kubectl -n "$namespace" get service -o name \
	-l "app.kubernetes.io/instance=$release,app.kubernetes.io/name=queenbridge" | grep -e '-admin$')
kubectl -n "$namespace" rollout status deployment,statefulset -l "app.kubernetes.io/instance=$release" --timeout 2m
kubectl -n "$namespace" port-forward "$service" 18081:8081 >/dev/null &
admin=$!
kubectl -n "$namespace" port-forward "${service%-admin}" 18080:http >/dev/null &
trap 'kill $admin $!' EXIT
for _ in $(seq 30); do
	curl --silent --output /dev/null http://127.0.0.1:18081/livez && curl --silent --output /dev/null http://127.0.0.1:18080/ && break
	sleep 1
done
sh ../smoke.sh http://127.0.0.1:18080 http://127.0.0.1:18081
