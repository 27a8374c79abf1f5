#!/usr/bin/env bash
# Writes docs/ from the provider's schema, its examples and the comments of
# package bridge. Usage: docs.sh TFPLUGINDOCS
set -euo pipefail
cd "$(dirname "$0")/.."
generator=$1
terraform=$(tools/terraform.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=$work/terraform.rc

# The schema is asked for here, and not by the generator, which does not know
# OpenTofu.
GOWORK=off CGO_ENABLED=0 go build -o "$work/terraform-provider-queenbridge" .
cat >"$work/terraform.rc" <<EOF
provider_installation {
  dev_overrides { "queenbridge/queenbridge" = "$work" }
  direct {}
}
EOF
cp examples/provider/provider.tf "$work"
# The generator looks for its provider under Terraform's own host.
host=registry.terraform
host=$host.io
"$terraform" -chdir="$work" providers schema -json 2>/dev/null |
	sed "s#[a-z.]*/queenbridge/queenbridge#$host/hashicorp/queenbridge#" >"$work/schema.json"
"$generator" generate --provider-name queenbridge --providers-schema "$work/schema.json" >"$work/log" || { cat "$work/log"; exit 1; }
