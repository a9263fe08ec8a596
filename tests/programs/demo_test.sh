#!/usr/bin/env bash
# The steps of a new user: musterd --demo, then musterctl (SPEC S-4, S-5). demo_test.sh MUSTERD MUSTERCTL
set -euo pipefail
musterd=$1
musterctl=$2
log=$(mktemp)
trap 'kill "$pid" 2>/dev/null || true; rm -f "$log"' EXIT
"$musterd" --demo >"$log" 2>&1 &
pid=$!
for _ in $(seq 100); do grep -q 'Ctrl-C ends it' "$log" && break; sleep 0.1; done
expect() { # expect TEXT COMMAND...
  local text=$1
  shift
  local out
  out=$("$@" 2>&1) || true
  grep -qF -- "$text" <<<"$out" || { echo "expected \"$text\" from: $*"; echo "$out"; exit 1; }
}
expect 'bind   train-3 on' cat "$log"
expect '-> bound' cat "$log"
expect 'room for 1 of 3 members' "$musterctl" explain gang large
expect '"code": "REASON_CODE_NO_ROOM"' "$musterctl" get gang large -o json
expect 'phase: PHASE_RUNNING' "$musterctl" get gang default/train -o yaml
expect 'train-2' "$musterctl" describe gang train
expect 'nvidia.com/gpu' "$musterctl" get nodes
expect 'there is no gang default/nobody' "$musterctl" get gang nobody
expect 'muster_decisions_total{outcome="bound",verb="bind"} 4' curl -s http://127.0.0.1:9090/metrics
expect 'muster_refused_facts_total{kind="node"} 0' curl -s http://127.0.0.1:9090/metrics
expect 'ok' curl -s http://127.0.0.1:9090/readyz

# Prometheus' own linter: base units, _total for counters, a help text for each metric. Without it, the test fails.
promtool=$(command -v promtool || true)
[ -n "$promtool" ] || promtool="$(dirname "$0")/../../build/tools/promtool"
[ -x "$promtool" ] || { echo "promtool is missing: run tools/install-deps.sh --test"; exit 1; }
metrics=$(curl -s http://127.0.0.1:9090/metrics)
[ "$(grep -c '^# TYPE muster_' <<<"$metrics")" -ge 20 ] || { echo "too few metrics to check: $metrics"; exit 1; }
found=$("$promtool" check metrics <<<"$metrics" 2>&1) || { echo "promtool check metrics: $found"; exit 1; }
[ -z "$found" ] || { echo "promtool check metrics: $found"; exit 1; }
watched=$(mktemp)
"$musterctl" watch gangs >"$watched" &
watcher=$!
for _ in $(seq 50); do grep -q 'large' "$watched" && break; sleep 0.1; done
kill "$watcher"
expect 'default/large  PreScheduling  0/3' cat "$watched"
rm -f "$watched"
kill -TERM "$pid"
wait "$pid" || { echo "musterd did not stop cleanly"; exit 1; }
