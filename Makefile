# The commands of the house. `make run` and `make test` work on a fresh Debian 12 machine.
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)

.PHONY: help deps configure build run test clients generate e2e e2e-build bench fuzz asan-build asan tsan-build tsan format lint plant-bugs mutants clean

help:
	@echo "make run      install what is missing, build, start musterd with its built-in cluster"
	@echo "make test     build and run every test that needs no Kubernetes"
	@echo "make clients  the Python and Go clients, and their examples, against a real musterd"
	@echo "make generate what the clients and docs/reference carry of proto/"
	@echo "make e2e      the end-to-end tests against a real kube-apiserver and kube-scheduler (Go)"
	@echo "make bench    measure, beside the figures of docs/project/performance.md; BENCH_AGAINST=REV: beside an older revision"
	@echo "make asan     make test under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make tsan     core, engine and HTTP tests under ThreadSanitizer"
	@echo "make fuzz     run every fuzz target for FUZZ_SECONDS (30)"
	@echo "make plant-bugs  plant bugs in a copy of the tree and see each one caught"
	@echo "make mutants  MUTANTS (300) random mutants of the core and the engine, and which survive the tests"
	@echo "make format   clang-format, in place      make lint   clang-format, clang-tidy, rules"

deps:
	@tools/install-deps.sh

configure: deps
	@cmake --preset $(PRESET) >build-$(PRESET).log 2>&1 || { cat build-$(PRESET).log; rm -f build-$(PRESET).log; exit 1; }
	@rm -f build-$(PRESET).log

build: configure
	@cmake --build $(BUILD) -j $(JOBS)

# Only what it starts: a newcomer waits for musterd, not for the tests.
run: configure
	@cmake --build $(BUILD) -j $(JOBS) --target musterd musterctl
	@exec $(BUILD)/musterd --demo

test: build
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error
	@grep -h "^small worlds:" $(BUILD)/Testing/Temporary/LastTest.log

clients: build
	@tools/test-clients.sh $(BUILD)/musterd

generate:
	@tools/generate-clients.sh

asan-build:
	@$(MAKE) --no-print-directory build PRESET=clang

# Everything, under AddressSanitizer and UndefinedBehaviorSanitizer, leaks included. One build serves this, `make fuzz`
# and the headers that `make lint` reads. Small worlds are tried to a lesser depth.
asan: asan-build
	@ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 MUSTER_DEPTH=3 \
	  ctest --test-dir build/clang -j $(JOBS) --output-on-failure --no-tests=error

tsan-build:
	@$(MAKE) --no-print-directory configure PRESET=tsan
	@cmake --build build/tsan -j $(JOBS) --target scenario_test engine_test extender_http_test informer_test actuator_test

# The tests with threads: core, engine and HTTP. gRPC itself is left out: Debian's is not built with ThreadSanitizer.
tsan: tsan-build
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp halt_on_error=1" \
	  ctest --test-dir build/tsan --output-on-failure --no-tests=error -L threads

# Nobody steps through Kubernetes with a debugger, and what that would need is a fifth of the time to compile it. Stack
# traces name lines without it.
GO_QUICK := GOFLAGS='-gcflags=all=-dwarf=false -ldflags=-w'
e2e-build: build
	@tools/install-deps.sh --e2e
	@mkdir -p tests/e2e/bin
	@echo "building kube-apiserver, kube-scheduler and etcd, 1.37 and 1.35 (ten minutes each the first time)"
	@cd tests/e2e && $(GO_QUICK) go build -o bin/kube ./cmd/kube
	@cd tests/e2e && $(GO_QUICK) go build -modfile=go-1.35.mod -o bin/kube-1.35 ./cmd/kube

# All of it with the newest Kubernetes, its core with the oldest that is supported: whole gangs, holds, preemption, the lease,
# and what kube-scheduler does beside an extender.
E2E_CORE = TestWholeOrNotAtAll|TestTwoGangsInterleaved|TestWaitTimeExpires|TestNoEvictionForAGangThatCannotFit|TestAGangThatCannotStartDelaysNobody|TestDeletedWhileHeld|TestAsShipped|TestNeighbours|TestPipelining|TestKubeSchedulerCases
e2e: e2e-build
	@cd tests/e2e && $(GO_QUICK) go test -count=1 -timeout 25m -v .
	@echo "once more with 1.35: $(E2E_CORE)"
	@cd tests/e2e && $(GO_QUICK) MUSTER_E2E_KUBE=$(CURDIR)/tests/e2e/bin/kube-1.35 go test -count=1 -timeout 15m -v -run '^($(E2E_CORE))$$' .

bench: build
	@JOBS=$(JOBS) tools/bench.sh $(BUILD) $(BENCH_AGAINST)

FUZZ_SECONDS ?= 30
fuzz: deps
	@cmake --preset clang >/dev/null
	@cmake --build build/clang -j $(JOBS) --target fuzzers
	@tools/fuzz.sh build/clang $(FUZZ_SECONDS)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

# clang-tidy reads how Clang would compile each batch of files: five times as quick as each file alone, as most of its
# time goes into headers. The generated ones must be there. That a batch includes sources is no mistake; that one of ours
# would is found by tests/rules.
lint: deps
	@git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror
	@$(MAKE) --no-print-directory configure PRESET=lint
	@cmake --build build/lint -j $(JOBS) --target generated_headers
	@tools/lint_units.py build/lint | xargs -P $(JOBS) -n 1 clang-tidy -p build/lint --quiet --checks=-bugprone-suspicious-include

# Plants bugs in a copy of the tree, one at a time: each must be caught by a test.
plant-bugs: deps
	@tools/plant_bugs.py

# Random mutants of a copy of the tree, compiled all at once. MUTANTS_ARGS="--seed 7 --files 'state/*'": see the tool.
MUTANTS ?= 300
mutants:
	@tools/install-deps.sh --mutants
	@tools/mutants.py --count $(MUTANTS) $(MUTANTS_ARGS)

clean:
	@rm -rf build tests/e2e/bin tests/e2e/out
