#!/usr/bin/env bash
# Installs the tools for generating and testing the Python and Go clients into build/tools: a virtual environment and
# the protoc plugins for Go. Can be repeated.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-deps.sh --e2e # a Go toolchain
here="$PWD/build/tools"
mkdir -p "$here"
if ! "$here/venv/bin/python" -c 'import grpc_tools, mypy, pytest, google.rpc' 2>/dev/null; then
  python3 -m venv "$here/venv" || { echo "python3 -m venv does not work: install python3-venv"; exit 1; }
  "$here/venv/bin/pip" install -q -r clients/python/requirements-dev.txt
fi
[ -x "$here/go/protoc-gen-go" ] || GOBIN="$here/go" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.8
[ -x "$here/go/protoc-gen-go-grpc" ] || GOBIN="$here/go" go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.5.1
