#!/usr/bin/env bash
# judge.sh OLD NEW [SEEDS [STEPS]]: the same random commands to both cores; the first difference is printed.
set -uo pipefail
old=$1 new=$2 seeds=${3:-4} steps=${4:-20000}
diff <("$old" 1 "$seeds" "$steps") <("$new" 1 "$seeds" "$steps") | head -20
status=${PIPESTATUS[0]}
[ "$status" -eq 0 ] && echo "both cores gave the same answers"
exit "$status"
