# Journeyman. `make demo` shows the main job, `make test` proves it. Both need Go only, the rest is found or announced.

CACHE ?= $(or $(JOURNEYMAN_CACHE),/var/tmp/journeyman-cache)
GOLANGCI_VERSION := v2.12.2
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)
# Its cache keeps the absolute paths of findings, so two checkouts must not share one: exclusions by path and nolint would miss.
lint: export GOLANGCI_LINT_CACHE = $(CACHE)/lint/$(subst /,_,$(CURDIR))
DEMO_ARGS ?=
BENCH ?=
BENCH_ARGS ?=

.PHONY: help demo test check ci clients kafka crowd alerts mutants soak fmt lint vet bpmn-lint rules demo-audit bench fuzz build clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## book tours, break things, undo, and audit the result; nothing to set up
	@./bin/journeyman demo --fetch-postgres $(DEMO_ARGS)

test: check ## the tests: tier check, at most 12 minutes

build: ## build bin/journeyman
	@mkdir -p bin
	@go build -o bin/journeyman ./cmd/journeyman

check: setup-postgres vet ## gofmt, vet, and every test with -race on a real PostgreSQL
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "not formatted: run make fmt"; exit 1; }
	go test -race -shuffle=on -timeout 10m ./...
	@echo "tier check left out: golangci-lint, BPMN lint with npm, official clients, rules switched off, the demo's audit (make ci); long random plans (make soak)"

ci: lint bpmn-lint check clients rules mutants demo-audit crowd alerts kafka ## everything that gates a landing, at most 25 minutes
	@echo "tier ci left out: the conformance suite on a Kafka of three nodes, ten-minute storms, all pairs of faults, long random plans (make soak); browser tests (not built yet)"

soak: setup-postgres ## long random plans and storms, all pairs of faults; the transport conformance suite on a Kafka of three nodes
	go test -count=1 -timeout 60m -tags soak ./...
	JOURNEYMAN_CACHE=$(CACHE) go run ./test/kafka -nodes 3 go test -count=1 -timeout 10m -tags kafka ./events/kafka

fmt: ## format
	gofmt -w $$(git ls-files '*.go')

vet: ## go vet
	go vet ./...

lint: $(GOLANGCI) ## golangci-lint, also on the benchmarks' own module
	$(GOLANGCI) run ./...
	cd test/bench && $(GOLANGCI) run ./...

$(GOLANGCI):
	@echo "installing golangci-lint $(GOLANGCI_VERSION) into $(CACHE)/bin (about 3 minutes, once)"
	@mkdir -p $(CACHE)/bin
	cd /tmp && GOBIN=$(CACHE)/bin/tmp.$$$$ && GOBIN=$$GOBIN GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) && mv $$GOBIN/golangci-lint $(GOLANGCI) && rmdir $$GOBIN

bpmn-lint: ## public Camunda 8 lint rules, 8.5 and 8.8, on our models
	JOURNEYMAN_CACHE=$(CACHE) test/lint/bpmn/lint.sh

rules: setup-postgres ## switch each rule of the effect path off and see its test turn red
	test/rules/switch.sh

mutants: ## seed faults into the engine; the conformance suite must notice each
	go test -count=1 -timeout 15m -tags mutants -v ./test/mutants

clients: ## official clients of npm and Maven, FEEL and BPMN validators, against ours
	JOURNEYMAN_CACHE=$(CACHE) go test -count=1 -timeout 15m -tags clients ./test/clients/... ./test/feel/...

kafka: setup-postgres ## transports, relay, inbox, replay, schemas on a real Apache Kafka and registry (Java 17; Maven and npm once)
	JOURNEYMAN_CACHE=$(CACHE) go run ./test/registry go run ./test/kafka go test -count=1 -p 1 -timeout 10m -tags kafka ./events/kafka ./events/inbox ./events/replay ./events/deadletter ./events/schema/codec ./outbox
	go test -count=1 -timeout 10m -tags kafka ./test/kafka/storm

crowd: setup-postgres ## 200 clients and 50 keys while worker processes are killed; a kill at crash points of named elements
	go test -count=1 -timeout 10m -tags crowd -run 'TestCrowd|TestKilled' ./test/faults

alerts: ## the alert rules, by Prometheus' own promtool
	test/promtool.sh

demo-audit: build ## run the demo and check its summary
	test/demo/audit.sh
	test/demo/broken.sh

setup-postgres: ## install Debian's PostgreSQL when no server program is found
	@test/setup-postgres.sh

fuzz: ## each fuzz target for 20 s
	test/fuzz.sh

bench: setup-postgres ## measure, as ratios inside one run; BENCH=worker, relay or engine prints one JSON object, alone all small benchmarks run
ifeq ($(BENCH),)
	go test -run '^$$' -bench . -benchmem ./...
else ifeq ($(BENCH),engine)
	go run ./test/enginebench $(BENCH_ARGS)
else
	cd test/bench && go run ./$(BENCH) $(BENCH_ARGS)
endif

clean: ## remove what builds made
	rm -rf bin
