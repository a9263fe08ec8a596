#!/usr/bin/env bash
# Prints the measured figures beside their targets and keeps them as data: tools/bench.sh BUILD
# The figures with a real kube-scheduler come from `make e2e` (lines FIGURE).
set -euo pipefail
build=$1
out="$build/bench.jsonl"
{ "$build/tests/core_bench"; "$build/tests/http_bench"; "$build/tests/rpc_bench"; } | tee "$out.new" >/dev/null
mv "$out.new" "$out"
python3 - "$out" tests/bench/targets.json <<'PY'
import json, sys
targets = json.load(open(sys.argv[2]))
print(f"{'figure':66} {'measured':>16} {'target':>14}")
for line in open(sys.argv[1]):
    row = json.loads(line)
    target = targets.get(row["figure"], {})
    value = row.get(target.get("of", "median"), row["median"])
    limit = target.get("limit")
    met = "" if limit is None else "met" if (value >= limit if target.get("at_least") else value <= limit) else "MISSED"
    sign = ">=" if target.get("at_least") else "<="
    print(f"{row['figure']:66} {value:>10.4g} {row['unit']:5} {sign if limit is not None else '':>3} {limit if limit is not None else '':>9} {met}")
PY
echo "kept in $out"
