#!/usr/bin/env bash
# Prints the measured figures beside their targets and stores them as data:
#   tools/bench.sh BUILD
# With AGAINST it compares with older programs instead: old and new alternate, BENCH_ROUNDS times (5), one at a time:
#   tools/bench.sh BUILD AGAINST
# AGAINST: a git revision, which is built in build/against, or a directory with older programs.
# BENCH_PROGRAMS: a subset of "core_bench engine_bench placement_bench topology_bench http_bench rpc_bench start_bench".
# BENCH_FIGURES: figures of core_bench, from decide plan place allocate freed groups nodes filter classes waiting queues.
# The figures with a real kube-scheduler come from `make e2e` (lines FIGURE).
set -euo pipefail
build=$1
against=${2:-}
cd "$(dirname "$0")/.."
programs=${BENCH_PROGRAMS:-core_bench engine_bench placement_bench topology_bench http_bench rpc_bench start_bench}

run() { # PROGRAM FILE: its figures
  case $1 in
    */core_*) "$1" ${BENCH_FIGURES:+"$BENCH_FIGURES"} >"$2" ;;
    *) "$1" >"$2" ;;
  esac
}

if [ -z "$against" ]; then
  out=$build/bench.jsonl
  : >"$out.new"
  for program in $programs; do
    run "$build/tests/$program" "$out.part" || echo "failed: $program ended with $?"
    cat "$out.part" >>"$out.new"
  done
  rm -f "$out.part"
  mv "$out.new" "$out"
  echo "kept in $out"
  all=all
  [ -z "${BENCH_PROGRAMS:-}${BENCH_FIGURES:-}" ] || all=
  tests/bench/report.py table "$out" tests/bench/targets.json $all
  exit
fi

# The older programs; `older` is their directory. For core_bench, the present benchmark is compiled with the older core
# if possible, so that new figures are compared too and both sides measure alike.
if [ -d "$against" ]; then
  older=$against
  [ ! -d "$against/tests" ] || older=$against/tests
else
  commit=$(git rev-parse --verify --quiet "$against^{commit}") || {
    echo "$against is neither a directory nor a commit of this repository (a shallow clone: git fetch --unshallow)"
    exit 1
  }
  tree=build/against/${commit:0:12}/tree
  made=build/against/${commit:0:12}/out
  older=$made/tests
  rm -rf "$tree"
  mkdir -p "$tree"
  git archive "$commit" | tar -x -C "$tree"  # with the commit's times: no file is compiled twice
  echo "building ${commit:0:12} in $made"
  cmake -S "$tree" -B "$made" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$made.log" 2>&1 || { cat "$made.log"; exit 1; }
  for program in $programs; do
    [ -e "$tree/tests/bench/$program.cc" ] || continue
    cmake --build "$made" -j "${JOBS:-$(nproc)}" --target "$program" >"$made.log" 2>&1 || { tail -n 40 "$made.log"; exit 1; }
  done
  case $programs in *core_bench*)
    rm -f "$older/core_bench_present"
    present=(tests/bench/core_world.h tests/bench/core_world.cc tests/bench/*_figures.cc)
    cp -p "${present[@]}" "$tree/tests/bench/"
    cp -p tests/bench/core_bench.cc "$tree/tests/bench/core_bench_present.cc"
    cat >>"$tree/tests/CMakeLists.txt" <<'CMAKE'
file(GLOB present_figures bench/*_figures.cc)
add_executable(core_bench_present EXCLUDE_FROM_ALL bench/core_bench_present.cc bench/core_world.cc ${present_figures})
target_link_libraries(core_bench_present PRIVATE $<TARGET_NAME_IF_EXISTS:muster_allocator> muster_machine muster_store)
CMAKE
    cmake --build "$made" -j "${JOBS:-$(nproc)}" --target core_bench_present >"$made.log" 2>&1 ||
      echo "skipped: the present core figures with the core of ${commit:0:12}: they do not compile ($made.log); its own are run" ;;
  esac
fi

data=$build/bench-against.jsonl
part=$build/bench-against.part
: >"$data"
pairs=()
for program in $programs; do
  before=$older/$program
  [ "$program" != core_bench ] || [ ! -x "$older/core_bench_present" ] || before=$older/core_bench_present
  if [ -x "$before" ]; then pairs+=("$program=$before"); else echo "skipped: $program: there is none in $older"; fi
done
measure() { # older|present PROGRAM ROUND
  run "$2" "$part" || echo "failed: $2 ended with $? in round $3; figures that it did not print are skipped"
  sed -n "s/^{/{\"which\": \"$1\", \"round\": $3, /p" "$part" >>"$data"
}
for round in $(seq "${BENCH_ROUNDS:-5}"); do
  for pair in "${pairs[@]}"; do
    echo "round $round: ${pair%%=*}" >&2
    # The order alternates with each round, so that other load on the machine affects both sides.
    if [ $((round % 2)) = 1 ]; then measure older "${pair#*=}" "$round"; fi
    measure present "$build/tests/${pair%%=*}" "$round"
    if [ $((round % 2)) = 0 ]; then measure older "${pair#*=}" "$round"; fi
  done
done
rm -f "$part"
tests/bench/report.py compare "$data" tests/bench/targets.json "$build/bench-against.json"
echo "kept in $build/bench-against.json; every run in $data"
