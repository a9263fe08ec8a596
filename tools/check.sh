#!/usr/bin/env bash
# Everything that must hold, in two tiers: tools/check.sh check | nightly
#
# check runs on every change, in minutes; nightly has what is long: every seed, all sanitizers and clang-tidy on everything,
# the older Kubernetes, fuzzing, mutants, planted bugs and the figures. Ends with the CPU minutes of each suite beside its budget and
# one line that sums every suite.
set -uo pipefail
cd "$(dirname "$0")/.."
tier=${1:-}
case $tier in check | nightly) ;; *) sed -n '2,6p' "$0"; exit 2 ;; esac
export CCACHE_DIR="${CCACHE_DIR:-$HOME/.cache/ccache-muster}" CCACHE_MAXSIZE=8G
# The cache serves every clone of the repository, whatever its path.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
passed=0
failed=0
logs=$(mktemp -d)

# CPU minutes, from nothing: what the suite builds included. A suite that takes more than half as much again fails. Wall
# time depends on what else the machine does: more of it than MOST_WALL minutes in all is a warning.
if [ "$tier" = check ]; then
  declare -A budget=([test]=30 [clients]=4 [e2e]=36 [lint]=25 [asan]=10) # lint: with the sanitizers' build behind it
  MOST_WALL=35
else
  declare -A budget=([test]=60 [lint]=40 [e2e-old]=30 [e2e-scale]=120 [asan]=60 [tsan]=15 [fuzz]=70 [mutants]=120 [plant-bugs]=90 [bench]=30)
  MOST_WALL=360
fi
duration() { echo "$(($1 / 60)) min $(($1 % 60)) s"; }
summary=()

# The same work takes up to twice its CPU time when others use the machine. So a fixed piece of compiling is timed on all
# cores before and after each suite, and a budget grows by as much as it takes longer than on a quiet machine.
QUIET_MS=3700 # of CPU for one copy
slowness() { # in percent of QUIET_MS, at least 100
  local TIMEFORMAT='%U %S'
  { time ( for _ in $(seq "$(nproc)"); do
    c++ -std=c++20 -O2 -x c++ -c -o /dev/null - <<<'#include <regex>
      bool Match(const char* text) { return std::regex_match(text, std::regex("a+b")); }' &
  done; wait ); } 2>&1 | tail -n 1 | awk -v cores="$(nproc)" -v quiet="$QUIET_MS" '{p = ($1 + $2) * 100000 / cores / quiet; printf "%d", (p > 100 ? p : 100)}'
}

# suite NAME COUNTER COMMAND...: runs it and adds what COUNTER finds in its output. A suite that fails without a counted
# failure counts as one, and so does a suite in which no test ran or that took far more than its budget.
suite() {
  local name=$1 counter=$2
  shift 2
  local log="$logs/$name.log" start=$SECONDS status=0 minutes=${budget[$name]}
  echo "== $name (budget $minutes CPU minutes): $*"
  TIMEFORMAT='%U %S'
  { time "$@" >"$log" 2>&1 || status=$?; } 2>"$logs/$name.time"
  local p=0 f=0 cpu
  cpu=$(tail -n 1 "$logs/$name.time" | awk '{printf "%d", $1 + $2}')
  read -r p f < <("$counter" "$log")
  if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
  if [ "$status" -eq 0 ] && [ "$p" -eq 0 ]; then
    echo "    no test ran in $name: that is a failure"
    f=$((f + 1))
  fi
  local slow=$percent
  percent=$(slowness)
  [ "$slow" -gt "$percent" ] || slow=$percent
  if [ "$cpu" -gt $((minutes * 90 * slow / 100)) ]; then
    echo "    $name took $(duration "$cpu") of CPU; at most 1.5 times its budget of $minutes min, on a machine that takes $slow% of its time when quiet"
    f=$((f + 1))
  fi
  if [ "$f" -ne 0 ]; then
    grep -nE 'error:|FAILED|: Failure$|--- FAIL' "$log" | head -n 20
    tail -n 40 "$log"
  fi
  grep -E '^(FIGURE|longest|small worlds:|skipped)' "$log" || true
  local again
  again=$(grep -c 'not run again' "$log")
  [ "$again" = 0 ] || echo "    $again tests were not run again: program, data and settings passed before"
  echo "== $name: $(duration "$cpu") of CPU (the machine takes $slow% of its time when quiet), $(duration $((SECONDS - start))) of time; $p passed, $f failed"
  summary+=("$(printf '%-10s %6d passed %4d failed %15s CPU of %3d min' "$name" "$p" "$f" "$(duration "$cpu")" "$minutes")")
  passed=$((passed + p))
  failed=$((failed + f))
}
count_ctest() { echo "$(grep -cE '^ *[0-9]+/[0-9]+ Test .* Passed ' "$1") $(grep -cE '^ *[0-9]+/[0-9]+ Test .*\*\*\*' "$1")"; }
count_go() { echo "$(grep -cE '^ *--- PASS' "$1") $(grep -cE '^ *--- FAIL' "$1")"; }
# A tool that lists what it finds counts as one case.
count_one() { if grep -qE 'error:|\*\*\*' "$1"; then echo "0 1"; else echo "1 0"; fi; }
count_clients() { echo "$(grep -c '^ok ..*: \|^ok generated' "$1") $(grep -c '^FAILED ' "$1")"; }
count_fuzz() { echo "$(grep -c '^ok ' "$1") $(grep -c 'SUMMARY: ' "$1")"; }

if ! tools/install-deps.sh --test; then
  echo "a required tool could not be installed"
  echo "0 passed, 1 failed"
  exit 1
fi
percent=$(slowness)
if [ "$tier" = check ]; then
  # A part of the seeds, and small worlds one step less deep: three quarters of the time of all tests went into these.
  MUSTER_SHARE=2 MUSTER_DEPTH=4 suite test count_ctest make test
  # The end-to-end tests and the clients wait for answers half of the time: the linter and the sanitizers' builds take
  # what they leave, at the lowest priority. Whether they build is found by the suites themselves.
  ahead() {
    nice -n 19 make lint-changed LINT_SINCE=HEAD~40 >"$logs/lint-ahead.log" 2>&1
    echo $? >"$logs/lint-ahead.status"
    nice -n 19 make asan-doors-build >"$logs/build-ahead.log" 2>&1
  }
  ahead &
  ahead=$!
  lint_result() {
    wait "$ahead"
    cat "$logs/lint-ahead.log"
    return "$(cat "$logs/lint-ahead.status")"
  }
  suite clients count_clients make clients
  suite e2e count_go make e2e
  suite lint count_one lint_result
  # With sanitizers fewer seeds, and fewer commands of each, reach the same code.
  export MUSTER_STEPS=1500 MUSTER_TURNS=2000 MUSTER_SHARE=4
  suite asan count_ctest make asan-doors
  echo "not run here, but by make nightly: half of the seeds, clang-tidy on sources without changes in 40 commits, the list of" \
    "planted bugs, the other tests with sanitizers, ThreadSanitizer, Kubernetes 1.35, e2e-scale, fuzzing, mutants, planted bugs, figures"
else
  MUSTER_ONCE=0 MUSTER_SEEDS=${NIGHTLY_SEEDS:-2000} suite test count_ctest make test
  suite lint count_one make lint
  suite e2e-old count_go make e2e-old
  suite e2e-scale count_go make e2e-scale ROUNDS=2
  suite asan count_ctest make asan
  suite tsan count_ctest make tsan
  suite fuzz count_fuzz make fuzz FUZZ_SECONDS="${NIGHTLY_FUZZ_SECONDS:-900}"
  suite plant-bugs count_one make plant-bugs
  suite mutants count_one make mutants
  suite bench count_one make bench
fi
echo "not run anywhere: the container image (no container engine)"
printf '%s\n' "${summary[@]}"
echo "all: $(duration "$SECONDS") of time"
if [ "$SECONDS" -gt $((MOST_WALL * 60)) ]; then echo "!!! WARNING: more than $MOST_WALL min; the budgets count CPU minutes"; fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
