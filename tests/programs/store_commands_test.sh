#!/usr/bin/env bash
# Tests what docs/how-to/upgrade-and-back-up.md says about the store's file, with the commands that it names:
# store_commands_test.sh MUSTERD MUSTERCTL EXAMPLE
set -euo pipefail
musterd=$1 musterctl=$2 example=$3
# shellcheck source=tests/programs/shell_helpers.sh
. "$(dirname "$0")/shell_helpers.sh"
fails() { if out=$("$@" 2>&1); then fail "no error from: $*: $out"; fi; }

# begin FILE: runs a musterd with this store.
begin() {
  configure <<<"store: {path: $1}"
  start
}
end() { kill "$pid" && wait "$pid" || true; pid=; }
# serve: the example's callers have their gangs started; `ids` are the submissions.
serve() {
  "$example" "$MUSTER_SERVER" >/dev/null
  ids=$("$musterctl" store inspect "$1" --kind submission | cut -d' ' -f1)
  [ "$(wc -w <<<"$ids")" = 3 ] || fail "there are not three submissions: $ids"
}
# Every promise to them, with its nodes.
promised() { for id in $ids; do "$musterctl" get submission "$id" -o json; done; }
# later NAME: one more gang is started, on a node of its own.
later() {
  cat >"$work/node.yaml" <<YAML
apiVersion: v1
kind: Node
metadata: {name: for-$1}
status: {allocatable: {cpu: 4, example.com/$1: 1, pods: 10}}
YAML
  cat >"$work/gang.yaml" <<YAML
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: $1}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: $1-0, labels: {pod-group.scheduling.sigs.k8s.io: $1}}
spec: {containers: [{name: m, resources: {requests: {example.com/$1: 1}}}]}
YAML
  "$musterctl" apply -f "$work/node.yaml" >/dev/null
  has "$("$musterctl" submit -f "$work/gang.yaml" --id "$1" --confirm)" "Confirmed"
}
sql() { python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(db.execute(sys.argv[2]).fetchone()); db.commit()' "$@"; }

# 1. Its contents, and a copy, while musterd runs.
store=$work/muster.db
begin "$store"
serve "$store"
[ "$(stat -c %a "$store")" = 600 ] || fail "the store can be read by others"
before=$(promised)
has "$before" '"state": "STATE_CONFIRMED"'
out=$("$musterctl" store inspect "$store")
for line in "format:   2" "submission: " "gang: " "node: "; do has "$out" "$line"; done
has "$("$musterctl" store inspect "$store" --kind submission)" "train"
has "$("$musterctl" store verify "$store")" "no damage"
"$musterctl" store backup "$store" "$work/copy.db" >/dev/null
fails "$musterctl" store backup "$store" "$work/copy.db"
later after
fails "$musterctl" store upgrade "$store"
has "$out" "another musterd (pid $pid)"
end

# 2. Its records, as lines, can be imported into a store again.
"$musterctl" store export "$store" >"$work/records"
[ "$(wc -l <"$work/records")" -gt 10 ] || fail "hardly anything is exported"
"$musterctl" store import "$work/again.db" <"$work/records" >/dev/null
fails "$musterctl" store import "$work/again.db" <"$work/records"
fails "$musterctl" store import "$work/broken.db" <<<'{"kind": "gang"}'
has "$out" 'line 1: "key": expected a string'
fails "$musterctl" store import "$work/broken.db" < <(head -n 5 "$work/records")
has "$out" 'ends without the line {"records":5}'
fails "$musterctl" store import "$work/broken.db" < <(sed 2d "$work/records")
has "$out" "records precede it"
fails "$musterctl" store import "$work/broken.db" < <(head -n 1 "$work/records" | sed p)
has "$out" "repeats the record of line 1"
[ ! -e "$work/broken.db" ] || fail "an import that failed left a file"
if "$musterctl" store export "$store" >/dev/full 2>"$work/error"; then fail "an export that is cut short says nothing"; fi
has "$(cat "$work/error")" "cannot write to standard output"
if "$musterctl" store inspect "$store" >/dev/full 2>/dev/null; then fail "what could not be printed is no failure"; fi
fails "$musterctl" store inspect "$store" --kind gangs
has "$out" "expected one of gang, "
has "$("$musterctl" store verify "$work/again.db")" "no damage"
begin "$work/again.db"
[ "$(promised)" = "$before" ] || fail "what was moved is not what was promised: $(promised)"
has "$("$musterctl" get submission after)" "Confirmed"
end

# 3. A backup replaces it: promises made before the backup hold, later ones are unknown.
cp "$work/copy.db" "$store"
rm -f "$store-wal" "$store-shm"
begin "$store"
[ "$(promised)" = "$before" ] || fail "what was restored is not what was promised: $(promised)"
has "$(cat "$work/log")" "are dropped until they are announced again"
fails "$musterctl" get submission after
later again
end

# 4. A file of the previous format is not changed, so that its version can use it, until its owner upgrades it.
"$musterctl" store import "$work/old.db" <<<'{"records":0}' >/dev/null
sql "$work/old.db" "PRAGMA user_version = 1" >/dev/null
begin "$work/old.db"
has "$(cat "$work/log")" "format 1"
serve "$work/old.db"
before=$(promised)
end
has "$("$musterctl" store inspect "$work/old.db")" "format:   1"
for kind in $("$musterctl" store inspect "$work/old.db" | sed -n 's/^  \([a-z]*\): .*/\1/p'); do
  case $kind in
    gang | start | commit | plans | effects | node | pod | podgroup | announcer | submission) ;;
    *) fail "a store of format 1 has records that its version does not know: $kind" ;;
  esac
done
sed 's/^queues:.*//' "$work/musterd.yaml" >"$work/queues.yaml"
echo 'queues: {source: api}' >>"$work/queues.yaml"
fails timeout 20 "$musterd" --config "$work/queues.yaml"
has "$out" "musterctl store upgrade"
has "$("$musterctl" store upgrade "$work/old.db")" "format 1 -> 2"
has "$("$musterctl" store upgrade "$work/old.db")" "already"
begin "$work/old.db"
[ "$(promised)" = "$before" ] || fail "what was upgraded is not what was promised: $(promised)"
later new
end
has "$("$musterctl" store inspect "$work/old.db")" "answer: "

# 5. Files that musterd refuses to start on, with an error.
sql "$work/old.db" "PRAGMA user_version = 99" >/dev/null
fails timeout 20 "$musterd" --store "$work/old.db" --config "$work/musterd.yaml"
has "$out" "written in format 99"
printf 'no store, but %0100d' 0 >"$work/text.db"
fails timeout 20 "$musterd" --store "$work/text.db" --config "$work/musterd.yaml"
has "$out" "not an SQLite file"
"$musterctl" store import "$work/odd.db" >/dev/null <<'LINES'
{"kind":"pod","key":"a","incarnation":"","format":1,"value":"aGVsbG8="}
{"records":1}
LINES
fails "$musterctl" store verify "$work/odd.db"
has "$out" 'record "pod/a"'
fails timeout 20 "$musterd" --store "$work/odd.db" --config "$work/musterd.yaml"
has "$out" "store $work/odd.db"
has "$out" 'record "pod/a"'
mkfifo "$work/pipe.db"
for command in inspect verify export; do
  fails timeout 20 "$musterctl" store "$command" "$work/pipe.db"
  has "$out" "not a file on a disk"
  fails "$musterctl" store "$command" "$work"
  has "$out" "a directory"
done
# A link to the file is the same file.
ln -s "$store" "$work/link.db"
begin "$store"
fails "$musterctl" store upgrade "$work/link.db"
has "$out" "another musterd (pid $pid)"
end
sql "$store" "UPDATE record SET value = x'00' WHERE kind = 'submission' RETURNING 1" >/dev/null
fails "$musterctl" store verify "$store"
has "$out" "damaged; restore a backup"
fails timeout 20 "$musterd" --store "$store" --config "$work/musterd.yaml"
has "$out" "damaged"
echo "the store's commands do what docs/how-to/upgrade-and-back-up.md says"
