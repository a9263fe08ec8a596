#!/usr/bin/env bash
# The clients of commit fbdcc39 - Python, Go, C++ and musterctl - with their own tests against the present musterd:
#   old_clients.sh MUSTERD
# The clients come from git's history and are built in build/compat. What the scenarios must say is read from the present
# tests/scenario/cases: see tests/compat/README.md. Prints a line "ok WHAT" or "FAILED WHAT" for each part and each scenario.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
commit=fbdcc39281ecf94918b4b6e21f3f68f8a7162de5
of="of ${commit:0:7}"
MUSTERD=$(realpath "$1")
export MUSTERD
work=$root/build/compat
old=$work/tree
status=0
failed() { echo "FAILED $1"; status=1; }
part() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok $what"; else failed "$what"; fi
}

[ -x "$MUSTERD" ] || { failed "musterd: $1 cannot be run"; exit 1; }
# The tests of then know no store: each musterd gets a directory of its own for it.
rm -rf "$work/runs"
mkdir -p "$work/runs"
printf '#!/bin/sh\ncd "$(mktemp -d "%s/XXXXXX")" && exec "%s" "$@"\n' "$work/runs" "$MUSTERD" >"$work/musterd"
chmod +x "$work/musterd"
MUSTERD=$work/musterd
if ! said=$(git cat-file -e "$commit^{commit}" 2>&1); then
  failed "history: this repository has no commit $commit, whose clients are tested: $said"
  echo "Fetch it: git fetch --unshallow, or git fetch origin $commit; a copy of the tree without git's history is not enough."
  exit 1
fi

# The old tree. git gives every file the time of its commit, so nothing is compiled twice.
rm -rf "$old" "$work/cases"
mkdir -p "$old" "$work/cases"
git archive "$commit" clients proto cmake state/base state/model k8s-extender/dialects service/sync \
  deploy/musterd.yaml deploy/kube-scheduler tests/contract tests/scenario | tar -x -C "$old" || { failed "history: git archive"; exit 1; }
# A test of then that asks for what was mended since is changed by a patch; the clients never are.
for patch in tests/compat/patches/*.patch; do
  [ -e "$patch" ] || continue
  if git apply --numstat "$patch" | cut -f3 | grep -vE '^(tests/|clients/python/tests/|clients/go/[a-z_]*_test\.go$)'; then
    failed "$patch: it may change tests only"
  else
    git apply --directory=build/compat/tree "$patch" && echo "note: $patch changes tests $of" || failed "$patch does not apply"
  fi
done

# The scenarios of then, as they are written now.
commands() { awk '/^#/ {next} /^$/ {said = 0; next} /^----$/ {said = 1; next} !said' "$1"; }
for then in "$old"/tests/scenario/cases/C-1*.txt; do
  name=$(basename "$then")
  now=tests/scenario/cases/$name
  if [ ! -e "$now" ]; then failed "scenario: $name $of is gone from tests/scenario/cases"; continue; fi
  cp "$now" "$work/cases/"
  if [ "$(commands "$then")" != "$(commands "$now")" ]; then
    echo "note: $name has other commands than at ${commit:0:7}"
  elif ! cmp -s <(grep -v '^#' "$then") <(grep -v '^#' "$now"); then
    echo "note: $name expects other text than at ${commit:0:7}"
  fi
done

kept() { # what tests/compat keeps is what the commit had
  diff <(tests/compat/check_descriptors.py --print "$old" protoc) <(grep -v '^#' tests/compat/fbdcc39/descriptors.txtpb) &&
    diff "$old/deploy/musterd.yaml" tests/compat/fbdcc39/config/deploy.yaml &&
    diff -r "$old/deploy/kube-scheduler" tests/compat/fbdcc39/kube-scheduler
}
part "kept: what the fast tests compare with is that $of" kept

# Python, with the libraries of then.
venv=$work/venv
grep -vE '^(mypy|types-|grpc-stubs|grpcio-tools)' "$old/clients/python/requirements-dev.txt" >"$work/requirements.txt"
python_tools() {
  cmp -s "$work/requirements.txt" "$venv/installed" && return
  rm -rf "$venv"
  python3 -m venv "$venv" && "$venv/bin/pip" install -q -r "$work/requirements.txt" && cp "$work/requirements.txt" "$venv/installed"
}
part "python $of: its libraries" python_tools
part "python $of: pip install" "$venv/bin/pip" install -q --no-build-isolation --no-deps --force-reinstall "$old/clients/python"
part "python $of: tests and examples" sh -c "cd '$old/clients/python' && '$venv/bin/pytest' -q -p no:cacheprovider tests"

tools/install-deps.sh --e2e || failed "go $of: no toolchain"
part "go $of: tests and example" sh -c "cd '$old/clients/go' && go test -count=1 ./..."

# C++ and musterctl. Built without optimisation: the client is tested, not timed.
cp tests/compat/old_clients.cmake "$old/CMakeLists.txt"
touch -r tests/compat/old_clients.cmake "$old/CMakeLists.txt"
c_plus_plus() {
  cmake -S "$old" -B "$work/out" -G Ninja -DMUSTERD="$MUSTERD" -DCASES="$work/cases" >"$work/log" 2>&1 &&
    cmake --build "$work/out" -j "${JOBS:-$(nproc)}" --target musterctl orchestrator_example conformance_test >>"$work/log" 2>&1 ||
    { tail -n 40 "$work/log"; return 1; }
}
part "c++ $of: build" c_plus_plus
part "musterctl $of: every command" "$old/tests/contract/cli_test.sh" "$MUSTERD" "$work/out/musterctl" "$work/out/orchestrator_example"

log=$work/conformance.log
ended=0
"$work/out/conformance_test" --gtest_color=no >"$log" 2>&1 || ended=$?
sed -nE "s#^\[       OK \] ([^ ]*) \(.*#ok conformance $of: \1#p; s#^\[  FAILED  \] ([^ ,]*).* \([0-9]+ ms\)\$#FAILED conformance $of: \1#p" "$log"
cases=$(grep -c '^\[       OK \]' "$log")
if [ "$ended" != 0 ]; then
  grep -vE '^\[ RUN|^\[       OK' "$log"
  status=1
  grep -qE '^\[  FAILED  \]' "$log" || failed "conformance $of: conformance_test ended with $ended"
elif [ "$cases" -lt 20 ]; then
  failed "conformance $of: only $cases cases were played"
fi
exit $status
