#!/usr/bin/env bash
# Tests the Python and Go clients with a real musterd: tools/test-clients.sh MUSTERD. Prints a line "ok WHAT" or "FAILED
# WHAT" for each part.
set -uo pipefail
cd "$(dirname "$0")/.."
MUSTERD=$(realpath "$1")
export MUSTERD
tools/client-tools.sh || exit 1
venv=$PWD/build/tools/venv/bin
status=0
part() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok $what"; else echo "FAILED $what"; status=1; fi
}
part "generated code and reference are up to date" tools/generate-clients.sh --check
part "python: pip install" "$venv/pip" install -q --no-build-isolation --no-deps --force-reinstall ./clients/python
part "python: types" sh -c "cd clients/python && '$venv/mypy' --config-file pyproject.toml src/muster/_core.py src/muster/_client.py src/muster/_aio.py src/muster/__init__.py examples/orchestrator.py examples/orchestrator_async.py"
part "python: tests" sh -c "cd clients/python && '$venv/pytest' -q tests"
part "go: format" sh -c 'cd clients/go && test -z "$(gofmt -l .)"'
part "go: vet" sh -c 'cd clients/go && go vet ./...'
part "go: tests" sh -c 'cd clients/go && go test -count=1 ./...'
part "traces: format and vet" sh -c 'cd tests/collector && test -z "$(gofmt -l .)" && go vet ./...'
part "traces: an OpenTelemetry collector takes them" sh -c 'cd tests/collector && go test -count=1 ./...'
rm -rf clients/python/build clients/python/src/*.egg-info
exit $status
