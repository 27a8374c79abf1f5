#!/usr/bin/env bash
# Prints the path of a terraform that is new enough for write-only arguments:
# $QUEENBRIDGE_TERRAFORM, the terraform or tofu on the PATH, or else OpenTofu,
# which is built once from the Go module proxy (3 minutes) and kept in the cache.
set -euo pipefail
cd "$(dirname "$0")"
least=1.11.0

fits() { # PATH: is it there and new enough
	local bin version
	bin=$(command -v "$1") || return 1
	version=$(CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null "$bin" version -json | sed -n 's/.*"terraform_version": *"\([0-9.]*\).*/\1/p')
	[ "$(printf '%s\n' "$least" "$version" | sort -V | head -1)" = "$least" ] && echo "$bin"
}

for candidate in ${QUEENBRIDGE_TERRAFORM:+"$QUEENBRIDGE_TERRAFORM"} terraform tofu; do
	if fits "$candidate"; then exit; fi
	if [ "$candidate" = "${QUEENBRIDGE_TERRAFORM:-}" ]; then
		echo "QUEENBRIDGE_TERRAFORM=$candidate is no terraform of version $least or newer" >&2
		exit 1
	fi
done

version=$(sed -n 's#.*github.com/opentofu/opentofu v\([^ ]*\).*#\1#p' tofu/go.mod | head -1)
tofu=${XDG_CACHE_HOME:-$HOME/.cache}/queenbridge/opentofu-$version/tofu
if [ ! -x "$tofu" ]; then
	echo "no terraform on the PATH: building OpenTofu $version, once" >&2
	mkdir -p "$(dirname "$tofu")"
	(cd tofu && GOTOOLCHAIN=${GOTOOLCHAIN:-go1.27.3} GOWORK=off CGO_ENABLED=0 \
		go build -trimpath -ldflags '-s -w' -o "$tofu.$$" github.com/opentofu/opentofu/cmd/tofu >&2)
	mv "$tofu.$$" "$tofu"
fi
echo "$tofu"
