#!/usr/bin/env bash
# The C++ example and musterctl against a running musterd: cli_test.sh MUSTERD MUSTERCTL EXAMPLE
set -euo pipefail
musterd=$1 musterctl=$2 example=$3
# shellcheck source=tests/programs/shell_helpers.sh
. "$(dirname "$0")/shell_helpers.sh"
export MUSTER_CONFIG=$work/config.yaml
configure </dev/null
# begin FLAG...: starts musterd; its address is in `port`, not in the environment, which would override contexts.
begin() {
  start "$@"
  port=${MUSTER_SERVER##*:}
  unset MUSTER_SERVER
}
begin

out=$("$example" "127.0.0.1:$port")
for line in "train STATE_CONFIRMED 8 pods" "serve STATE_CONFIRMED 4 pods" "sweep STATE_CONFIRMED 10 pods"; do has "$out" "$line"; done

# A context instead of flags.
"$musterctl" config set-context here --server "127.0.0.1:$port" >/dev/null
has "$("$musterctl" config get-contexts)" "* here  127.0.0.1:$port"
[ "$(stat -c %a "$work/config.yaml")" = 600 ] || fail "the file of contexts can be read by others"
has "$("$musterctl" get gangs)" "train"

cat >"$work/job.yaml" <<YAML
# Kubernetes manifests: quoted and plain scalars, several documents, a list.
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: job}
spec: {minMember: 2}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: job-0, labels: {pod-group.scheduling.sigs.k8s.io: job}}, spec: {containers: [{name: m, resources: {requests: {nvidia.com/gpu: 2}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: job-1, labels: {pod-group.scheduling.sigs.k8s.io: job}}, spec: {containers: [{name: m, resources: {requests: {nvidia.com/gpu: "2"}}}]}}
YAML
has "$("$musterctl" submit -f "$work/job.yaml" --id job-1 --ttl 60)" "Waiting"
has "$("$musterctl" explain gang job)" "insufficient nvidia.com/gpu"
# What-if: the demo's waiting gang gets no room from a removed node; the job would start with one more node.
sed 's/ job\b/ other/; s/job-/other-/g; s/: job}/: other}/g; s/name: job}/name: other}/' "$work/job.yaml" >"$work/other.yaml"
has "$("$musterctl" plan -f "$work/other.yaml" || true)" "would wait"
if "$musterctl" plan -f "$work/other.yaml" >/dev/null; then fail "a gang that would wait ends without an error"; fi
has "$("$musterctl" plan -f "$work/other.yaml" --add 2=gpu-c)" "would start"
has "$("$musterctl" plan job --add 2=gpu-c)" "would start"
has "$("$musterctl" plan -f "$work/job.yaml" 2>&1 || true)" "musterctl plan NAME"
has "$("$musterctl" plan job --without nope 2>&1 || true)" "node nope, which would be removed, is not known"
has "$("$musterctl" plan -f "$work/other.yaml" --add x=gpu-c 2>&1 || true)" "expected NODE or NUMBER=NODE"
# The exit code distinguishes yes, no and no connection; the error for an unreadable command lists the valid words.
status() { local code=0; "$musterctl" "$@" >/dev/null 2>&1 || code=$?; echo "$code"; }
[ "$(status plan job --add 2=gpu-c) $(status plan job) $(status plan nobody) $(status plan job --server 127.0.0.1:1 --timeout 1)" = "0 1 2 2" ] ||
  fail "plan ends with $(status plan job --add 2=gpu-c), $(status plan job), $(status plan nobody)"
[ "$(status frob) $(status get pods) $(status get) $(status --help)" = "2 2 2 0" ] || fail "wrong commands end with other codes"
has "$("$musterctl" frob 2>&1 || true)" "no such command: frob; expected one of get, describe, explain, "
has "$("$musterctl" get pods 2>&1 || true)" "no such command: pods; expected get and one of gangs, gang, "
has "$("$musterctl" --server 127.0.0.1:1 --timeout=1 pods 2>&1 || true)" "no such command: pods; expected one of get, "
for number in -1 999999999999999999999; do
  has "$("$musterctl" events --after "$number" 2>&1 || true)" "$number; expected a whole number, 0 or more"
done
has "$("$musterctl" explain 2>&1 || true)" "no command given; expected explain and one of gang, pod, queue"
if "$musterctl" get gang other >/dev/null 2>&1; then fail "what was only asked about is there"; fi
has "$("$musterctl" abandon job-1)" "Abandoned"
cat >"$work/node.yaml" <<YAML
apiVersion: v1
kind: Node
metadata: {name: gpu-d, labels: {zone: "1"}}
status: {allocatable: {cpu: 64, nvidia.com/gpu: 8, pods: 110}}
YAML
has "$("$musterctl" apply -f "$work/node.yaml")" "Node gpu-d applied"
has "$("$musterctl" submit -f "$work/job.yaml" --id job-2 --ttl 60)" "Planned"
has "$("$musterctl" get nodes)" "gpu-d"
has "$("$musterctl" confirm job-2)" "Confirmed"
has "$("$musterctl" describe gang job)" "Bound"
has "$("$musterctl" get submissions)" "job-2"
has "$("$musterctl" get submissions -A -o json)" '"gang": "default/job"'
has "$("$musterctl" get node gpu-d)" "nvidia.com/gpu"
has "$("$musterctl" version)" "musterd 1."
has "$("$musterctl" get submission job-2 -o json)" '"state": "STATE_CONFIRMED"'
has "$("$musterctl" delete -f "$work/job.yaml")" "Pod default/job-1 deleted"
if "$musterctl" get gang job 2>/dev/null; then fail "the gang is still there"; fi
has "$(timeout 2 "$musterctl" watch gangs -A || true)" "train"
has "$("$musterctl" events -A)" ""
# Namespaces, the end of a wait, control characters for a terminal, and output that can be read again.
has "$("$musterctl" -n other apply -f "$work/job.yaml")" "Pod other/job-0 applied"
has "$("$musterctl" get gang other/job)" "job"
has "$(sed 's/metadata: {name: job}/metadata: {name: job, namespace: third}/' "$work/job.yaml" | "$musterctl" -n other apply -f - 2>&1 || true)" "another namespace"
"$musterctl" -n other delete -f "$work/job.yaml" >/dev/null
if "$musterctl" submit -f "$work/job.yaml" --id job-2 --confirm >/dev/null; then :; else fail "a confirmed submission ends with an error"; fi
timeout 3 "$musterctl" watch submissions -A >"$work/submissions" &
sleep 0.3
"$musterctl" submit -f "$work/job.yaml" --id job-3 --ttl 0.2 >/dev/null 2>&1 || true
sleep 0.7
has "$(cat "$work/submissions")" "job-3  default/job  Expired"
if "$musterctl" submit -f "$work/job.yaml" --id job-3 --ttl 0.2 --confirm >/dev/null 2>&1; then fail "an expired submission ends without an error"; fi
printf 'kind: Pod\nmetadata: {name: odd, annotations: {gang.scheduling.koordinator.sh/name: "e\\e[31mvil", gang.scheduling.koordinator.sh/min-available: "1"}}\n' >"$work/odd.yaml"
"$musterctl" apply -f "$work/odd.yaml" >/dev/null
case "$("$musterctl" get gangs)" in *$'\e'*) fail "a control character reaches the terminal" ;; esac
has "$("$musterctl" get gangs)" '\x1b'
"$musterctl" delete -f "$work/odd.yaml" >/dev/null
has "$("$musterctl" get gang train -o yaml)" 'waitTimeout: "600s"'
has "$("$musterctl" --token $'a\nb' get gangs 2>&1 || true)" "printable ASCII"
# Flags override the environment, which overrides the context; a token and a token file are one setting.
echo sixteen-characters >"$work/token"
has "$("$musterctl" --server 127.evil.example:1 --token x get gangs 2>&1 || true)" "unencrypted"
MUSTER_TOKEN=$'a\nb' "$musterctl" --token-file "$work/token" get gangs >/dev/null || fail "the environment's token beats --token-file"
has "$(MUSTER_TOKEN=$'a\nb' "$musterctl" get gangs 2>&1 || true)" "printable ASCII"
echo 'kind: Deployment' >"$work/bad.yaml"
has "$("$musterctl" apply -f "$work/bad.yaml" 2>&1 || true)" "expected Node, Pod, PodGroup or List"
has "$("$musterctl" apply -f "$work/nothing.yaml" 2>&1 || true)" "cannot read"
# Errors name the file and the object.
printf 'kind: Pod\nmetadata: {name: fine}\n---\nkind: Deployment\nmetadata: {name: wrong}\n' >"$work/two.yaml"
has "$("$musterctl" apply -f "$work/two.yaml" 2>&1 || true)" "two.yaml: Deployment default/wrong"
printf 'kind: Pod\nmetadata: {name: stray, annotations: {gang.scheduling.koordinator.sh/min-available: "2"}}\nspec: {containers: [{name: c}]}\n' >"$work/stray.yaml"
has "$("$musterctl" apply -f "$work/stray.yaml" 2>&1)" "Warning: pod default/stray: "
has "$("$musterctl" explain pod stray)" "NotAGang"
has "$("$musterctl" get nodes -o json | tr -d ' \n')" '"nvidia.com/gpu":"0"'
for binary in "$musterd" "$musterctl"; do has "$("$binary" --version)" "$(basename "$binary") 1."; done
printf 'kind: Node\nmetadata: {name: empty}\nstatus: {capacity: {cpu: 64}}\n' >"$work/empty.yaml"
has "$("$musterctl" apply -f "$work/empty.yaml" 2>&1)" "Warning: node empty: offers nothing to pods; expected amounts in status.allocatable"
"$musterctl" delete -f "$work/empty.yaml" >/dev/null
# Of three jobs, one waits 100 s: the 99th percentile is 100 s too.
printf 'job_id,submission_time,duration,num_gpu\na,0,100,4\nb,0,100,4\nc,0,100,8\n' >"$work/jobs.csv"
has "$("$musterctl" simulate "$work/jobs.csv" --nodes 1 --policy hold | tr -s ' ')" "hold 1 of 3 33s 0 1m40s 1m40s"
for shell in bash zsh fish; do has "$("$musterctl" completion $shell)" "submit"; done
bash -n <("$musterctl" completion bash) || fail "the bash completion is no bash"
# The flight recordings replay to the same decisions, of a process that was killed and of one that stopped.
recorded() {
  begin --record muster.rec
  "$musterctl" --server "127.0.0.1:$port" submit -f "$work/job.yaml" --id "$1" --ttl 60 >/dev/null || fail "submit to a musterd that records"
  "$musterctl" --server "127.0.0.1:$port" abandon "$1" >/dev/null || fail "abandon"
}
kill "$pid"; wait "$pid" || fail "musterd did not stop"
recorded flight-1; sleep 0.3; kill -9 "$pid"; wait "$pid" || true
recorded flight-2; kill "$pid"; wait "$pid" || fail "musterd did not stop"
out=$("$musterctl" replay "$work/muster.rec" "$work/muster.rec.1" --check --explain job) || fail "replay: $out"
for line in "muster.rec.1: musterd 1." "the file is incomplete" "musterd stopped" "SubmitGang default/job  Scheduling: Planned" "AbandonGang flight-2  gone" \
  "outcomes are as recorded, and so is the state when musterd stopped"; do has "$out" "$line"; done
out=$("$musterctl" replay "$work/muster.rec.1" --commands --until '#3')
has "$out" "#3  "
if grep -q "#4 " <<<"$out"; then fail "--until #3 replays a fourth command"; fi
has "$("$musterctl" replay "$work/muster.rec.1" --until 2000-01-01T00:00:00Z 2>&1 || true)" "the recording begins later, at 20"
has "$("$musterctl" replay "$work/muster.rec.1" --until 2999-01-01T00:00:00Z)" "the recording ends before --until"
has "$("$musterctl" replay "$work/muster.rec.1" "$work/muster.rec" --until '#3' 2>&1 || true)" "are of several"
has "$("$musterctl" replay "$work/muster.rec" --explain nobody 2>&1 || true)" "there is no gang default/nobody"
: >"$work/nothing.rec"
if out=$("$musterctl" replay "$work/nothing.rec" "$work/muster.rec" 2>&1); then fail "a file that cannot be read ends without an error"; fi
has "$out" "musterd stopped"
has "$("$musterctl" replay "$work/muster.rec" --until yesterday 2>&1 || true)" "expected a time like"
has "$("$musterctl" replay "$work/job.yaml" 2>&1 || true)" "is not a recording of musterd"
printf 'x' | dd of="$work/muster.rec" bs=1 seek=200 conv=notrunc 2>/dev/null
if out=$("$musterctl" replay "$work/muster.rec" 2>&1); then fail "a broken recording ends without an error"; fi
has "$out" "is broken: the checksum"
# A wait continues while musterd is away and confirms the plan that is made afterwards; gangs of a group are confirmed
# together.
sed -i "s/grpc: 127.0.0.1:0/grpc: 127.0.0.1:$port/" "$work/musterd.yaml"
echo 'store: {path: waits.db}' >>"$work/musterd.yaml"
awaits() { # FILE TEXT
  for _ in $(seq 500); do
    if grep -qF -- "$2" "$1"; then return; fi
    sleep 0.02
  done
  fail "expected \"$2\" in: $(cat "$1")"
}
# submits ID FILE: submits in the background and waits for the confirmation; the output is in $work/ID.
submits() {
  : >"$work/$1"
  "$musterctl" submit -f "$2" --id "$1" --ttl 60 --confirm >"$work/$1" 2>&1 &
  waiting=$!
  awaits "$work/$1" "waits: "
}
start
submits late "$work/job.yaml"
has "$(cat "$work/late")" "submission late"
kill -9 "$pid"; wait "$pid" || true
start
"$musterctl" apply -f "$work/node.yaml" >/dev/null
wait "$waiting" || fail "who waits does not outlive a restart: $(cat "$work/late")"
has "$(cat "$work/late")" "Confirmed"
if grep -q TLS "$work/late"; then fail "who was connected is asked about TLS: $(cat "$work/late")"; fi
for name in first second; do
  cat >"$work/$name.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata:
  name: $name-0
  annotations:
    gang.scheduling.koordinator.sh/name: $name
    gang.scheduling.koordinator.sh/min-available: "1"
    gang.scheduling.koordinator.sh/groups: '["default/first", "default/second"]'
spec: {containers: [{name: m, resources: {requests: {nvidia.com/gpu: 1}}}]}
YAML
done
submits first "$work/first.yaml"
has "$("$musterctl" submit -f "$work/second.yaml" --id second --confirm 2>&1)" "Confirmed"
wait "$waiting" || fail "the first of a group is not confirmed: $(cat "$work/first")"
has "$(cat "$work/first")" "Confirmed"
if grep -q "Confirm: musterctl" "$work/first"; then fail "a confirmed plan is printed as unconfirmed: $(cat "$work/first")"; fi
echo "cli: ok"
