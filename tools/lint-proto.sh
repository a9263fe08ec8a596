#!/usr/bin/env bash
# Lints the contract with buf (proto/buf.yaml), and compares it with the last release: from the first one on, it only
# grows. Fails if buf is not to be had.
set -euo pipefail
cd "$(dirname "$0")/.."
buf=$PWD/build/tools/go/buf
if [ ! -x "$buf" ]; then
  tools/install-deps.sh --e2e # a Go toolchain
  echo "building buf (a few minutes the first time)"
  GOBIN="$PWD/build/tools/go" go install github.com/bufbuild/buf/cmd/buf@v1.28.1
fi
"$buf" lint proto
release=$(git tag --list 'v[1-9]*.*.*' --merged HEAD --sort=-version:refname | head -1)
if [ -n "$release" ]; then
  "$buf" breaking proto --against ".git#tag=$release,subdir=proto"
else
  echo "buf breaking: there is no release yet, so there is nothing to compare the contract with"
fi
