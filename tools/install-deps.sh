#!/usr/bin/env bash
# Installs Muster's build and test dependencies on Debian 12, from Debian's packages. Not interactive; repeatable.
# Without an argument it installs what `make run` needs: the compiler and the libraries.
# --test adds test libraries, Clang, linters, sanitizers and promtool.
# --e2e adds a Go toolchain for the end-to-end tests to that.
# --mutants adds libclang's Python bindings, for `make mutants` and `make plant-bugs`.
set -euo pipefail

packages=(
  g++ make cmake ninja-build ccache mold git ca-certificates
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libcpp-httplib-dev nlohmann-json3-dev libsimdjson-dev libabsl-dev libssl-dev zlib1g-dev libbrotli-dev
  libyaml-cpp-dev libsqlite3-dev libspdlog-dev prometheus-cpp-dev libcli11-dev libgoogle-perftools-dev
)
[ -z "${1:-}" ] || packages+=(
  libgtest-dev libgmock-dev clang clang-format clang-tidy lld libclang-rt-14-dev python3 python3-venv curl openssl
)
[ "${1:-}" != --mutants ] || packages+=(libclang-14-dev python3-clang-14)

run=()
[ "$(id -u)" = 0 ] || run=(sudo)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  "${run[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# promtool checks the metrics. It is in the package of the Prometheus server, which is not installed: it would run.
promtool="$(dirname "$0")/../build/tools/promtool"
if [ -n "${1:-}" ] && ! command -v promtool >/dev/null && [ ! -x "$promtool" ]; then
  echo "fetching promtool"
  fetched=$(mktemp -d)
  (cd "$fetched" && apt-get download -qq prometheus 2>/dev/null || { "${run[@]}" apt-get update -qq && apt-get download -qq prometheus; })
  dpkg-deb -x "$fetched"/prometheus_*.deb "$fetched"
  mkdir -p "$(dirname "$promtool")"
  mv "$fetched/usr/bin/promtool" "$promtool"
  rm -rf "$fetched"
fi

if [ "${1:-}" = --e2e ]; then
  # The Kubernetes modules name the Go release that they need. Debian 12's own is older, and its backport is not always
  # available.
  need=$(sed -n 's/^go //p' "$(dirname "$0")/../tests/e2e/go.mod" | cut -d. -f1,2)
  have=$(go version 2>/dev/null | sed -n 's/.*go\([0-9]*\.[0-9]*\).*/\1/p' || true)
  if [ -z "$have" ] || [ "$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -1)" != "$need" ]; then
    if [ -n "$have" ]; then
      echo "go $have is older than $need: the go command fetches the toolchain that go.mod names (GOTOOLCHAIN=auto)"
    else
      DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends golang-go >/dev/null
      echo "installed $(go version); where it is older than $need, set GOTOOLCHAIN=auto"
    fi
  fi
fi
