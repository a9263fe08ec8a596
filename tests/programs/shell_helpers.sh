# Helpers for the tests in shell: source it after setting `musterd` to the program. Files are in $work, which is removed
# at the end, when the running musterd is stopped too.
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "FAILED: $1"; exit 1; }
has() { grep -qF -- "$2" <<<"$1" || fail "expected \"$2\" in: $1"; }

# configure: writes a configuration without Kubernetes and with free ports; appends standard input.
configure() {
  {
    cat
    echo 'log: {format: text}'
    echo 'kubernetes: {enabled: false}'
    echo 'listen: {admin: 127.0.0.1:0, grpc: 127.0.0.1:0, extender: 127.0.0.1:0, bind: 127.0.0.1:0}'
  } >"$work/musterd.yaml"
}

# start FLAG...: runs musterd with $work/musterd.yaml, in $work; sets `pid` and MUSTER_SERVER.
start() {
  : >"$work/log"  # it is read before musterd may have run
  (cd "$work" && exec "$musterd" --config "$work/musterd.yaml" "$@") >"$work/log" 2>&1 &
  pid=$!
  local port=
  for _ in $(seq 500); do
    port=$(sed -n 's/.*gRPC \([0-9]*\).*/\1/p' "$work/log")
    [ -z "$port" ] || break
    sleep 0.02
  done
  [ -n "$port" ] || { cat "$work/log"; fail "musterd does not come up"; }
  export MUSTER_SERVER=127.0.0.1:$port
}
