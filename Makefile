# The commands of the tree. `make run` and `make test` work on a fresh Debian 12 machine.
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)

.PHONY: help deps test-deps configure build run test check nightly clients generate e2e-build e2e e2e-old e2e-scale bench fuzz asan-build asan asan-doors-build asan-doors tsan-build tsan format lint lint-changed plant-bugs mutants clean

help:
	@echo "make run      install what is missing, build, start musterd with its built-in cluster"
	@echo "make test     build and run every test that needs no Kubernetes; a test that passed is not run again (MUSTER_ONCE=0: all)"
	@echo "make check    everything that CI runs: test, clients, e2e, lint, sanitizers"
	@echo "make nightly  what is too long for every change: all seeds, Kubernetes 1.35, fuzzing, mutants, planted bugs, figures"
	@echo "make clients  the Python and Go clients, and their examples, against a real musterd"
	@echo "make generate code and reference that are generated from proto/"
	@echo "make e2e      the end-to-end tests against a real kube-apiserver and kube-scheduler (Go); e2e-old: with 1.35"
	@echo "make e2e-scale  time and CPU beside native gangs and plain pods, ROUNDS (5) in turn; MUSTER_BESIDE_AGAINST=DIR: beside older builds"
	@echo "make bench    measure, beside the figures of docs/project/performance.md; BENCH_AGAINST=REV or DIR: beside older programs"
	@echo "make asan     make test under AddressSanitizer and UndefinedBehaviorSanitizer; asan-doors: what reads strangers' bytes"
	@echo "make tsan     the engine, HTTP and API server tests under ThreadSanitizer"
	@echo "make fuzz     run every fuzz target for FUZZ_SECONDS (30)"
	@echo "make plant-bugs  plant bugs in a copy of the tree; a test must catch each"
	@echo "make mutants  MUTANTS (300) random mutants of the core and the engine, and which survive the tests"
	@echo "make format   clang-format, in place"
	@echo "make lint     clang-format, clang-tidy, buf, the list of planted bugs; lint-changed: clang-tidy on what changed of late"

# What musterd is built from; what its tests need besides.
deps:
	@tools/install-deps.sh

test-deps:
	@tools/install-deps.sh --test

TESTS ?= ON
configure:
	@cmake --preset $(PRESET) -DMUSTER_TESTS=$(TESTS) >build-$(PRESET).log 2>&1 || { cat build-$(PRESET).log; rm -f build-$(PRESET).log; exit 1; }
	@rm -f build-$(PRESET).log

build: test-deps
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS)

# Only what it starts: neither tests nor what they need.
run: deps
	@$(MAKE) --no-print-directory configure TESTS=$(if $(wildcard $(BUILD)/tests),ON,OFF)
	@cmake --build $(BUILD) -j $(JOBS) --target musterd musterctl
	@exec $(BUILD)/musterd --demo

test: build
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error
	@grep -h "^small worlds:" $(BUILD)/Testing/Temporary/LastTest.log || true
	@echo "not run again, as program, data and settings passed before: $$(grep -c '^not run again' $(BUILD)/Testing/Temporary/LastTest.log) tests"

check:
	@tools/check.sh check

nightly:
	@tools/check.sh nightly

clients: build
	@tools/test-clients.sh $(BUILD)/musterd

generate:
	@tools/generate-clients.sh

asan-build:
	@$(MAKE) --no-print-directory build PRESET=clang

# Everything but what no sanitizer can find (label once). One build serves this and `make fuzz`. Small worlds are explored
# to a lesser depth.
ASAN := ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 MUSTER_DEPTH=3 \
	  ctest --test-dir build/clang -j $(JOBS) --output-on-failure --no-tests=error
asan: asan-build
	@$(ASAN) -LE once

asan-doors-build: test-deps
	@$(MAKE) --no-print-directory configure PRESET=clang
	@cmake --build build/clang -j $(JOBS) --target door_tests

asan-doors: asan-doors-build
	@$(ASAN) -L door

tsan-build: test-deps
	@$(MAKE) --no-print-directory configure PRESET=tsan
	@cmake --build build/tsan -j $(JOBS) --target engine_test extender_http_test informer_test actuator_test

# The tests with threads. gRPC itself is left out: Debian's is not built with ThreadSanitizer.
tsan: tsan-build
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp halt_on_error=1" \
	  ctest --test-dir build/tsan --output-on-failure --no-tests=error -L threads

# Debug data is a fifth of the time to compile Kubernetes; stack traces name lines without it.
GO_QUICK := GOFLAGS='-gcflags=all=-dwarf=false -ldflags=-w'
e2e-build: build
	@tools/install-deps.sh --e2e
	@mkdir -p tests/e2e/bin
	@echo "building kube-apiserver, kube-scheduler and etcd, 1.37 (ten minutes the first time)"
	@cd tests/e2e && $(GO_QUICK) go build -o bin/kube ./cmd/kube

e2e: e2e-build
	@cd tests/e2e && $(GO_QUICK) go test -count=1 -timeout 25m -v .

# The core of it with the oldest Kubernetes that is supported: whole gangs, holds, preemption, the lease, and what
# kube-scheduler does beside an extender.
E2E_CORE = TestWholeOrNotAtAll|TestTwoGangsInterleaved|TestWaitTimeExpires|TestNoEvictionForAGangThatCannotFit|TestAGangThatCannotStartDelaysNoOther|TestDeletedWhileHeld|TestAsShipped|TestPodAffinity|TestFutureReservations|TestKubeSchedulerCases
e2e-old: e2e-build
	@cd tests/e2e && for test in $$(echo '$(E2E_CORE)' | tr '|' ' '); do \
	  grep -q "^func $$test(" *_test.go || { echo "--- FAIL: there is no $$test"; exit 1; }; done
	@echo "building kube-apiserver and kube-scheduler, 1.35 (ten minutes the first time)"
	@cd tests/e2e && $(GO_QUICK) go build -modfile=go-1.35.mod -o bin/kube-1.35 ./cmd/kube
	@cd tests/e2e && $(GO_QUICK) MUSTER_E2E_KUBE=$(CURDIR)/tests/e2e/bin/kube-1.35 go test -count=1 -timeout 15m -v -run '^($(E2E_CORE))$$' .

# Beside native gangs and plain pods, and a storm of half an hour. BESIDE=BesideChurn: that case only.
ROUNDS ?= 5
BESIDE ?= Beside|Storm
e2e-scale: e2e-build
	@cd tests/e2e && $(GO_QUICK) MUSTER_BESIDE_ROUNDS=$(ROUNDS) go test -tags beside -count=1 -timeout 6h -v -run '^Test($(BESIDE))' .

bench: build
	@JOBS=$(JOBS) tools/bench.sh $(BUILD) $(BENCH_AGAINST)

FUZZ_SECONDS ?= 30
fuzz: test-deps
	@cmake --preset clang >/dev/null
	@cmake --build build/clang -j $(JOBS) --target fuzzers
	@tools/fuzz.sh build/clang $(FUZZ_SECONDS)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

# clang-tidy reads how Clang would compile each batch of files: five times as quick as each file alone, as most of its
# time goes into headers. The generated ones must be there. That a batch includes sources is no mistake; that one of ours
# would is found by tests/rules.
lint: lint-changed
	@tools/install-deps.sh --mutants
	@tools/plant_bugs.py --check --jobs $(JOBS)

# Without LINT_SINCE, clang-tidy reads every batch; with it, those of sources and headers that changed since that commit.
LINT_SINCE ?=
lint-changed: test-deps
	@git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror
	@$(MAKE) --no-print-directory configure PRESET=lint
	@cmake --build build/lint -j $(JOBS) --target generated_headers
	@tools/lint_units.py build/lint $(LINT_SINCE) >build/lint/units
	@xargs -r -P $(JOBS) -n 1 clang-tidy -p build/lint --quiet --checks=-bugprone-suspicious-include <build/lint/units
	@tools/lint-proto.sh

# Bugs that break each rule of the specification, in a copy of the tree, compiled all at once: a test must catch each.
plant-bugs: test-deps
	@tools/install-deps.sh --mutants
	@tools/plant_bugs.py --rules
	@tools/plant_bugs.py --jobs $(JOBS)

# Random mutants of a copy of the tree, compiled all at once. MUTANTS_ARGS="--seed 7 --files 'state/*'": see the tool.
MUTANTS ?= 300
mutants: test-deps
	@tools/install-deps.sh --mutants
	@tools/mutants.py --count $(MUTANTS) $(MUTANTS_ARGS)

clean:
	@rm -rf build tests/e2e/bin tests/e2e/out
