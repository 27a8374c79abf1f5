# Queen Bridge. `make` alone lists what there is.
# Every target works on a fresh machine that has Go; what a target needs
# beside Go it says.

# The go command of the machine fetches this toolchain by itself: older ones
# have known holes that an HTTP server calls.
export GOTOOLCHAIN := go1.27.3
export GOFLAGS ?= -buildvcs=false
# Each module is built and tested with the versions of its own go.mod, as it is
# released; go.work joins them for editors.
export GOWORK := off
MODULES := . terraform deploy/test

CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/queenbridge
# Analysers must be built with the toolchain they analyse.
LINT_VERSION := v2.15.0
LINT    := $(CACHE)/golangci-lint-$(LINT_VERSION)-$(GOTOOLCHAIN)
HELM_VERSION := v3.22.0
HELM    := $(CACHE)/helm-$(HELM_VERSION)-$(GOTOOLCHAIN)
GORELEASER_VERSION := v2.15.1
GORELEASER := $(CACHE)/goreleaser-$(GORELEASER_VERSION)-$(GOTOOLCHAIN)
PROMTOOL := $(CACHE)/promtool-$(shell . /etc/os-release 2>/dev/null; echo $$VERSION_CODENAME)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

.DEFAULT_GOAL := help
.PHONY: help build build-provider lambda dev test race lint fuzz verify e2e examples deploy-test release-dry generate bench queen-real queen-real-clean test-api test-real ci clean

help: ## show this list
	@awk 'BEGIN{FS=":.*## "} /^[a-z0-9-]+:.*## /{printf "  \033[36mmake %-17s\033[0m %s\n",$$1,$$2}' $(MAKEFILE_LIST)

build: ## build bin/queenbridge and bin/queenbridge-lambda
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/queenbridge ./cmd/queenbridge
	CGO_ENABLED=0 go build -tags lambda.norpc,nospool -trimpath -ldflags '$(LDFLAGS)' -o bin/queenbridge-lambda ./cmd/queenbridge-lambda

build-provider: ## build bin/terraform-provider-queenbridge
	cd terraform && CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o ../bin/terraform-provider-queenbridge .

lambda: ## build the archives for AWS Lambda, arm64 and amd64 (CONFIG=bridge.yaml to pack)
	$(MAKE) -C deploy/lambda $(if $(CONFIG),CONFIG=$(abspath $(CONFIG)))

dev: build ## run the main job: broker, a signed source, a route and a function that prints what arrives (ARGS="--fail 2")
	./bin/queenbridge dev $(ARGS)

# Many tests wait for timers and leases: more run side by side than there are
# processors.
PARALLEL ?= 4
# The embedded broker is killed that often under load; 100 before a release.
CRASH_ROUNDS ?= 20
test: ## run the tests, with the race detector (CRASH_ROUNDS=100: kill the embedded broker that often)
	DEVBROKER_CRASH_ROUNDS=$(CRASH_ROUNDS) go test -race -parallel $(PARALLEL) -timeout 20m ./...
	QUEENBRIDGE_TEST_GENERATION=2 go test -parallel $(PARALLEL) -timeout 10m ./dispatch
	cd terraform && go test -race -parallel 12 -timeout 15m ./...

race: test ## the same as test

lint: $(LINT) ## gofmt, go vet and golangci-lint
	@gofmt="$$(go env GOROOT)/bin/gofmt"; dirty="$$($$gofmt -l $$(git ls-files '*.go'))"; \
	  test -z "$$dirty" || { echo "not gofmt-clean:"; echo "$$dirty"; exit 1; }
	for m in $(MODULES); do (cd $$m && go vet ./... && $(LINT) run ./...) || exit 1; done

$(LINT):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(CACHE)/bin/golangci-lint $(LINT)

FUZZTIME ?= 10s
FUZZLONG ?= $(FUZZTIME)
fuzz: ## run every fuzz target for FUZZTIME (10s), those that read the internet for FUZZLONG (FUZZ=regexp: only some)
	FUZZTIME=$(FUZZTIME) FUZZLONG=$(FUZZLONG) FUZZ='$(FUZZ)' .ci/fuzz
	cd terraform && for f in FuzzPatch FuzzAnything; do go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) ./internal/shape || exit 1; done

# Made of Go's comments and the provider's schema; needs a terraform of version
# 1.11, else OpenTofu is built once.
TFPLUGINDOCS_VERSION := v0.25.0
TFPLUGINDOCS := $(CACHE)/tfplugindocs-$(TFPLUGINDOCS_VERSION)-$(GOTOOLCHAIN)
generate: $(TFPLUGINDOCS) ## write what is generated: descriptions of fields and documents of the Terraform provider
	go generate ./bridge/...
	cd terraform && tools/docs.sh $(TFPLUGINDOCS)

$(TFPLUGINDOCS):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/bin go install github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs@$(TFPLUGINDOCS_VERSION)
	mv $(CACHE)/bin/tfplugindocs $(TFPLUGINDOCS)

GENERATED := terraform/docs bridge/descriptions.go bridge/adminapi/descriptions.go
verify: ## prove that go.mod and go.sum are tidy and that what is generated is fresh
	for m in $(MODULES); do (cd $$m && go mod tidy -diff && go mod verify) || exit 1; done
	@before=$$(mktemp -d) && trap 'rm -rf $$before' EXIT && cp -r --parents $(GENERATED) $$before && $(MAKE) --no-print-directory generate && \
	  for f in $(GENERATED); do diff -r $$before/$$f $$f || { echo "$$f was not fresh: commit what make generate wrote"; exit 1; }; done

e2e: ## run the end-to-end tests, each bridge a process of its own
	go test -count=1 -parallel $(PARALLEL) -timeout 15m ./cmd/queenbridge/...

examples: build build-provider ## run every example against the built binaries
	go test -race -count=1 -timeout 10m ./examples/...

# The tests of deploy/ are a module of their own: their dependencies stay out
# of the program's. They need root, buildah, busybox-static, shellcheck, openssl
# and systemd-analyze (.ci/run installs what is missing).
deploy-test: export HELM := $(HELM)
deploy-test: export PROMTOOL := $(or $(shell command -v promtool),$(PROMTOOL))
deploy-test: $(HELM) $(if $(shell command -v promtool),,$(PROMTOOL)) ## build and run the image, and hold all of deploy/ against the program (needs root, buildah and more: .ci/run)
	cd deploy/test && go test -count=1 -timeout 15m .
	shellcheck deploy/*.sh deploy/*/*.sh

# Debian's promtool, without installing the server that comes with it.
$(PROMTOOL):
	@mkdir -p $(CACHE)/promtool.tmp
	cd $(CACHE)/promtool.tmp && apt-get download -q prometheus && dpkg -x prometheus_*.deb . && mv usr/bin/promtool $(PROMTOOL)
	rm -r $(CACHE)/promtool.tmp

$(HELM):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/bin go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv $(CACHE)/bin/helm $(HELM)

# The first run builds goreleaser (two minutes) and compiles for six platforms.
release-dry: $(GORELEASER) ## make both releases, of the bridge and the provider, without publishing (needs gpg)
	.ci/release-dry $(GORELEASER)

$(GORELEASER):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/bin go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	mv $(CACHE)/bin/goreleaser $(GORELEASER)

BENCH      ?= .
BENCHCOUNT ?= 1
bench: ## run the benchmarks, each beside its bare baseline (BENCH=regexp BENCHCOUNT=n, for benchstat)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) ./...

REAL := bridge/queen/queentest/real.sh
queen-real: ## build Queen 1.3.0 from its crate (needs cargo; cached) and start it with a private PostgreSQL
	$(REAL) build
	$(REAL) start

queen-real-clean: ## stop that Queen and remove what it left
	$(REAL) stop
	$(REAL) clean

# One package at a time: a test takes the database away from under the broker.
# The end-to-end tests run twice: as they are, and with a part of all requests
# to the broker disturbed (delays, resets, lost answers, refusals, garbage), but
# for those that bring such faults themselves.
FAULTY := Fault|Garbled|DatabaseAway|KilledBroker|NotBelieved|OneNodeOfTwo|ReadySoon|FailingRenewals|NeverAnswered|RefusedByRate|Degraded|PausePropagates|PausedTimers
test-real: ## run the conformance, Python client and end-to-end tests against a real Queen 1.3.0 (needs cargo and python3)
	$(REAL) build
	QUEENBRIDGE_REQUIRE_REAL=1 $(REAL) run sh -ec '\
	  go test -p 1 -count=1 -timeout 20m -run "Real|Python" ./bridge/queen/queentest/... ./bridge/rules ./dispatch/...; \
	  go test -count=1 -parallel $(PARALLEL) -timeout 20m ./cmd/queenbridge/...; \
	  QUEENBRIDGE_TEST_FAULTS=1 go test -count=1 -parallel $(PARALLEL) -timeout 20m -skip "$(FAULTY)" ./cmd/queenbridge; \
	  cd terraform && go test -count=1 -parallel 12 -timeout 15m -run "Flow|Import|Replaced|OldPlan|AtOnce|TwoHundred|RemovedPreset|WriteOnly" ./internal/provider'

test-api: ## let Schemathesis make requests to the admin API from its OpenAPI document (needs python3)
	QUEENBRIDGE_TEST_PYTHON=1 go test -count=1 -timeout 15m -run Python ./bridge/admin

ci: lint verify test examples deploy-test release-dry test-api test-real ## what CI runs
	$(MAKE) fuzz FUZZTIME=5s FUZZLONG=60s

clean: ## remove what was built here
	rm -rf bin dist
