#!/usr/bin/env python3
"""Plants bugs, one at a time, in a copy of the tree and sees whether the tests catch each: make plant-bugs

A bug that survives names a test that is missing. Works in build/bugs, never in the tree itself.

  plant_bugs.py            every bug
  plant_bugs.py NAME...    only these
  plant_bugs.py --check    plants nothing: does each still find what it would change?
"""
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build/bugs"
TESTS = ["scenario_test", "random_commands_test", "unit_test", "engine_test", "extender_http_test", "informer_test", "rpc_test",
         "security_test"]

# name: (file, what stands there, what is put instead)
BUGS = {
    "quorum-one-short": ("state/machine/binding.cc", "if (each->plan->held < static_cast<int32_t>(each->plan->slots.size())) return;",
                         "if (each->plan->held + 1 < static_cast<int32_t>(each->plan->slots.size())) return;"),
    "no-reservation": ("state/machine/binding.cc", "  SetCharge(pod, node, ChargeKind::kUsed);\n  if (pod->by_permit) {",
                       "  if (pod->by_permit) {"),
    "commit-unverified": ("state/machine/binding.cc", "const Reason reason = VerifyPlan(*each);",
                          "const Reason reason;"),
    "hang-up-still-binds": ("state/machine/binding.cc", 'if (pod->holds.empty()) EndPodHold(pod, {ReasonCode::kGone, "the caller is gone"});', ""),
    "rollback-forgets": ("state/placement/statement.h", "while (operations_.size() > mark) {", "while (operations_.size() > mark + 1) {"),
    "free-counted-once": ("state/placement/cluster.cc", "  node.free.AddTimes(c.request, times);\n", "  node.free.AddTimes(c.request, 1);\n"),
    "pods-limit-ignored": ("state/placement/cluster.cc", "  request->Set(kPods, 1);\n", "  request->Set(kPods, 0);\n"),
    "taints-ignored": ("state/placement/cluster.cc",
                       "if (FirstUntolerated(node.facts.taints, c.shape.tolerations) != nullptr) return Obstacle::kTaint;", ""),
    "host-ports-ignored": ("state/placement/cluster.cc", "if (Conflicts(held, port)) return 0;", "if (Conflicts(held, port) && limit < 0) return 0;"),
    "index-stale": ("state/placement/class_index.cc", "  if (score == before) return;", "  if (score <= before) return;"),
    "worst-node-first": ("state/placement/class_index.h", "a.negative_score < b.negative_score", "a.negative_score > b.negative_score"),
    "driver-after-executors": ("state/placement/planner.cc", "    if (run.priority < lowest_allowed) break;\n", ""),
    "priority-upside-down": ("state/queueing/order.h", "std::tie(b.half_bound, b.priority, a.requeues", "std::tie(b.half_bound, a.priority, a.requeues"),
    "requeues-ignored": ("state/machine/rules.cc", "GangPriority(gang), gang.requeues, gang.created_ms, gang.key};",
                         "GangPriority(gang), 0, gang.created_ms, gang.key};"),
    "terminated-count": ("state/machine/rules.cc",
                         "int32_t count = gang.active() + gang.count(MemberState::kWaiting) +",
                         "int32_t count = gang.active() + gang.count(MemberState::kFailed) + gang.count(MemberState::kWaiting) +"),
    "gated-count": ("state/machine/rules.cc", "gang.count(MemberState::kPending) - gang.gated;", "gang.count(MemberState::kPending);"),
    "satisfied-for-ever": ("state/machine/rules.cc",
                           "!in_flight) {\n    gang->satisfied = false;\n", "!in_flight) {\n"),
    "one-bound-satisfies": ("state/machine/rules.cc", "      Missing(*gang) == 0 && (gang->rules.group.empty()", "      (gang->rules.group.empty()"),
    "wait-time-starts-anew": ("state/machine/planning.cc", "if (gang->holding_by_plan) gang->held_ms += now_ms_ - gang->holding_since_ms;", ""),
    "no-back-off": ("state/machine/planning.cc",
                    "gang->retry_at_ms = now_ms_ + std::min(kBackoffMaxMs, kBackoffStartMs << doublings);", ""),
    "timeout-unmarked": ("state/machine/timers.cc", "      out_->effects.emplace_back(MarkTimedOut{RefOf(*pod)});\n", ""),
    "blocked-for-ever": ("state/machine/planning.cc", "    if (helps) awake_.insert(signature);", ""),
    "different-minimum-alike": ("state/machine/planning.cc", 'absl::StrCat(Missing(*gang), "/", GangPriority(*gang), "/",',
                                'absl::StrCat(GangPriority(*gang), "/",'),
    "next-of-its-kind-sleeps": ("state/machine/planning.cc", "    if (!alike.empty() && blocked_.contains(alike)) awake_.insert(alike);\n", ""),
    "half-a-group-commits": ("state/machine/binding.cc",
                             "    if (each->plan->held < static_cast<int32_t>(each->plan->slots.size())) return;\n",
                             "    if (each == gang && each->plan->held < static_cast<int32_t>(each->plan->slots.size())) return;\n"),
    "group-by-naming": ("state/machine/group.cc", "    if (other->rules.group == ids) continue;\n", "    continue;\n"),
    "cycle-never-ends": ("state/machine/turns.cc", "  HadTurn(pod);\n  AdvanceCycle(gang);\n  return reason;", "  if (reason.none()) HadTurn(pod);\n  AdvanceCycle(gang);\n  return reason;"),
    "non-strict-releases": ("state/machine/turns.cc", "if (gang == nullptr || gang->rules.mode == GangMode::kNonStrict) return;", "if (gang == nullptr) return;"),
    "node-not-offered": ("state/machine/verbs.cc", "    if (!offered(slots[i])) continue;\n", ""),
    "guard-asleep": ("state/machine/verbs.cc", "    reply.guarded.push_back(cluster_.node(node).facts.name);\n", ""),
    "guard-too-strict": ("state/machine/verbs.cc", "GangPriority(*promise.gang) < pod.facts.priority && !promise.gang->plan->committed;", "false;"),
    "preempts-gangs": ("state/machine/verbs.cc", "if (gang->active() - count < gang->rules.min_member) return true;", ""),
    "members-preempt": ("state/machine/verbs.cc", "const bool alone = pod == nullptr || pod->gang == nullptr || PassesOneByOne(*pod->gang);",
                        "const bool alone = true;"),
    "record-forgets": ("state/machine/durable.cc", "  record.set_held_ms(now.held_ms);\n", ""),
    "commit-record-late": ("service/engine/engine.cc", "  CommitRecords();\n  Publish();\n  if (!batch_effects_.empty()) effects_->Carry(std::exchange(batch_effects_, {}));\n",
                           "  if (!batch_effects_.empty()) effects_->Carry(std::exchange(batch_effects_, {}));\n  CommitRecords();\n  Publish();\n"),
    "answers-lost-on-stop": ("service/engine/engine.cc", "    if (stop) Apply(Shutdown{}, &outcome);\n", "    if (stop) holds_.clear();\n"),
    "podgroup-wins": ("state/model/gang.cc", "Assign(Pick(annotations, object, &D::min_member), &rules.min_member);",
                      "Assign(Pick(object, annotations, &D::min_member), &rules.min_member);"),
    "negative-quantity": ("state/base/quantity.cc", 'if (negative) return NotAQuantity(text, "negative");', ""),
    "submission-never-expires": ("state/machine/timers.cc", "    if (gang->submission->expires_ms > now_ms_) return;\n", "    return;\n"),
    "confirm-any-plan": ("state/machine/submission.cc", "  if (gang->plan->id != command.plan) {", "  if (command.plan < 0) {"),
    "group-confirmed-by-one": ("state/machine/submission.cc",
                               "if (each->submission == nullptr || !each->submission->confirmed) return AnswerSubmission(*gang);",
                               "if (each->submission == nullptr) return AnswerSubmission(*gang);"),
    "permit-kept-for-ever": ("state/machine/permit.cc", "  pod->bind_by_ms = now_ms_ + pod->bind_within_ms;\n", "  pod->bind_by_ms = kNever - 1;\n"),
    "gap-unseen": ("state/machine/updates.cc", "  if (step.version - 1 <= facts_version_) return absl::OkStatus();\n", "  return absl::OkStatus();\n"),
    "half-a-step": ("state/machine/updates.cc", "  if (!out_->status.ok()) return;\n  for (const std::string& uid : command.removed_pods)",
                    "  for (const std::string& uid : command.removed_pods)"),
    "readers-write": ("service/rpc/door.cc", "if (may.ok() && role == Role::kReadWrite && identity->role != Role::kReadWrite) {",
                      "if (may.ok() && role == Role::kReadWrite && identity->name.empty()) {"),
    "answers-forgotten": ("service/rpc/request_log.cc", "    if (fresh) {\n", "    if (fresh || !key.empty()) {\n"),
    "streams-uncounted": ("service/security/limits.cc", "  ++entry.streams;\n", ""),
    "snapshot-never-gives-way": ("service/rpc/facts_service.cc", "if (now - oldest->second < stall_) return false;",
                                 "if (now - oldest->second < stall_ * 1'000'000) return false;"),
    "leaving-uses-nothing": ("state/machine/facts.cc", "  if (pod->on_node()) UseNode(pod);\n  if (pod->gang == nullptr && (gang_changed",
                             "  if (pod->state != MemberState::kLeaving && pod->on_node()) UseNode(pod);\n  if (pod->gang == nullptr && (gang_changed"),
    "repair-without-policy": ("state/machine/binding.cc", "    gang->repair_until_ms = now_ms_ + settings_.repair_ms;\n", ""),
    "evicted-once": ("state/machine/binding.cc", "  gang->evict_again_ms = now_ms_ + kEvictAgainMs;\n", ""),
    "snapshot-without-end": ("service/rpc/facts_service.cc", "    if (!ended_) {", "    if (parts_ < 0) {"),
    "text-cut-anywhere": ("state/base/text.h", "  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;\n", ""),
    "errors-of-any-size": ("service/rpc/errors.cc", "  return text.size() <= bytes ? std::string(text)", "  return bytes > 0 ? std::string(text)"),
    "placed-pods-submitted": ("service/rpc/reading.cc", "    if (pod.node_name.empty() && pod.phase", "    if (true || pod.phase"),
    "members-of-any-size": ("service/rpc/reading.cc", " + 2 * name.size() + id.size());", ");"),
    "errors-kept-uncounted": ("service/rpc/request_log.cc", "answer.response.size() + answer.status.error_message().size() +", "answer.response.size() +"),
    "ranges-read": ("service/http/door_stream.cc", "if (line_matches_ == kRange.size()) return true;", ""),
    "chunks-read": ("service/http/http_listener.cc", 'if (request.has_header("Transfer-Encoding") || ', "if ("),
    "multipart-read": ("service/http/http_listener.cc", 'request.get_header_value("Content-Type"), "multipart/")', 'request.get_header_value("Content-Type"), "none/")'),
    "name-cut-at-nul": ("service/http/door_stream.cc", "std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(length));",
                        "std::string name(reinterpret_cast<const char*>(text));"),
    "unchecked-certificate": ("service/security/tls_context.cc", "  Look();\n  return pem_;",
                              "  Look();\n  auto raw = std::make_shared<TlsPem>(*pem_);\n  raw->certificate = *ReadFile(files_.certificate);\n"
                              "  raw->generation = FileStamp(files_.certificate);\n  return raw;"),
    "devices-read": ("service/support/file.cc", "  if (!S_ISREG(info.st_mode)) return Refused(path, \"it is not a regular file\");\n", ""),
    "deleted-group-holds": ("state/machine/facts.cc", "  for (Pod* pod : waiting) {\n    EndPodHold(pod, {ReasonCode::kUnknownGang",
                            "  for (Pod* pod : MemberSet()) {\n    EndPodHold(pod, {ReasonCode::kUnknownGang"),
    "invalid-has-no-turn": ("state/machine/verbs.cc", "Reason turn = gate.none() ? TakeTurn(pod)", "Reason turn = gate.none() && reply.reason.none() ? TakeTurn(pod)"),
    "strangers-count": ("state/machine/rules.cc", "  if (gang.submission != nullptr) {  // who only", "  if (gang.satisfied) {  // who only"),
    "submitted-loses-rules": ("state/machine/facts.cc", "facts.gang.in_gang() || (facts.gang.name == pod->facts.gang.name && !facts.gang.declares);",
                              "facts.gang.in_gang();"),
    "whole-gang-evicted": ("state/machine/binding.cc", "gang->satisfied && !gang->evicting && !whole) {", "gang->satisfied && !gang->evicting) {"),
    "place-kept-on-cancel": ("service/rpc/decision_service.cc",
                             "    if (!std::exchange(ended_, true)) door()->engine().EndPermit(permit_.uid, token_);\n", ""),
    "deleted-unseen": ("k8s-extender/apiserver/informer.cc", "    handlers_.remove(known->second, known->first);\n    known = known_.erase(known);",
                       "    known = known_.erase(known);"),
}


def run(command, **kwargs):
    return subprocess.run(command, cwd=COPY, capture_output=True, text=True, **kwargs)


def build():
    return run(["cmake", "--build", "out", "-j", str(os.cpu_count()), "--target", *TESTS])


def caught_by():
    for test in TESTS:
        try:
            result = run([f"out/tests/{test}"], timeout=120)
        except subprocess.TimeoutExpired:
            return f"{test} (hangs)"
        if result.returncode != 0:
            return test
    return None


def check():
    found = 0
    for name, (file, before, _) in BUGS.items():
        times = (ROOT / file).read_text().count(before)
        if times != 1:
            print(f"{name}: {file} has the text to change {times} times; expected once")
            found += 1
    print(f"{len(BUGS)} bugs, {found} cannot be planted")
    return 1 if found else 0


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    names = sys.argv[1:] or list(BUGS)
    shutil.rmtree(COPY, ignore_errors=True)
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listing.stdout.split():
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)
    os.environ["MUSTER_STEPS"] = "3000"
    # A bug may leave a variable unused: that is not what should catch it.
    settings = COPY / "cmake/Muster.cmake"
    settings.write_text(settings.read_text().replace("-Werror ", ""))
    run(["cmake", "-G", "Ninja", "-B", "out", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], check=True)
    if build().returncode != 0 or caught_by():
        print("the tree itself does not build or pass: plant nothing")
        return 1
    survivors = []
    for name in names:
        file, before, after = BUGS[name]
        path = COPY / file
        text = path.read_text()
        if text.count(before) != 1:
            print(f"{name}: {file} has the text to change {text.count(before)} times; expected once", flush=True)
            survivors.append(name)
            continue
        start = time.time()
        path.write_text(text.replace(before, after))
        built = build()
        test = "the compiler" if built.returncode != 0 else caught_by()
        path.write_text(text)
        print(f"{name}: {'caught by ' + test if test else 'SURVIVES'} ({time.time() - start:.0f} s)", flush=True)
        if test is None:
            survivors.append(name)
        elif test == "the compiler":
            print(built.stdout[-2000:])
            survivors.append(name)
    print(f"{len(names) - len(survivors)} of {len(names)} planted bugs were caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
