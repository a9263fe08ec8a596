#!/usr/bin/env bash
# Runs every fuzz target for some seconds: tools/fuzz.sh BUILD SECONDS. Findings are stored in BUILD/fuzz.
set -euo pipefail
build=$1
seconds=$2
mkdir -p "$build/fuzz"
for target in fuzz_extender_json fuzz_quantity fuzz_dialects fuzz_rpc; do
  corpus="$build/fuzz/corpus-$target"
  mkdir -p "$corpus"
  echo "== $target, $seconds s"
  "$build/tests/$target" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="$build/fuzz/" "$corpus" $(if [ "$target" = fuzz_rpc ]; then echo tests/fuzz/rpc_seeds; else echo tests/fuzz/seeds; fi)
  echo "ok $target"
done
