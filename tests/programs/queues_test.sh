#!/usr/bin/env bash
# Queues from the configuration file to the reply: queues_test.sh MUSTERD MUSTERCTL DOCS
# DOCS is docs/how-to/share-a-cluster-with-queues.md: its configuration is checked, and musterd runs with it.
set -euo pipefail
musterd=$1 musterctl=$2 docs=$3
# shellcheck source=tests/programs/shell_helpers.sh
. "$(dirname "$0")/shell_helpers.sh"

# 1. An invalid configuration is refused as a whole, with every reason.
cat >"$work/wrong.yaml" <<YAML
queues:
  tree:
  - {name: a, parent: nowhere, quotas: 3}
  - {name: b, quota: {cpu: x}, limit: 3}
  - {name: c, sort: none, overQuotaWeight: {cpu: -1}, maxApplications: -1}
  - 7
  unknown: never
YAML
if out=$("$musterd" check-config "$work/wrong.yaml" 2>&1); then fail "check-config finds nothing wrong"; fi
for line in 'queues.unknown: "never" is not wait, default or reject' 'queues.tree[0].quotas: ' 'queues.tree[1].quota.cpu: "x" is not a quantity' \
  'queues.tree[1].limit: "3"; expected amounts by resource' 'queues.tree[2].sort: "none"; expected fifo' 'queues.tree[2].overQuotaWeight.cpu: "-1"' \
  'queues.tree[2].maxApplications: "-1"' 'queues.tree[3]: expected a map'; do has "$out" "$line"; done
printf 'queues: {tree: [{name: a, parent: nowhere}, {name: a}]}\n' >"$work/wrong.yaml"
if out=$("$musterd" check-config "$work/wrong.yaml" 2>&1); then fail "check-config takes a parent that does not exist"; fi
has "$out" "its parent nowhere does not exist"
has "$out" "is declared twice"
printf 'queues: {tree: [{name: a, limit: {nvidia.com/gpu: 1500m, "": 3}, priority: 99999999999}]}\n' >"$work/wrong.yaml"
if out=$("$musterd" check-config "$work/wrong.yaml" 2>&1); then fail "check-config rounds a limit"; fi
has "$out" "queues.tree[0].limit.nvidia.com/gpu: 1500m is not a whole number"
has "$out" "queues.tree[0].limit.: names no resource"
has "$out" 'queues.tree[0].priority: "99999999999"; expected a whole number of 32 bits'
#    A tree without lists of namespaces is valid, and serves no gang.
printf 'queues: {tree: [{name: a}]}\n' >"$work/idle.yaml"
has "$("$musterd" check-config "$work/idle.yaml")" "warning: queues.tree: no gang can use a"

# 2. The configuration of the guide, with a running musterd.
{
  sed -n '/^```yaml$/,/^```$/p' "$docs" | grep -v '```'
  echo 'store: {path: ":memory:"}'
} | configure
[ "$(grep -c 'name:' "$work/musterd.yaml")" = 4 ] || fail "$docs shows no tree of four queues"
out=$("$musterd" check-config "$work/musterd.yaml") || fail "the tree of $docs is refused: $out"
if grep -q warning <<<"$out"; then fail "a queue of $docs serves no gang: $out"; fi
start

# gang NAME QUEUE GPUS ANNOTATIONS: a gang of one pod, which also requests $more.
more=
gang() {
  cat >"$work/$1.yaml" <<YAML
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: $1, annotations: {muster.dev/queue: $2$4}}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: $1-0, labels: {pod-group.scheduling.sigs.k8s.io: $1}}
spec: {containers: [{name: m, resources: {requests: {nvidia.com/gpu: $3$more}}}]}
YAML
  "$musterctl" submit -f "$work/$1.yaml" --id "$1" --ttl 60
}
cat >"$work/node.yaml" <<YAML
apiVersion: v1
kind: Node
metadata: {name: big}
status: {allocatable: {cpu: 64, nvidia.com/gpu: 100, pods: 110}}
YAML
"$musterctl" apply -f "$work/node.yaml" >/dev/null
has "$(gang first vision 40 '')" Planned
has "$(gang second language 40 '')" Waiting
has "$("$musterctl" explain gang second)" "of the limit of queue research, nvidia.com/gpu: 64, 40 is used"

# 3. Their state, for users, programs and Prometheus; a parent includes its children. Quotas leave 16: language can use
# 8
#    of its 12; the rest goes to vision.
row() { awk -v name="$1" '$1 == name' <<<"$queues" | tr -s ' ' | sed 's,^ ,,'; }
queues=$("$musterctl" get queues)
for line in 'research 1 1 nvidia.com/gpu - 64 64 40 40' 'vision 1 0 nvidia.com/gpu 16 - 24 40 0' 'language 0 1 nvidia.com/gpu 32 - 40 0 40' \
  'batch 0 0 nvidia.com/gpu - - 0 0 0' 'default 0 0 nvidia.com/gpu - - 0 0 0'; do
  [ "$(row "${line%% *}")" = "$line" ] || fail "expected \"$line\" in: $queues"
done
grep -q '^  vision ' <<<"$queues" || fail "vision does not stand below research: $queues"
described=$("$musterctl" describe queue language)
has "$described" "0 running, 1 waiting"
has "$described" "priority 0, fifo, over-quota weight nvidia.com/gpu: 3"
has "$(grep Access: <<<"$described")" "the list of a queue above it"
has "$(grep Access: <<<"$("$musterctl" describe queue research)")" "namespaces default, lab"
has "$(grep second <<<"$described")" "QueueLimit: asks for nvidia.com/gpu: 40"
if grep -q first <<<"$described"; then fail "a gang of another queue is shown: $described"; fi
json=$("$musterctl" get queue vision -o json | tr -d ' \n')
grep -q '"used":{[^}]*"nvidia.com/gpu":"40"' <<<"$json" || fail "vision uses 40: $json"
if out=$("$musterctl" get queue nowhere 2>&1); then fail "a queue that does not exist is shown"; fi
has "$out" "there is no queue nowhere"
metrics() { curl -sf "http://127.0.0.1:$(sed -n 's/.*admin \([0-9]*\).*/\1/p' "$work/log")/metrics"; }
now=$(metrics)
for line in 'muster_queue_used{queue="research",resource="nvidia.com/gpu"} 40' 'muster_queue_limit{queue="research",resource="nvidia.com/gpu"} 64' \
  'muster_queue_pending{queue="language",resource="nvidia.com/gpu"} 40' 'muster_queue_quota{queue="vision",resource="nvidia.com/gpu"} 16' \
  'muster_queue_share{queue="language",resource="nvidia.com/gpu"} 40' 'muster_queue_running_gangs{queue="vision"} 1' 'muster_queue_pending_gangs{queue="research"} 1'; do
  has "$now" "$line"
done

#    The head of the queue and what would start it; and the effect of a larger limit.
explained=$("$musterctl" explain queue research)
has "$explained" "Queue research: 1 gang runs, 1 waits, in the queues below it."
has "$explained" "Access: queue research serves namespaces default, lab."
has "$explained" "nvidia.com/gpu: 40 used of at most 64, fair share now 64; waiting gangs request 40."
has "$explained" "The head of the queue is default/second of queue language: asks for nvidia.com/gpu: 40"
has "$("$musterctl" explain gang second)" "It is the only waiting gang in queue language."
if out=$("$musterctl" plan second); then fail "second would start: $out"; fi
out=$("$musterctl" plan second --more research:nvidia.com/gpu=16) || fail "with 16 more second would start: $out"
has "$out" "default/second would start"
if out=$("$musterctl" plan second --more research:nvidia.com/gpu=15); then fail "with 15 more second would start: $out"; fi
has "$out" "of the limit of queue research, nvidia.com/gpu: 79, 40 is used"
for wrong in "nowhere:cpu=1|queue nowhere, which would get more, is not declared" "batch:cpu=1|neither a limit nor a quota of cpu" \
  "research=8|expected QUEUE:RESOURCE=AMOUNT" "research:nvidia.com/gpu=x|queue_capacity_changes[0].amounts.nvidia.com/gpu"; do
  if out=$("$musterctl" plan second --more "${wrong%%|*}" 2>&1); then fail "--more ${wrong%%|*} is taken"; fi
  has "$out" "${wrong##*|}"
done
#    A Job that names no gang is a gang of all its pods; its keys for Muster apply.
cat >"$work/job.yaml" <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: train, annotations: {muster.dev/queue: language}}
spec: {parallelism: 3, template: {spec: {containers: [{name: m, resources: {requests: {nvidia.com/gpu: 10}}}]}}}
YAML
if out=$("$musterctl" plan -f "$work/job.yaml"); then fail "30 more fit below 64: $out"; fi
has "$out" "asks for nvidia.com/gpu: 30, of the limit of queue research"
sed -i 's/gpu: 10/gpu: 8/' "$work/job.yaml"
out=$("$musterctl" plan -f "$work/job.yaml") || fail "24 more fit: $out"
has "$out" "there is room for 3 members"
sed 's/spec: {containers/spec: {schedulingGroup: {podGroupName: own}, containers/' "$work/job.yaml" >"$work/native.yaml"
if out=$("$musterctl" plan -f "$work/native.yaml" 2>&1); then fail "a gang that nothing declares is planned: $out"; fi
if grep -q "names two gangs" <<<"$out"; then fail "a Job that names Kubernetes' own PodGroup is put into another gang: $out"; fi
if out=$("$musterctl" explain queue nowhere 2>&1); then fail "a queue that does not exist is explained"; fi
has "$out" "there is no queue nowhere"

# 4. Refusals, and released capacity. A queue serves only the namespaces that it lists.
has "$("$musterctl" -n guest submit -f "$work/first.yaml" --id stranger --ttl 60)" "this gang is of namespace guest"
has "$("$musterctl" -n guest explain gang first)" "queue vision serves what queue research lists, namespaces default, lab; this gang is of namespace guest"
if out=$("$musterctl" -n guest plan first); then fail "a queue starts a gang that it does not serve: $out"; fi
has "$out" "this gang is of namespace guest"
"$musterctl" abandon stranger >/dev/null
has "$(gang third language 70 '')" "more than the limit of queue research"
#    A gang that can never run requests nothing of the queue, and blocks no other.
queues=$("$musterctl" get queues)
[ "$(row vision)" = 'vision 1 0 nvidia.com/gpu 16 - 24 40 0' ] || fail "a gang that can never run takes of the share of others: $queues"
if "$musterctl" explain queue language | grep -q third; then fail "third, which can never run, is in the line"; fi
has "$(gang fourth vision 20 ', muster.dev/preemptible: "false"')" "more than the quota of queue vision, nvidia.com/gpu: 16"
has "$(gang fifth elsewhere 1 '')" "there is no queue elsewhere"
more=", cpu: 1500m"
has "$(gang sixth batch 40 '')" Planned
has "$(metrics)" 'muster_queue_used{queue="batch",resource="cpu"} 1.5'
"$musterctl" abandon first >/dev/null
has "$("$musterctl" get submission second)" Planned
if out=$("$musterctl" apply -f <(printf 'apiVersion: muster.dev/v1alpha1\nkind: Queue\nmetadata: {name: more}\n') 2>&1); then
  fail "queues of the configuration were changed over gRPC"
fi
has "$out" "queues.source: config"

# 5. Queues of the API exist after a crash, and so do their decisions; an invalid change has no effect.
kill "$pid" && wait "$pid" 2>/dev/null || true
printf 'store: {path: api.db}\nqueues: {source: api}\n' | configure
cat >"$work/tree.yaml" <<YAML
apiVersion: muster.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  limit: {nvidia.com/gpu: 64}
  namespaces: [lab]
  namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [vision]}]}
  identities: ["token:spark"]
---
apiVersion: muster.dev/v1alpha1
kind: Queue
metadata: {name: vision}
spec: {parent: research, quota: {nvidia.com/gpu: 16}}
YAML
start
"$musterctl" apply -f "$work/node.yaml" -f "$work/tree.yaml" >/dev/null
has "$("$musterctl" explain queue vision)" "namespace lab and namespaces with labels team=vision and caller token:spark."
has "$("$musterctl" describe queue research)" "namespaces lab; namespaces with labels team in (vision); callers token:spark"
has "$(gang hop vision 1 '')" "this gang is of namespace default"
"$musterctl" abandon hop >/dev/null
sed -i 's/namespaces: \[lab\]/namespaces: [lab, default]/' "$work/tree.yaml"
"$musterctl" apply -f "$work/tree.yaml" >/dev/null
has "$(gang early vision 40 '')" Planned
has "$(gang late vision 40 '')" Waiting
"$musterctl" confirm early >/dev/null
kill -9 "$pid" && wait "$pid" 2>/dev/null || true
start
has "$("$musterctl" explain gang late)" "of the limit of queue research, nvidia.com/gpu: 64, 40 is used"
for wrong in "priority: 2147483648" "priority: 18446744073709551615" "maxApplications: 4294967297" "limit: {nvidia.com/gpu: 1500m}"; do
  printf 'apiVersion: muster.dev/v1alpha1\nkind: Queue\nmetadata: {name: odd}\nspec: {%s}\n' "$wrong" >"$work/wrong.yaml"
  if out=$("$musterctl" apply -f "$work/wrong.yaml" 2>&1); then fail "a queue with $wrong is taken: $out"; fi
  has "$out" "whole number"
done
for wrong in "namespaces: []|spec.namespaces: []; expected a list of at least one name" "identities: [spark]|expected token:NAME, user:NAME or cert:NAME" \
  "namespaceSelector: {matchLabel: {a: b}}|spec.namespaceSelector.matchLabel: {\"a\":\"b\"}; expected matchLabels" \
  "namespaceSelector: {matchExpressions: [{key: k, operator: Above}]}|spec.namespaceSelector.matchExpressions[0].operator: \"Above\"; expected In"; do
  printf 'apiVersion: muster.dev/v1alpha1\nkind: Queue\nmetadata: {name: odd}\nspec: {%s}\n' "${wrong%%|*}" >"$work/wrong.yaml"
  if out=$("$musterctl" apply -f "$work/wrong.yaml" 2>&1); then fail "a queue with ${wrong%%|*} is taken: $out"; fi
  has "$out" "${wrong##*|}"
done
sed 's/gpu: 16/gpu: 160/' "$work/tree.yaml" >"$work/wrong.yaml"
if out=$("$musterctl" apply -f "$work/wrong.yaml" 2>&1); then fail "a quota above the limit was taken"; fi
has "$out" "queue vision: its quota of nvidia.com/gpu: 160 is above the limit of queue research"
sed 's/gpu: 64/gpu: 80/' "$work/tree.yaml" >"$work/more.yaml"
"$musterctl" apply -f "$work/more.yaml" >/dev/null
has "$("$musterctl" get submission late)" Planned
"$musterctl" delete -f "$work/tree.yaml" >/dev/null
kill -9 "$pid" && wait "$pid" 2>/dev/null || true
start
has "$("$musterctl" get queues)" "no queues are declared"
echo "queues: ok"
