#!/usr/bin/env bash
# The configurations of commit fbdcc39 with the present musterd and musterctl: config_test.sh MUSTERD MUSTERCTL
# They name files in /etc/muster; such files are made for the test, and the names changed to theirs.
set -euo pipefail
musterd=$1 musterctl=$2 kept=$(dirname "$(realpath "$0")")/fbdcc39
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
status=0
fail() { echo "FAILED: $1"; status=1; }
local_names() { sed "s#/etc/muster/#$work/etc/#g" "$1" >"$work/$(basename "$1")"; }

mkdir "$work/etc"
for name in tls clients-ca; do
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" -keyout "$work/etc/$name.key" -out "$work/etc/$name.crt" 2>"$work/said" ||
    { cat "$work/said"; exit 1; }
done
printf 'runner read-write sixteen-characters\nviewer read-only another-sixteen-chars\n' >"$work/etc/tokens"
chmod 600 "$work"/etc/*

# 1. musterd's own files. A check that finds nothing wrong with anything would pass them too.
echo 'gangs: {waitTime: soon, noSuch: 1}' >"$work/wrong.yaml"
if "$musterd" check-config "$work/wrong.yaml" >/dev/null; then fail "check-config finds nothing wrong in $(cat "$work/wrong.yaml")"; fi
checked=0
for file in "$kept"/config/*.yaml; do
  local_names "$file"
  if said=$("$musterd" check-config "$work/$(basename "$file")" 2>&1); then
    checked=$((checked + 1))
  else
    fail "config/$(basename "$file") was a configuration at fbdcc39: $said"
  fi
done
[ "$status" != 0 ] || [ "$checked" = 9 ] || fail "$checked files were checked, not 9"

# 2. The doors that kube-scheduler's configurations name.
local_names "$kept/config/tests.yaml"
: >"$work/log"  # there before anybody looks into it
(cd "$work" && exec "$musterd" --config "$work/tests.yaml") >"$work/log" 2>&1 &
pid=$!
serves=
for _ in $(seq 500); do
  serves=$(sed -nE 's/.*musterd serves: extender ([0-9]+), bind ([0-9]+),.*/\1 \2/p' "$work/log")
  [ -z "$serves" ] || break
  sleep 0.02
done
[ -n "$serves" ] || { cat "$work/log"; fail "musterd does not come up with config/tests.yaml"; exit 1; }
read -r extender bind <<<"$serves"
ask() { curl -s -o /dev/null -w '%{http_code}' -X POST -H 'Content-Type: application/json' -d '{}' "http://127.0.0.1:$1/$2"; }
[ "$(ask "$extender" no-such-verb)" = 404 ] || fail "a verb that does not exist is answered"
for file in "$kept"/kube-scheduler/*.yaml; do
  verbs=0
  while read -r word value; do
    case $word in
      urlPrefix:)
        case $value in
          http://127.0.0.1:8888) port=$extender ;;
          http://127.0.0.1:8889) port=$bind ;;
          *) fail "$(basename "$file"): no door for $value" ;;
        esac ;;
      *)
        verbs=$((verbs + 1))
        code=$(ask "$port" "$value" || true)
        case $code in 000 | 404 | 405) fail "$(basename "$file"): $word $value is answered $code" ;; esac ;;
    esac
  done < <(sed -nE 's/^[ -]*((urlPrefix|[a-z]+Verb):.*)/\1/p' "$file")
  [ "$verbs" = 3 ] || fail "$(basename "$file") names $verbs verbs, not 3"
done

# 3. musterctl's file of contexts.
cp "$kept/contexts.yaml" "$work/contexts.yaml"
said=$(MUSTER_CONFIG=$work/contexts.yaml "$musterctl" config get-contexts 2>&1) || true
[ "$said" = "$(printf '  here  127.0.0.1:9091\n* lab  muster.lab.example:9091\n  token  127.0.0.1:9091')" ] ||
  fail "contexts.yaml was a file of contexts at fbdcc39: $said"

[ "$status" != 0 ] || echo "compat config: ok, $checked configurations of musterd"
exit $status
