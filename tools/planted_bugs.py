"""The bugs that tools/plant_bugs.py plants, by the room they are planted in.

name: (file, the text that stands there once, what is put instead)
"""
BUGS = {
    # --- values: base and model ---
    "podgroup-wins": (
        "state/model/gang.cc",
        "Assign(Pick(annotations, object, &D::min_member), &rules.min_member);",
        "Assign(Pick(object, annotations, &D::min_member), &rules.min_member);"),
    "negative-quantity": (
        "state/base/quantity.cc",
        'if (negative && !number->digits.empty()) return NotAQuantity(text, "negative");',
        ""),
    "text-cut-anywhere": (
        "state/base/text.h",
        "  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;\n",
        ""),
    # --- placement ---
    "rollback-forgets": (
        "state/cluster/statement.h",
        "while (operations_.size() > mark) {",
        "while (operations_.size() > mark + 1) {"),
    "free-counted-once": (
        "state/cluster/cluster.cc",
        "    const int64_t after = Told(before == kLeastTold ? node->Left(id) : before - change);\n",
        "    const int64_t after = before - amount * (times > 0 ? 1 : -1);\n"),
    "free-wraps-back": (
        "state/cluster/cluster.cc",
        "Told(before == kLeastTold ? node->Left(id) : before - change)",
        "Told(before - change)"),
    "pods-limit-ignored": ("state/cluster/cluster.cc", "  cls->request.Set(kPods, 1);\n", "  cls->request.Set(kPods, 0);\n"),
    "refusal-forgotten": (
        "state/cluster/cluster.cc",
        "gained && kind == ChargeKind::kUsed && ForgetRefusals(id);",
        "gained && ForgetRefusals(id);"),
    "list-overlooks": (
        "state/cluster/class_index.cc",
        "    Chunk& chunk = *family->chunks[Find(now, *family)];\n"
        "    Raise(node, *family, &chunk);\n    chunk.loose = true;\n    return;\n",
        "    return;\n"),
    "everybody-says-it-himself": (
        "state/gangs/declarations.cc",
        "    Mut(pod).facts.gang.declaration = *gang.annotations;  // one for all that say the same\n",
        ""),
    "a-groups-only-member-is-taken": (
        "state/frontends/extender_preempt.cc",
        "if (pod->gang->rules.min_member <= 1 && pod->gang->rules.group.empty()) continue;",
        "if (pod->gang->rules.min_member <= 1) continue;"),
    "mild-as-it-was": (
        "state/cluster/class_index.cc",
        "    family->malus[at] = cluster_->Malus(node, cls);\n  }\n",
        "  }\n"),
    "refused-for-all": (
        "state/cluster/class_index.cc",
        "  return obstacle == Obstacle::kNone || obstacle == Obstacle::kLearned;\n",
        "  return obstacle == Obstacle::kNone;\n"),
    "going-is-nobody": (
        "state/frontends/extender_frontend.cc",
        "  const bool going = r_.ledger->going().contains(node) ||", "  const bool going ="),
    "mended-though-nobody-started": (
        "state/machine/reconciler.cc",
        "  r_.bindings->EndUnlessSomeStarted(gang, step);\n",
        ""),
    "interrupted-start-overtaken": (
        "state/machine/machine.cc",
        "  if (reading && sources_.complete()) {", "  if (reading && !sources_.complete()) {"),
    "ports-unverified": ("state/cluster/feasibility.cc", " && !PortsCollide(id, cls) &&", " &&"),
    "names-kept": ("state/base/resources.cc", "    if (--name.users > 0) continue;\n", "    if (--name.users >= 0) continue;\n"),
    "sums-wrap": (
        "state/base/resources.h",
        "At(entry.id) += static_cast<T>(entry.amount) * times;",
        "At(entry.id) = static_cast<T>(static_cast<int64_t>(At(entry.id) + static_cast<T>(entry.amount) * times));"),
    "one-try-only": ("state/scheduling/planning.cc", "settings_.tries << doublings", "1"),
    "room-for-one-more": (
        "state/scheduling/waking.cc",
        "    room += r_.cluster->Room(entry.node, cls, wait_for.at_least - room);\n    if (room >= wait_for.at_least) return true;",
        "    room += r_.cluster->Room(entry.node, cls, wait_for.at_least - room);\n    if (room > wait_for.at_least) return true;"),
    "executor-before-driver": (
        "state/reservations/plans.cc",
        "!slot.Suits(pod) || slot.priority > pod.facts.priority) continue;",
        "!slot.Suits(pod)) continue;"),
    "extras-wait": (
        "state/frontends/extender_frontend.cc",
        "const bool open = r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasPlaceFor(pod);",
        "const bool open = true;"),
    "interrupted-is-satisfied": (
        "state/machine/ingest.cc",
        "    if (pod != nullptr && !pod->facts.node_name.empty()) continue;\n",
        "    if (pod != nullptr) continue;\n"),
    "total-forgets-a-node": ("state/cluster/cluster.cc", "  Refresh(&node);\n  CountFree(node, 1);\n", "  Refresh(&node);\n"),
    "half-bound-overtaken": (
        "state/queueing/backlog.cc",
        "  return half_bound_.empty() || first.first.half_bound ? &first : nullptr;\n",
        "  return &first;\n"),
    "half-bound-for-ever": (
        "state/machine/due.cc",
        "  if (r_.repair->FinishBy(gang) <= step->now_ms()) LeaveHalf(gang, step);\n",
        "  if (r_.repair->FinishBy(gang) <= step->now_ms()) r_.repair->EndFinish(gang);\n"),
    "nobody-gives-way": (
        "state/frontends/verbs_make_way.cc",
        "    if (RoomWithout(pod, at, &key)) return MakeRoom(pod, at, step);\n",
        ""),
    "the-last-keeps-all": ("state/frontends/verbs_make_way.cc", "  if (in_the_way && gang.count", "  if (!in_the_way && gang.count"),
    "first-gives-way": (
        "state/frontends/verbs_make_way.cc",
        "(after != nullptr && !(*after < r_.eligibility->KeyOf(*other.gang)))",
        "(after != nullptr && (*after < r_.eligibility->KeyOf(*other.gang)))"),
    "guarded-never-called": (
        "state/machine/machine.cc",
        "  calls_.CallGuarded(&step);\n",
        ""),
    "interrupted-alone": (
        "state/machine/ingest.cc",
        "    if (!interrupted.contains(plan)) continue;\n",
        "    continue;\n"),
    "another-of-its-name": (
        "state/machine/ingest.cc",
        "    if (!IsThatGang(gang, gang.kept.incarnation)) r_.gangs->DropRestored(gang);\n",
        ""),
    "permit-not-kept": (
        "state/binding/permits.cc",
        "  RecordCommit(pod, r_.barrier->Of(pod).node, start, /*permitted=*/true, step);\n",
        ""),
    "hand-ends-the-reading": (
        "state/machine/machine.cc",
        "  if (restored_.empty()) announcements_.Complete(\"\", step);",
        "  announcements_.Complete(\"\", step);"),
    "plan-numbers-begin-anew": ("state/machine/machine.cc", "  plans_.ContinueAt(restored_.next_plan());\n", ""),
    "head-stays": ("state/binding/commitments.cc", "  DeleteStartRecord(start, step);\n", ""),
    "late-reader-is-free": (
        "state/machine/ingest_pods.cc",
        "  if (cls != kNoClass && (!charged.empty() || first)) {",
        "  if (cls != kNoClass && !charged.empty()) {"),
    "evicted-starts": (
        "state/binding/bindings.cc",
        "if (!has_slot || !usable || pod.gang->kept.evicting) {",
        "if (!has_slot || !usable) {"),
    "repair-without-end": (
        "state/binding/repair.cc",
        "  if (state.repair_until_ms == kNever) {\n    state.repair_until_ms = now_ms",
        "  {\n    state.repair_until_ms = now_ms"),
    "back-off-outlives-quorum": ("state/binding/bindings.cc", "  r_.gangs->SetRetry(gang, 0);\n", ""),
    "marked-before-satisfied": (
        "state/gangs/eligibility.cc",
        "gang.kept.timed_out && !gang.once_satisfied();",
        "gang.kept.timed_out;"),
    "taints-ignored": (
        "state/cluster/feasibility.cc",
        "if (FirstUntolerated(node.facts.taints, c.shape->tolerations) != nullptr) return Obstacle::kTaint;",
        ""),
    "host-ports-ignored": (
        "state/cluster/feasibility.cc",
        "if (Conflicts(held.port, port)) return 0;",
        "if (Conflicts(held.port, port) && limit < 0) return 0;"),
    "index-stale": (
        "state/cluster/class_index.cc",
        "before.negative_score == now.negative_score && before.rank == now.rank) {",
        "before.negative_score <= now.negative_score && before.rank == now.rank) {"),
    "reused-id-keeps-its-place": (
        "state/cluster/class_index.cc",
        "before.negative_score == now.negative_score && before.rank == now.rank) {",
        "before.negative_score == now.negative_score) {"),
    "worst-node-first": (
        "state/cluster/class_index.h",
        "a.negative_score < b.negative_score",
        "a.negative_score > b.negative_score"),
    "driver-after-executors": ("state/planner/planner.cc", "    if (run.priority < lowest_allowed) break;\n", ""),
    # --- the queue ---
    "priority-upside-down": (
        "state/model/queue_order.h",
        "std::tie(b.half_bound, b.priority, a.requeues",
        "std::tie(b.half_bound, a.priority, a.requeues"),
    "blocked-for-ever": ("state/queueing/backlog.cc", "    alike.anew = alike.anew || anew;\n    List(&alike);\n", ""),
    # --- gangs ---
    "requeues-ignored": (
        "state/gangs/eligibility.cc",
        "Priority(gang), gang.kept.requeues, gang.created_ms,",
        "Priority(gang), 0, gang.created_ms,"),
    "terminated-count": (
        "state/gangs/eligibility.cc",
        "  if (quorum.Enough()) return {};\n",
        "  if (quorum.Children() + gang.count(MemberState::kFailed) >= gang.rules.min_member) return {};\n"),
    "gated-count": (
        "state/gangs/eligibility.cc",
        "  if (quorum.Enough()) return {};\n",
        "  if (quorum.Children() + gang.gated >= gang.rules.min_member) return {};\n"),
    # --- subgroups and domains ---
    "subgroups-children-are-one-heap": (
        "state/gangs/eligibility.cc",
        "  if (quorum.Enough()) return {};\n",
        "  if (quorum.Children() >= gang.rules.min_member) return {};\n"),
    "any-subgroups-place": (
        "state/reservations/plans.h",
        "return !to_come && cls == pod.cls && leaf == pod.leaf; }",
        "return !to_come && cls == pod.cls && leaf >= 0; }"),
    "optional-subgroups-are-needed": (
        "state/planner/tree_planner.cc",
        "  return PlaceAll(*children[from], region, others) || PlaceChildren(children, from + 1, needed, region, next);\n",
        "  return PlaceAll(*children[from], region, others);\n"),
    "subgroup-in-part": (
        "state/scheduling/demand.cc",
        "out.needed = gang_.quorum().LeafAt(leaf).Missing(gang_.kept.satisfied);",
        "out.needed = std::min(1, gang_.quorum().LeafAt(leaf).Missing(gang_.kept.satisfied));"),
    "running-members-fill-any-subgroup": (
        "state/gangs/counts.cc",
        "  change.active = pod.active() ? times : 0;\n", "  change.active = pod.active() ? 0 : 0;\n"),
    "unknown-subgroup-is-the-first": (
        "state/gangs/counts.cc",
        "pod->gang->rules.tree.LeafNamed(pod->facts.gang.subgroup) : 0;",
        "std::max(0, pod->gang->rules.tree.LeafNamed(pod->facts.gang.subgroup)) : 0;"),
    "parent-counts-pods": (
        "state/model/quorum.cc",
        "node.leaf >= 0 ? count_of(static_cast<size_t>(node.leaf)) : satisfied[i];",
        "node.leaf >= 0 ? count_of(static_cast<size_t>(node.leaf)) : satisfied[i] * 2;"),
    "circle-of-subgroups": (
        "state/model/subgroups.cc", "if (++depth <= kMaxSubgroupDepth) continue;", "if (++depth <= 0) break;"),
    "required-is-preferred": (
        "state/planner/tree_planner.cc",
        "  if (!demand.topology.required.empty()) return PlaceRequired(demand, region, next);\n",
        "  if (!demand.topology.required.empty() && PlaceRequired(demand, region, next)) return true;\n"),
    "loosest-rack": (
        "state/planner/tree_planner.cc",
        "    if (a.first != b.first) return a.first < b.first;\n", "    if (a.first != b.first) return a.first > b.first;\n"),
    "home-is-forgotten": (
        "state/scheduling/demand.cc", "  out.home = homes.front();\n", "  out.home = kNoNode;\n"),
    "extras-leave-the-domain": (
        "state/frontends/extender_frontend.cc",
        "    if (node != kNoNode && !region.Has(node)) reply.guarded.push_back(name);\n",
        "    if (node != kNoNode && !region.Has(node)) continue;\n"),
    "slots-leave-the-domain": (
        "state/frontends/extender_frontend.cc",
        "    if (!region.Has(entry.node) || !offer.Contains(", "    if (region.Has(-1) || !offer.Contains("),
    "permit-leaves-the-domain": (
        "state/frontends/verbs_permit.cc",
        "pod.state == MemberState::kPending && !r_.domains->For(*gang, pod.leaf).Has(node)) {",
        "pod.state == MemberState::kPending && !r_.domains->Kept(*gang)) {"),
    "relabelled-nodes-keep-their-promises": (
        "state/binding/plan_lifecycle.cc", " && r_.domains->Kept(gang)) continue;", ") continue;"),
    "other-rules-same-plan": (
        "state/machine/reconciler.cc", "plan->shape != ShapeOf(gang.rules)) {", "plan->shape.empty() && !plan->shape.empty()) {"),
    "racks-of-one-name-are-one": (
        "state/cluster/topology.cc",
        "  if (own == &of.facts.name || std::find(levels_.begin(), levels_.end(), level.key) == levels_.end()) return *own;\n",
        "  return *own;\n"),
    "domain-rooms-go-stale": (
        "state/cluster/topology.cc",
        "      if (domain != kNoDomain) sum.rooms[static_cast<size_t>(domain)] += more;\n",
        "      if (domain != kNoDomain) sum.rooms[static_cast<size_t>(domain)] += 0;\n"),
    "spread-packs": (
        "state/planner/tree_planner.cc",
        "turns.emplace(members + 1, std::move(name), domain);", "turns.emplace(members, std::move(name), domain);"),
    "subgroups-are-not-kept": (
        "state/persistence/declaration.cc", "    out.set_parent(subgroup.parent);\n", ""),
    "group-by-naming": (
        "state/gangs/groups.cc",
        "    if (groups.Of(other->id) == groups.Of(gang.id)) continue;\n",
        "    continue;\n"),
    "stale-look": ("state/gangs/groups.cc", "  if (look.changes != gangs_->changes()) {", "  if (look.changes < 0) {"),
    "mates-not-told": (
        "state/machine/reconciler.cc",
        "    } else if (r_.plans->Of(*mate) == nullptr && SettleReason(*mate, now_ms)) {",
        "    } else if (r_.plans->Of(*mate) != nullptr && SettleReason(*mate, now_ms)) {"),
    "leader-not-told": ("state/machine/reconciler.cc", "    if (mate == &leader || (decides", "    if ((decides"),
    "strangers-count": (
        "state/gangs/eligibility.cc",
        "  if (!gang.submitted || !gang.rules.tree.empty()) return gang.quorum().Missing(finishing);\n",
        "  return gang.quorum().Missing(finishing);\n"),
    "refused-in-silence": (
        "state/machine/ingest.cc",
        "    r_.refused->NoteNode(node.name, changed.status().message());\n",
        ""),
    "refused-for-ever": ("state/machine/ingest.cc", "  r_.refused->ForgetNode(node.name);\n", ""),
    "unreadable-in-silence": (
        "k8s-extender/apiserver/cluster_feed.cc",
        "  port_->Announce(UnreadableFact{kind, std::move(name), std::string(status.message())}).IgnoreError();\n",
        ""),
    # --- records ---
    "record-forgets": ("state/persistence/records.cc", "  record.set_held_ms(gang.kept.held_ms);\n", ""),
    # --- starts ---
    "quorum-one-short": (
        "state/binding/bindings.cc",
        "if (plan.held < plan.present()) return;",
        "if (plan.held + 1 < plan.present()) return;"),
    "no-reservation": (
        "state/binding/bindings.cc",
        "  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);\n  r_.ledger->NoteGoing(pod.id);\n",
        ""),
    "commit-unverified": (
        "state/binding/bindings.cc",
        "const Reason reason = VerifyPlan(*each, step->now_ms());",
        "const Reason reason;"),
    "wait-time-starts-anew": (
        "state/barrier/wait_clock.h",
        "    if (state.by_plan) gangs_->SetHeld(gang, gang.kept.held_ms + now_ms - state.since_ms);\n",
        ""),
    "no-back-off": (
        "state/binding/plan_lifecycle.cc",
        "  r_.gangs->SetRetry(gang, now_ms + std::min(kBackoffMaxMs, first_ms << doublings));\n",
        ""),
    "timeout-unmarked": ("state/binding/plan_lifecycle.cc", "      step->Do(MarkTimedOut{RefOf(*pod)});\n", ""),
    "different-minimum-alike": (
        "state/scheduling/planning.cc",
        "| (queued ? kQueued : 0), r_.eligibility->Missing(gang),", "| (queued ? kQueued : 0),"),
    "next-of-its-kind-sleeps": ("state/scheduling/planning.cc", "    if (!alike.empty()) r_.backlog->WakeAlike(alike, anew);\n", ""),
    "half-a-group-commits": (
        "state/binding/bindings.cc",
        "if (plan.held < plan.present()) return;",
        "if (each == &gang && plan.held < plan.present()) return;"),
    # Members that do not exist yet (P-7).
    "starts-of-nobody": ("state/model/quorum.cc", "if (!ahead_ || !anybody) return out;", "if (!ahead_) return out;"),
    "optional-planned-ahead": ("state/model/subgroups.cc", "    if (!Needed(*tree, node)) continue;\n", ""),
    "who-comes-takes-nothing": ("state/binding/future_slots.cc", "    r_.plans->Meet(*pod, slot);\n    any = true;\n", ""),
    "place-without-a-look": (
        "state/cluster/feasibility.cc",
        "  if (FindObstacle(id, cls) != Obstacle::kNone) return false;\n  ResourceSum regained;",
        "  ResourceSum regained;"),
    "place-beside-whom-it-avoids": (
        "state/cluster/feasibility.cc",
        "  return !collides && (!pod_class(cls).has_neighbours || neighbours_.Room(id, cls, 1) > 0);",
        "  return !collides;"),
    "place-of-another-size": (
        "state/cluster/feasibility.cc",
        "  if (!FitsWith(id, cls, regained)) return false;\n",
        ""),
    "room-to-come-for-ever": (
        "state/machine/due.cc",
        "    if (plan->committed && gang.kept.room_until_ms != 0) due = std::min(due, gang.kept.room_until_ms);\n",
        ""),
    "room-to-come-lost-at-restart": (
        "state/machine/ingest.cc",
        "    if (kept && gang.active() > 0) r_.gangs->SetSatisfied(gang, false);\n",
        ""),
    "room-to-come-anew-each-time": (
        "state/binding/bindings.cc",
        "r_.plans->Of(gang)->to_come > 0 && gang.kept.room_until_ms == 0;",
        "r_.plans->Of(gang)->to_come > 0;"),
    "who-left-leaves-no-place": (
        "state/binding/future_slots.cc",
        "      r_.plans->Await(gang, slot);\n",
        ""),
    "more-room-than-is-due": (
        "state/binding/future_slots.cc",
        "    for (; spare > 0; --spare) {",
        "    for (; spare > 1'000'000; --spare) {"),
    "room-outlives-its-gang": (
        "state/binding/future_slots.cc",
        "if (gang.active() == 0 || plan->shape != ShapeOf(gang.rules)) return GiveBackToCome(gang);",
        "if (plan->shape != ShapeOf(gang.rules)) return GiveBackToCome(gang);"),
    "stale-plan-with-members-to-come": (
        "state/binding/future_slots.cc",
        "  if (absl::c_any_of(due, [](int32_t left) { return left != 0; })) {",
        "  if (absl::c_any_of(due, [](int32_t left) { return left > 1'000'000; })) {"),
    "who-came-is-not-looked-at-again": (
        "state/frontends/extender_frontend.cc",
        "  r_.claims->SettleToCome(gang, step);  // what kept it off its place may be gone (P-7)\n",
        ""),
    "hold-forgets-who-waits-for-ends": (
        "state/scheduling/reserve_room.cc",
        "      r_.heads->NoteCouldRun(gang, /*could=*/true, /*strict=*/false, now_ms);\n",
        ""),
    "permit-kept-for-ever": (
        "state/binding/permits.cc",
        "  state.permission.bind_by_ms = step->now_ms() + state.permission.bind_within_ms;\n",
        "  state.permission.bind_by_ms = kNever - 1;\n"),
    "repair-without-policy": ("state/binding/repair.cc", "state.repair_until_ms = now_ms + repair_ms_;", ";"),
    "evicted-once": ("state/binding/repair.cc", "  states_[gang.id].evict_again_ms = step->now_ms() + kEvictAgainMs;\n", ""),
    "whole-gang-evicted": (
        "state/binding/repair.cc",
        "  if (gang.whole()) return gangs_->SetRequeues(gang, 0);\n",
        ""),
    "hold-without-deadline": (
        "state/barrier/barrier.cc",
        "  gangs_->SetState(pod, MemberState::kWaiting);\n"
        "  deadlines_->Look(pod.id);\n",
        "  gangs_->SetState(pod, MemberState::kWaiting);\n"),
    # --- drivers ---
    "cycle-never-ends": (
        "state/frontends/verbs_frontend.cc",
        "  r_.gangs->HadTurn(pod);\n"
        "  if (reason.none()) r_.gangs->NotePassed(pod, now_ms);\n"
        "  r_.gangs->AdvanceCycle(gang);\n"
        "  return reason;",
        "  if (reason.none()) r_.gangs->HadTurn(pod);\n"
        "  r_.gangs->AdvanceCycle(gang);\n"
        "  return reason;"),
    "non-strict-releases": (
        "state/frontends/verbs_frontend.cc",
        "gang->once_satisfied()) return;\n  if (gang->rules.mode == GangMode::kNonStrict) {",
        "gang->once_satisfied()) return;\n  if (gang->id < 0) {"),
    "node-not-offered": ("state/frontends/extender_frontend.cc", "    if (!offered(slots[i])) continue;\n", ""),
    "guard-asleep": (
        "state/frontends/extender_frontend.cc",
        "  return !some || !r_.cluster->FitsWith(node, pod.cls, yielded);\n",
        "  return some && r_.cluster->FitsWith(node, pod.cls, yielded);\n"),
    "guard-too-strict": (
        "state/frontends/extender_frontend.cc",
        "if (!first || (plan != nullptr && plan->committed)) continue;",
        "if (!first || plan != nullptr) continue;"),
    "preempts-gangs": (
        "state/frontends/extender_preempt.cc",
        "      return there - static_cast<int32_t>(entry.second.size()) < gang.rules.min_member;\n",
        "      return there < 0;\n"),
    "preempts-a-subgroup": (
        "state/frontends/extender_preempt.cc",
        "    for (const Pod* pod : entry.second) count(*pod, -1);\n", "    for (const Pod* pod : entry.second) count(*pod, 0);\n"),
    "preempts-beside-who-is-not-there-yet": (
        "state/frontends/extender_preempt.cc",
        "gang.count(MemberState::kBound) + gang.count(MemberState::kRunning);", "gang.active();"),
    "whom-nobody-heard-of-is-not-guarded": (
        "state/frontends/extender_frontend.cc", " || r_.ledger->unheard().contains(node);", ";"),
    "members-preempt": (
        "state/frontends/extender_preempt.cc",
        "const bool alone = known ? r_.eligibility->PassesOneByOne(*pod->gang)",
        "const bool alone = known ? true"),
    "confirm-any-plan": ("state/frontends/submissions_frontend.cc", "  if (plan->id != command.plan) {", "  if (command.plan < 0) {"),
    "group-confirmed-by-one": (
        "state/frontends/submissions_frontend.cc",
        "    if (its == nullptr || !its->confirmed) return Stands(",
        "    if (its == nullptr) return Stands("),
    "invalid-has-no-turn": (
        "state/frontends/verbs_frontend.cc",
        "Reason turn = gate.none() ? TakeTurn(*pod, now_ms)",
        "Reason turn = gate.none() && reason.none() ? TakeTurn(*pod, now_ms)"),
    # --- the machine ---
    "hang-up-still-binds": (
        "state/machine/machine.cc",
        "  if (barrier_.Of(*pod).holds.empty()) barrier_.End(*pod, gone, step);\n",
        ""),
    "satisfied-for-ever": ("state/machine/reconciler.cc", "    r_.gangs->SetSatisfied(gang, false);\n", ""),
    "one-bound-satisfies": (
        "state/machine/reconciler.cc",
        "gang.active() > 0 && r_.eligibility->Missing(gang) == 0;",
        "gang.active() > 0;"),
    "submission-never-expires": ("state/machine/due.cc", "    due = std::min(due, submission->expires_ms);\n", ""),
    "gap-unseen": (
        "state/gangs/sources.h",
        "    if (version - 1 <= version_) return absl::OkStatus();\n",
        "    return absl::OkStatus();\n"),
    "half-a-step": (
        "state/machine/machine.cc",
        "    return step->Refuse(possible);\n"
        "  }\n"
        "  announcements_.TakeUpdate",
        "    step->Refuse(std::move(possible));\n"
        "  }\n"
        "  announcements_.TakeUpdate"),
    "leaving-uses-nothing": (
        "state/machine/ingest_pods.cc",
        "  if (pod.on_node()) r_.claims->UseNode(pod, step);\n  FollowEnd(pod, step);\n"
        "  if (pod.gang == nullptr && (change.gang",
        "  if (pod.state != MemberState::kLeaving && pod.on_node()) r_.claims->UseNode(pod, step);\n  FollowEnd(pod, step);\n"
        "  if (pod.gang == nullptr && (change.gang"),
    "deleted-group-holds": (
        "state/machine/ingest.cc",
        '  r_.barrier->EndAll(gang, {ReasonCode::kUnknownGang, absl::StrCat("gang ", gang.key, ": the PodGroup was deleted")},\n'
        '                     step);\n',
        ""),
    "submitted-loses-rules": (
        "state/machine/ingest_pods.cc",
        "facts.gang.in_gang() || (facts.gang.name == known.gang.name && !facts.gang.declares);",
        "facts.gang.in_gang();"),
    "id-still-called": ("state/machine/ingest_pods.cc", "  r_.calls->Forget(pod);\n", ""),
    "id-still-at-barrier": ("state/machine/ingest_pods.cc", "  r_.barrier->Forget(pod);\n", ""),
    "id-still-permitted": ("state/machine/ingest_pods.cc", "  r_.bindings->Forget(pod);\n", ""),
    "created-gangs-are-not-kept": (
        "state/machine/fact_recorder.cc", "  if (writes_created(object.dialect)) WriteCreatedRecord(object, step);\n", ""),
    "created-gangs-stay-for-ever": (
        "state/machine/fact_recorder.cc",
        "  if (writes_created(dialect)) DeleteCreatedRecord(name_space, name, step);\n", ""),
    "evictions-end-with-the-process": (
        "state/binding/repair.cc", "  if (gang.kept.evicting) return EvictMembers(gang, kEvictedAnew, step);\n", ""),
    "evictions-are-not-written": (
        "state/persistence/records.cc", "  record.set_evicting(gang.kept.evicting);\n", ""),
    "evictions-end-before-all-is-read": (
        "state/machine/reconciler.cc",
        "  if (!r_.sources->complete()) return;\n  const bool gone = gang.active() == 0 && gang.count(MemberState::kLeaving) == 0;\n"
        "  if (gang.kept.evicting && gone) r_.repair->EndEviction(gang);\n",
        "  const bool gone = gang.active() == 0 && gang.count(MemberState::kLeaving) == 0;\n"
        "  if (gang.kept.evicting && gone) r_.repair->EndEviction(gang);\n  if (!r_.sources->complete()) return;\n"),
    "who-failed-unseen-is-no-loss": (
        "state/binding/repair.cc",
        "  if (news != failed.end()) NoteActiveLoss(", "  if (news != failed.end() && gang.whole()) NoteActiveLoss("),
    "who-is-gone-has-failed": (
        "state/binding/repair.cc",
        "  if (news != failed.end()) NoteActiveLoss(gang, **news, step);\n",
        "  if (gang.active() > 0) NoteActiveLoss(gang, **gang.in(MemberState::kRunning).begin(), step);\n"
        "  static_cast<void>(news);\n"),
    # --- the process ---
    "effects-are-given-up": (
        "k8s-extender/actuator/actuator.cc",
        "  if (verdict.kind == Verdict::Kind::kAgain) {\n",
        "  if (verdict.kind == Verdict::Kind::kAgain && work.attempts >= 8) {\n    wanted_.erase(wanted);\n    return;\n  }\n"
        "  if (verdict.kind == Verdict::Kind::kAgain) {\n"),
    "effects-as-first-wanted": (
        "k8s-extender/actuator/actuator.cc", "        work.effect = wanted->second.effect;\n", ""),
    "effects-beside-each-other": (
        "k8s-extender/actuator/actuator.cc", "      if (!fresh) continue;\n", ""),
    "answers-are-forgotten": (
        "service/rpc/door.cc",
        "if (call.key_.empty() || !call.door_->engine().keeps_answers()) return {};", "return {};"),
    "answers-in-old-files": (
        "service/engine/engine.cc",
        "keeps_answers_ = committer_.store_format() >= Store::kFormatOfAnswers;", "keeps_answers_ = true;"),
    "old-answers-stay-for-ever": (
        "service/rpc/request_log.cc", "  if (entry.kept) forgotten_.push_back(key);\n", "  if (!entry.kept) forgotten_.push_back(key);\n"),
    "commit-record-late": (
        "service/engine/engine_delivery.cc",
        "  delivery->effects = std::exchange(batch_effects_, {});\n",
        "  if (!batch_effects_.empty()) effects_->Carry(std::exchange(batch_effects_, {}));\n"),
    "reply-before-the-store": (
        "service/engine/committer.cc",
        "    const Stored stored = Commit(gathered_records_);\n    took_ = std::min(SteadyNow() - begun, kLongestAwaited);  // it may have been tried for long\n    DeliverGathered(stored);\n",
        "    const std::vector<Record> records = gathered_records_;\n    DeliverGathered(Stored::kYes);\n    static_cast<void>(Commit(records));\n"),
    "delivered-by-both-at-once": (
        "service/engine/committer.cc",
        "(!queue_.empty() || delivering_ || !finished_.empty())", "!queue_.empty()"),
    "no-records-no-order": (
        "service/engine/committer.cc",
        "!busy_ && !delivering_ && finished_.empty() &&", "!busy_ &&"),
    "callers-are-not-awaited": ("service/engine/committer.cc", "      AwaitCallers();\n", ""),
    "callers-are-awaited-as-long-as-the-store-failed": (
        "service/engine/committer.cc", "std::min(SteadyNow() - begun, kLongestAwaited);", "SteadyNow() - begun;"),
    "answers-though-the-store-failed": (
        "service/engine/committer.cc", "  return status.ok() || stored_ == Stored::kFenced;\n", "  return true;\n"),
    "parked-while-reading": (
        "state/machine/ingest.cc",
        "!pod.facts.unschedulable.empty() || r_.calls->Of(pod).refused;", "!pod.facts.unschedulable.empty();"),
    "still-read-is-said-once": (
        "state/machine/ingest.cc",
        "  if (!r_.sources->complete()) r_.gangs->ForEachGang([&](const Gang& gang) { r_.gangs->Touch(gang); });\n", ""),
    "evictions-rest-on-what-is-not-kept": (
        "state/machine/machine.cc",
        "  if (reply.nodes.empty()) return step->Tell(std::move(reply));\n",
        "  return step->Tell(std::move(reply));\n"),
    "a-gate-that-went-is-not-followed": (
        "state/machine/ingest_pods.cc",
        "  if (was_gated || !refused) r_.calls->NoteCalled(pod, false);\n",
        "  if (!refused) r_.calls->NoteCalled(pod, false);\n"),
    "kept-node-forgets-its-binding": (
        "state/gangs/gangs.cc",
        "  Mut(pod).facts.node_name = std::move(node_name);\n  NoteFacts(pod.id);\n",
        "  Mut(pod).facts.node_name = std::move(node_name);\n"),
    "another-file-is-the-store": (
        "service/store/sqlite_store.cc",
        "    if (*file_ == now) return absl::OkStatus();\n",
        "    return absl::OkStatus();\n"),
    "kept-pods-come-back-by-name": (
        "state/machine/ingest.cc",
        "std::tie(a.facts.created_ms, a.facts.uid) < std::tie(b.facts.created_ms, b.facts.uid)",
        "a.facts.uid < b.facts.uid"),
    "kept-podgroup-of-old": (
        "state/machine/ingest.cc",
        "const bool another = !exists || there->objects.at(object.dialect).uid != object.uid;",
        "const bool another = !exists;"),
    "kept-node-never-goes": (
        "state/machine/ingest.cc", "  r_.facts->NodeGoes(name, step);\n", ""),
    "kept-pod-never-goes": (
        "state/machine/ingest_pods.cc", "  r_.facts->PodGoes(pod.facts.uid, step);\n", ""),
    "kept-podgroup-never-goes": (
        "state/machine/ingest.cc",
        "  r_.facts->ObjectGoes(command.dialect, gang.name_space, gang.name, step);\n", ""),
    "kept-submission-forgotten": (
        "state/reservations/submissions.cc", "  open_[id] = gang.id;\n  Note(id);\n", "  open_[id] = gang.id;\n"),
    "kept-confirmed-pod-stays-submitted": (
        "state/gangs/gangs.cc",
        "      member.submitted = member.stranger = false;\n      NoteFacts(member.id);\n",
        "      member.submitted = member.stranger = false;\n"),
    "deadline-by-the-wall-clock": (
        "k8s-extender/actuator/actuator.cc", "options_.clock->NowMs()", "absl::ToUnixMillis(WallNow())"),
    "dead-connections-kept": ("k8s-extender/apiserver/client.cc", "    idle_.clear();  // what broke", "    // what broke"),
    "not-read-back-at-the-deadline": (
        "k8s-extender/actuator/actuator.cc", "    const Found found = ReadBack(bind, &outcome.message);\n    outcome.result", "    const Found found = Found::kUnbound;\n    outcome.result"),
    "drained-too-early": (
        "service/engine/engine.cc", "|| holds_left_ > 0 ||", "||"),
    "a-hanging-request-is-not-ended": (
        "k8s-extender/apiserver/client.cc",
        "    for (const Connection& connection : in_use) connection->stop();\n", ""),
    "later-kept-without-earlier": (
        "service/engine/committer.cc",
        "!records.empty() && stored_ == Stored::kYes;",
        "!records.empty();"),
    "store-not-synced": (
        "service/store/sqlite_store.cc", "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"),
    "store-synced-at-checkpoints": (
        "service/store/sqlite_store.cc", "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"),
    "store-not-fenced": ("service/store/sqlite_store.cc", "owner != epoch", "owner < epoch"),
    "store-half-a-commit": (
        "service/store/sqlite_store.cc",
        '  absl::Status done = open_->begin->Step().status();\n',
        "  absl::Status done;\n"),
    "store-damage-not-seen": (
        "service/store/record_table.cc",
        "if (Checksum(record) == read->Number(5)) {",
        "if (Checksum(record) != 0) {"),
    "filter-waits-for-the-disk": (
        "service/engine/engine.cc",
        "outcome.status.ok() ? outcome.reply_promises : RestsOn",
        "outcome.status.ok() ? true : RestsOn"),
    "permit-does-not-wait": (
        "service/engine/engine.cc",
        "outcome.status.ok() ? outcome.reply_promises : RestsOn",
        "outcome.status.ok() ? false : RestsOn"),
    "answers-lost-on-stop": (
        "service/engine/engine.cc",
        "  if (stop) Apply(Shutdown{}, &outcome);\n",
        "  if (stop) holds_.clear();\n"),
    "readers-write": (
        "service/rpc/door.cc",
        "if (may.ok() && role == Role::kReadWrite && identity->role != Role::kReadWrite) {",
        "if (may.ok() && role == Role::kReadWrite && identity->name.empty()) {"),
    "answers-forgotten": ("service/rpc/request_log.cc", "    if (fresh) {\n", "    if (fresh || !key.empty()) {\n"),
    "streams-uncounted": ("service/security/limits.cc", "  ++entry.streams;\n", ""),
    "snapshot-never-gives-way": (
        "service/rpc/facts_service.cc",
        "if (now - oldest->second < stall_) return false;",
        "if (now - oldest->second < stall_ * 1'000'000) return false;"),
    "snapshot-without-end": ("service/rpc/facts_service.cc", "    if (!ended_) {", "    if (parts_ < 0) {"),
    "errors-of-any-size": (
        "service/rpc/errors.cc",
        "  return text.size() <= bytes ? std::string(text)",
        "  return bytes > 0 ? std::string(text)"),
    "placed-pods-submitted": (
        "service/rpc/reading.cc",
        "    if (pod.node_name.empty() && pod.phase",
        "    if (true || pod.phase"),
    "members-of-any-size": ("service/rpc/reading.cc", " + 2 * name.size() + id.size());", ");"),
    "errors-kept-uncounted": (
        "service/rpc/request_log.cc",
        "answer.response.size() + answer.status.error_message().size() +",
        "answer.response.size() +"),
    "ranges-read": ("service/http/door_stream.cc", "if (line_matches_ == kRange.size()) return true;", ""),
    "chunks-read": ("service/http/http_listener.cc", 'if (request.has_header("Transfer-Encoding") || ', "if ("),
    "multipart-read": (
        "service/http/http_listener.cc",
        'request.get_header_value("Content-Type"), "multipart/")',
        'request.get_header_value("Content-Type"), "none/")'),
    "name-cut-at-nul": (
        "service/http/door_stream.cc",
        "std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(length));",
        "std::string name(reinterpret_cast<const char*>(text));"),
    "unchecked-certificate": (
        "service/security/tls_context.cc",
        "  Look();\n"
        "  return pem_;",
        "  Look();\n"
        "  auto raw = std::make_shared<TlsPem>(*pem_);\n"
        "  raw->certificate = *ReadFile(files_.certificate);\n"
        "  raw->generation = FileStamp(files_.certificate);\n"
        "  return raw;"),
    "devices-read": (
        "support/file.cc",
        '  if (!S_ISREG(info.st_mode)) return Refused(path, "it is not a regular file");\n',
        ""),
    "place-kept-on-cancel": (
        "service/rpc/decision_service.cc",
        "    door()->engine().EndPermit(permit_.uid, token_);\n", ""),
    # --- Kubernetes ---
    "deleted-unseen": (
        "k8s-extender/apiserver/informer.cc",
        "    handlers_.remove(known->second, known->first);\n"
        "    known = known_.erase(known);",
        "    known = known_.erase(known);"),
    # --- who cannot start delays nobody; verbs without a plan, with turns, with time limits ---
    "zero-has-cycles": ("state/frontends/verbs_frontend.cc", "gang.rules.min_member > 0 && !gang.once_satisfied();  // D-8", "!gang.once_satisfied();"),
    "turn-for-ever": ("state/frontends/verbs_frontend.cc", "now_ms - pod.passed_ms >= kTurnMs", "false"),
    "mark-kept-while-somebody-waits": (
        "state/machine/reconciler.cc",
        "gang.kept.satisfied && gang.active() == 0 && !repaired) {",
        "gang.kept.satisfied && gang.active() == 0 && !repaired && gang.count(MemberState::kWaiting) == 0) {"),
    "satisfied-waiter-held": ("state/machine/reconciler.cc", "if (waits && gang.once_satisfied()) {", "if (false) {"),
    "permit-without-a-plan": (
        "state/frontends/verbs_permit.cc",
        "if (gang != nullptr && pod.state == MemberState::kPending && PlacedAsWhole(pod)) {",
        "if (false) {"),
    "permit-on-a-cordoned-node": (
        "state/frontends/verbs_permit.cc",
        "if (pod.state == MemberState::kPending && obstacle != Obstacle::kNone) {",
        "if (false) {"),
    "time-renewed-by-every-plan": (
        "state/reservations/submissions.cc",
        "if (std::exchange(submissions_[gang.id]->asked, false)) Extend(gang, now_ms);",
        "Extend(gang, now_ms);"),
    "source-by-reference": ("k8s-extender/dialects/gang_keys.cc", "    out.said_in = GangDialect::kKoordinator;\n", ""),
    "too-much-to-count-waits": (
        "state/gangs/eligibility.cc",
        "if (Reason size = SizeReason(gang); !size.none()) return size;",
        ""),
    "preempts-while-it-reads": ("state/frontends/extender_preempt.cc", "  if (!r_.sources->complete()) return reply;\n", ""),
    "preempts-for-who-has-a-place": ("state/frontends/extender_preempt.cc", "  if (!alone || placed) return reply;", "  if (!alone || (placed && false)) return reply;"),
    "preempts-for-a-stranger": ("state/frontends/extender_preempt.cc", ": !question.names_gang;", ": true;"),
    "unplaceable-keeps-its-room": (
        "state/machine/ingest_pods.cc",
        "return r_.claims->NoteUnplaceable(pod, step);",
        "return;"),
    "unplaceable-tried-at-once": (
        "state/binding/plan_lifecycle.cc",
        "for (const Gang* each : together) PutBack(*each, kUnplaceableStartMs, step->now_ms());",
        ""),
    "old-words-end-a-plan": (
        "state/barrier/activations.cc",
        "return state.plan == plan && !pod.facts.our_gate",
        "return !pod.facts.our_gate"),
    "nobody-else-takes-the-place": ("state/binding/plan_lifecycle.cc", "if (OthersCanTake(gang, *plan)) return r_.calls", "if (false) return r_.calls"),
    "late-member-never-told": (
        "state/machine/ingest_pods.cc",
        "  if (pod.state == MemberState::kPending) NotifySoon(gang, step->now_ms());\n",
        ""),
    "other-words-never-told": ("state/gangs/gangs.cc", "std::min(gang.notify_at_ms, reword_at_ms)", "gang.notify_at_ms"),
    "bind-while-reading": (
        "state/frontends/extender_frontend.cc",
        "  if (pod->gang != nullptr && !r_.sources->complete()) {",
        "  if (pod->gang != nullptr && pod->facts.uid.empty()) {"),
    "not-woken-is-waited-for": (
        "state/machine/due.cc",
        "if (plan->doubt_ms <= now_ms) return GiveUpDoubted(gang, step);",
        "if (plan->doubt_ms <= now_ms) return r_.plans->SetDoubt(gang, kNever);"),
    "everything-is-doubted": (
        "state/barrier/activations.cc",
        "state.doubted = !call.note.empty() && Unmodelled(words) ? plan : 0;",
        "state.doubted = !call.note.empty() ? plan : 0;"),
    "stuck-planned-first": ("state/gangs/gangs.cc", "    if (pod->stuck) {\n", "    if (false) {\n"),
    "stuck-for-ever": ("state/binding/plan_lifecycle.cc", "if (any_stuck && !OthersCanTake(gang, *r_.plans->Of(gang))) r_.gangs->ForgetStuck(gang);", ""),
    "foreign-keys-in-silence": ("k8s-extender/dialects/gang_keys.cc", "    out.ignored = IgnoredKeys(annotations, labels);\n", ""),
    # --- what only an earlier process was told (S-2)
    "stale-nodes-are-placed-on": (
        "state/cluster/feasibility.cc", "  if (node.heard == Heard::kTooLongAgo) return Obstacle::kStale;\n", ""),
    "shut-for-ever": ("state/machine/ingest.cc", "  SetHeard(Heard::kTooLongAgo, Heard::kNow);\n", ""),
    "what-it-said-last-is-nothing": ("state/machine/machine.cc", "    announcements_.NoteSpoke(step);\n", ""),
    "a-restart-makes-fresh": (
        "state/machine/ingest.cc", "silent ? std::min(kept.stale_since_ms, step->now_ms()) : step->now_ms()", "step->now_ms()"),
    "somebody-elses-store": (
        "state/machine/machine.cc",
        "  if (absl::Status ours = CheckKept(restored_, facts_.keeps()); !ours.ok()) return ours;\n", ""),
    "effect-numbers-again": (
        "service/engine/engine.cc", "  effects_numbered_ = effects_reserved_ = machine_.effects_reserved();\n", ""),
    "refusals-wait-for-the-store": (
        "service/engine/engine.cc", ": RestsOnRecords(item.command, outcome.status);", ": true;"),
    "explanations-wait-for-the-store": (
        "service/engine/engine.cc", "(item.promises ? replies_ : told_)", "replies_"),
    "what-is-read-may-be-lost": (
        "service/engine/engine.cc", "(item.promises ? replies_ : told_)", "told_"),
    "forgotten-in-any-order": (
        "support/recent_map.h", "erase(map_.find(order_.front()));", "erase(map_.begin());"),
    "late-questions-wait-for-the-store": (
        "service/engine/engine.cc",
        "    told_.emplace_back(std::move(item.done),\n                       absl::DeadlineExceeded",
        "    replies_.emplace_back(std::move(item.done),\n                       absl::DeadlineExceeded"),
    # --- spans (S-4)
    "a-callers-trace-is-lost": (
        "service/engine/tracer.cc", "    span->trace = caller.trace;\n", ""),
    "every-pod-starts-its-gang": (
        "service/engine/tracer.cc", "    way->second.started = true;\n", ""),
    "a-start-ends-with-its-first-pod": (
        "service/engine/tracer.cc",
        "way->second.binds && (gang->count(MemberState::kCommitted) > 0 || machine.plans().Of(*gang) != nullptr)",
        "false"),
    "a-start-needs-a-caller": ("service/engine/engine.cc", "  if (bound != nullptr) tracer_.Moved(machine_.FindPod(bound->uid));\n", ""),
    "a-gang-starts-once-for-ever": (
        "service/engine/tracer.cc", "way->second.started && !gang.kept.satisfied && gang.active() == 0", "false"),
    "nobody-let-it-go": (
        "service/engine/tracer.cc", 'span->links.push_back({by, "let it go"});', ";"),
    "spans-without-end": (
        "service/engine/tracer.cc", ">= kPerSecond) {", ">= kPerSecond * 1000) {"),
    "a-collector-is-asked-once": (
        "service/tracing/otlp_exporter.cc", "if (!later || attempt >= options_.tries || !Pause(pause)) return false;",
        "return false;"),
    "half-a-trace-is-sent": (
        "service/tracing/otlp_exporter.cc", ": span->trace.low % 100 >= percent", ": span->id % 100 >= percent"),
    # --- the flight recorder (S-3)
    "restored-without-deadlines": (
        "state/machine/machine.cc",
        "  pod_deadlines_.Restore([this](PodId id) -> const std::string& { return gangs_.pod(id).facts.uid; });\n", ""),
    "restored-members-know-no-gang": (
        "state/gangs/restore.cc", "pod_table_[static_cast<size_t>(member->id)]->gang = gang.get();", "static_cast<void>(member);"),
    "the-last-ids-are-not-saved": (
        "state/recording/archive.h", "for (int32_t id = 0; id < value.limit(); ++id) Pass(archive, value.Of(id));",
        "for (int32_t id = 0; id < value.limit(); ++id) Pass(archive, value.Of(id < 63 ? id : 63));"),
    "negative-numbers-turn": (
        "state/base/varint.h", "^ -static_cast<int64_t>(value & 1)", ""),
    "an-offer-forgets-its-order": (
        "state/recording/commands.cc", "runs.back().fresh == fresh && runs.back().start + runs.back().size == number;",
        "runs.back().start + runs.back().size == number;"),
    "a-gap-is-hidden": (
        "service/recorder/recorder.cc", "    recording_ = false;\n    ++stats_.lost;\n    parts_.emplace_back().end = SegmentEnd::kGap;\n    return;\n",
        "    ++stats_.lost;\n    return;\n"),
    "old-recordings-stay": (
        "service/recorder/recorder.cc", "    unlink(Older(options_.path, files->rbegin()->first).c_str());\n", ""),
    "anybodys-file-is-moved": (
        "service/recorder/recorder.cc", "  if (LooksLikeSegment(path)) return absl::OkStatus();\n", "  return absl::OkStatus();\n"),
    "recording-ends-with-the-first-trouble": (
        "service/recorder/recorder.cc", "    retry_at_ = SteadyNow() + options_.retry;\n", ""),
    "everybody-reads-recordings": ("service/recorder/segment.cc", "O_NOFOLLOW, 0600);", "O_NOFOLLOW, 0644);"),
    "hurt-frames-are-read": (
        "service/recorder/segment.cc", "if (size == 0 || Checksum(payload) != ReadU32(rest.substr(4))) {", "if (size == 0) {"),
    "outcomes-are-not-compared": (
        "state/recording/commands.cc", "  Pass(digester, outcome);\n", "  Pass(digester, outcome.status);\n"),
    "what-ifs-plan-nothing": (
        "state/whatif/what_if.cc", "machine_.PlanningDue() && !decided(); ++round) Apply(PlanRound{1});", "machine_.PlanningDue() && !decided(); ++round) return;"),
    "added-nodes-are-one-host": (
        "state/whatif/what_if.cc", "if (label == kHostname) value", "if (label == kHostname && value.empty()) value"),
    "nodes-that-would-be-gone-stay": (
        "state/whatif/what_if.cc", "    return Apply(RemoveNode{name}).status;\n", "    return absl::OkStatus();\n"),
    "others-that-were-planned-are-told": (
        "state/whatif/what_if.cc", " && !planned_now.contains(gang.key)", ""),
    "the-first-what-if-is-the-last": (
        "service/rpc/what_if_service.cc", "      busy_ = false;\n      finish(ToGrpc(found.status(), ", "      finish(ToGrpc(found.status(), "),
    "soft-taints-do-not-count": (
        "state/cluster/feasibility.cc", "    return taint.effect == TaintEffect::kPreferNoSchedule &&\n", "    return taint.effect == TaintEffect::kNoExecute &&\n"),
    "cpu-pods-strand-gpus": (
        "state/cluster/feasibility.cc", " - (strands ? 1000 : 0)", " - (strands ? 0 : 0)"),
    "evicts-where-it-must-not-go": (
        "state/frontends/extender_preempt.cc", "if (!region.everywhere() && (node == kNoNode || !region.Has(node))) continue;", "if (!region.everywhere() && node == kNoNode) continue;"),
    "pods-elsewhere-are-no-neighbours": (
        "state/cluster/pod_affinity_room.cc", "    if (term.all_pods > 0 && CountIn(term.pods, domain) > 0) return 0;\n", ""),
    "others-anti-affinity-is-theirs": (
        "state/cluster/pod_affinity_room.cc",
        "if (term.all_holders > 0 && CountIn", "if (term.all_holders < 0 && CountIn"),
    "the-first-waits-for-a-second": (
        "state/cluster/pod_affinity_room.cc", "domain != kNowhere && (first || CountIn", "domain != kNowhere && ((first && own < 0) || CountIn"),
    "few-domains-are-enough": (
        "state/cluster/pod_affinity_room.cc",
        "if (spread.eligible.empty() || static_cast<int64_t>(spread.eligible.size()) < spread.min_domains) return 0;",
        "if (spread.eligible.empty()) return 0;"),
    "spread-counts-where-the-pod-may-not-go": (
        "state/cluster/node_filter.cc", "  if (spread.honor_affinity) {\n", "  if (!spread.honor_affinity) {\n"),
    "spread-counts-tainted-nodes-always": (
        "state/cluster/node_filter.cc", "  out.taints = spread.honor_taints;\n", ""),
    "spread-by-one-label-alone": (
        "state/cluster/node_filter.cc", "if (other.topology_key != spread.topology_key) out.labels", "if (other.topology_key.empty()) out.labels"),
    "policies-are-forgotten": (
        "state/persistence/template.cc", "!each.ignores_affinity(), each.honors_taints()});", "true, false});"),
    "relabelled-namespaces-change-nobody": (
        "state/machine/ingest_pods.cc", "  if (r_.sources->complete()) TakeAnew(&name, step);", "  if (!r_.sources->complete()) TakeAnew(&name, step);"),
    "namespaces-read-late-change-nobody": (
        "state/machine/ingest.cc", "  if (r_.cluster->by_namespaces()) TakeAnew(nullptr, step);\n", ""),
    "places-elsewhere-stand-whatever-a-namespace-is": (
        "state/machine/ingest_pods.cc", "  if (any) r_.claims->ReverifyElsewhere(/*all=*/false, step);\n", "  static_cast<void>(any);\n"),
    "who-reads-no-namespaces-waits-for-ever": (
        "state/cluster/pod_affinity_room.cc", "{ return !term.by_labels || !cluster_->namespaces().empty(); }", "{ return term.id.data() != nullptr; }"),
    "whom-nobody-means-everybody-has": (
        "state/cluster/pod_affinity.cc", "    if (!selector.all_namespaces && !selector.by_labels && selector.namespaces.empty()) return;  // it means nobody\n", ""),
    "labels-that-nobody-names-move-namespaces": (
        "state/cluster/pod_affinity.cc", " && keys_.contains(NamespaceKey(label.first));", ";"),
    "namespaces-unheard-of-are-meant": (
        "state/model/affinity_terms.cc", "selector.by_labels && labels.contains(NamespaceKey(\"\")) &&", "selector.by_labels &&"),
    "namespaces-by-labels-are-forgotten": (
        "state/persistence/template.cc", "          from.by_labels(),\n", "          false,\n"),
    "the-pods-own-labels-are-its-namespaces": (
        "k8s-extender/dialects/pod_affinity.cc", "      for (SelectorRequirement& each : requirements) each.key = NamespaceKey(each.key);\n", ""),
    "namespaces-are-not-awaited": (
        "k8s-extender/apiserver/cluster_feed.cc", "      expected.sources.push_back(source.name);\n", "      if (source.name != \"namespaces\") expected.sources.push_back(source.name);\n"),
    "relabelled-nodes-keep-their-neighbours": (
        "state/cluster/pod_affinity.cc", "    if (any) count(-1);\n", ""),
    "restored-holders-are-forgotten": (
        "state/cluster/pod_affinity.cc", "        term.holders[domain] += pods;\n", ""),
    "labels-are-learned-in-silence": (
        "state/machine/ingest_pods.cc", "    if (kin == r_.cluster->pod_class(pod->cls).kin) continue;\n", "    continue;\n"),
    "a-label-that-changes-is-no-change": (
        "state/machine/ingest_pods.cc",
        "change.shape = change.shape || (pod.cls != kNoClass && !(kin == r_.cluster->pod_class(pod.cls).kin));", "static_cast<void>(kin);"),
    "places-stand-whoever-comes-near": (
        "state/binding/plan_lifecycle.cc", "  if (FeltElsewhere(pod)) ReverifyElsewhere(/*all=*/false, step);\n", ""),
    "waits-for-its-own-nodes-only": (
        "state/scheduling/waking.cc", "  if (!local) return any_gain;\n", "  static_cast<void>(local);\n"),
    "spread-looks-once": (
        "state/planner/planner.cc", "    if (!grows) break;\n", "    if (!grows || placed > 0) break;\n"),
    "members-do-not-agree-at-the-end": (
        "state/planner/planner.cc", "out.placed = out.parts.size() == demands.size() && NeighboursAgree(*statement, start, cluster);",
        "out.placed = out.parts.size() == demands.size();"),
    "nothing-found-is-proof": (
        "state/planner/planner.cc", "(proves && !out.out_of_tries)) return out;", "!out.out_of_tries) return out;"),
    "leaves-are-placed-one-by-one-only": (
        "state/planner/tree_planner.cc", "out_.placed = PlaceJointly(root);", "out_.placed = false;"),
    "joint-tries-that-ran-out-are-proof": (
        "state/planner/tree_planner.cc", "  out_.out_of_tries = !placed && undecided_;\n", "  out_.out_of_tries = false;\n"),
    "alike-wherever-they-may-go": (
        "state/planner/repack_search.cc", " && *item.region == region;", ";"),
    "one-by-one-everywhere": (
        "state/planner/backtracking_search.cc", "if (region.Has(entry.node)) out.push_back", "out.push_back"),
    "together-where-the-first-fits": (
        "state/scheduling/demand.cc", "if (label.empty() || topology.required == label) return;", "if (label.empty() || topology.required != label) return;"),
    "narrower-affinity-is-dropped": (
        "state/scheduling/demand.cc", "if (label.empty() || topology.required == label) return;", "if (label.empty() || !topology.required.empty()) return;"),
    "nobody-comes-first": (
        "state/planner/planner.cc", "return newcomers.empty() || neighbours.InSomeOrder(std::move(newcomers));", "return true;"),
    "helpers-in-their-order": (
        "state/planner/planner.cc", "  if (order.empty()) return {};\n", "  return {};\n"),
    "a-node-that-goes-frees-nobody": (
        "state/cluster/cluster.cc", "/*gained=*/neighbours_.any_learned()", "/*gained=*/false"),
    "permits-need-their-node": (
        "state/binding/commitments.cc", "!commitment.node.empty() &&", "r_.cluster->FindNode(commitment.node) != kNoNode &&"),
    "who-runs-is-dropped": (
        "state/frontends/submissions_frontend.cc", "if (!pod->submitted || !pod->facts.node_name.empty()) continue;", "if (!pod->submitted) continue;"),
    "a-log-may-go": (
        "service/store/sqlite_store.cc", "  if (log_ == now) return absl::OkStatus();\n", "  return absl::OkStatus();\n"),
    "readers-crowd-the-store": (
        "service/engine/engine.cc", " || (waits && committer_.crowded());", ";"),
    "what-changes-comes-with-the-job": (
        "state/whatif/what_if.cc", "      if (changes) PlanUntil([] { return false; });\n", ""),
    "what-is-gone-is-there-in-what-if": (
        "state/whatif/what_if.cc", "    if (!lost_.empty()) FindOthers(&answer);\n", ""),
    "queues-are-as-deep-as-you-like": (
        "state/model/queue.cc", "    if (seen.size() > kMostLevels) {\n", "    if (seen.size() > 1000 * kMostLevels) {\n"),
    "any-method-is-read": (
        "service/http/http_listener.cc", 'if (!brings && request.method != "GET"', 'if (request.method.empty() && request.method != "GET"'),
    "no-selector-means-everybody": (
        "k8s-extender/dialects/pod_affinity.cc", "  if (!selector.is_object()) read.selector = PodSelector();  // none: it means nobody\n", ""),
    # --- pipelining (P-8) ---
    "kept-room-is-free": (
        "state/cluster/cluster.h", " - reserved.Get(id) - kept.Get(id);", " - reserved.Get(id);"),
    "ending-for-ever": (
        "state/reservations/future_reservations.h", "kPatienceMs = 60'000;", "kPatienceMs = 6'000'000;"),
    "who-came-first-keeps": (
        "state/reservations/future_reservations.cc", "  if (!kept.holds || as.rank == Claimant::Rank::kHoldsUp) return queues_->Before(gang, other);\n", "  if (!kept.holds || as.rank == Claimant::Rank::kHoldsUp) return false;\n"),
    "victims-room-is-kept": (
        "state/scheduling/reserve_room.cc", "nominated = r_.nominations->Borrow();  // some of it", "nominated;  // some of it"),
    "preempted-room-is-planned": (
        "state/scheduling/planning.cc", "  r_.nominations->Charge();  // what came free since is theirs first (K-3)\n", ""),
    "kept-whatever-is-bound-there": (
        "state/binding/plan_lifecycle.cc", "  r_.pipeline->Reverify(node);\n", ""),
    "an-end-taken-back-unnoticed": (
        "state/machine/ingest_pods.cc", "  if (!r_.pipeline->Follow(pod, step->now_ms())) return;\n",
        "  if (!r_.pipeline->Follow(pod, step->now_ms()) || true) return;\n"),
    "kept-for-who-does-not-wait": (
        "state/machine/reconciler.cc", "    r_.pipeline->Drop(gang);\n    r_.heads->Leave(gang);\n", "    r_.heads->Leave(gang);\n"),
    "an-end-wakes-nobody": (
        "state/reservations/future_reservations.cc", "charge != nullptr) cluster_->NoteHope(charge->node);", "charge != nullptr) ledger_->MarkNode(charge->node);"),
    "next-of-its-kind-sleeps-on": (
        "state/scheduling/planning.cc", "  if (kept) r_.backlog->WakeAlike(needs, /*anew=*/true);  // there may be as much for the next of its kind\n", ""),
    "dropped-room-helps-nobody": (
        "state/reservations/future_reservations.cc", "  Discharge(at->second, /*gained=*/true);\n  Erase(gang.id);\n", "  Discharge(at->second, /*gained=*/false);\n  Erase(gang.id);\n"),
    "plan-on-what-is-kept": (
        "state/scheduling/reserve_room.cc", "  r_.pipeline->TakeBack(lent);\n  if (places", "  if (places"),
    # --- preferences (P-3) ---
    "liked-as-it-was": (
        "state/planner/preferred_run.cc", "      if (best.liked >= before) return best;\n", "      return best;\n"),
    "nobody-looks-again": (
        "state/planner/preferred_run.cc", "      if (attracts) ranking.LookAgain();\n", "      if (attracts && placed < 0) ranking.LookAgain();\n"),
    "all-on-the-first": (
        "state/planner/preferred_run.cc", "repels ? 1 : wanted - placed", "wanted - placed"),
    "preferences-make-wait": (
        "state/planner/planner.cc", "  if (AnyPrefers(demands, cluster)) out =", "  if (demands.empty()) out ="),
    "preferences-are-lost": (
        "state/persistence/template.cc", "  Put(from.preferences, to);\n", ""),
    # --- owners, the webhook, queue objects (D-7, K-8, Q-1) ---
    "anybodys-job": (
        "k8s-extender/dialects/owners.cc", "    const bool same = known != nullptr && version.substr(0, version.find('/')) == known->group;\n",
        "    const bool same = known != nullptr && !version.empty();\n"),
    "completions-do-not-count": (
        "k8s-extender/dialects/owners.cc", "return std::min(parallelism, Number(spec, \"completions\", path, parallelism));", "return parallelism;"),
    "another-schedulers-pod-is-gated": (
        "k8s-extender/webhook/admission.cc", "  if (!ours && !nobodys) return verdict;  // another scheduler's\n", "  if (!ours && !nobodys && name_space.empty()) return verdict;\n"),
    "exempt-namespaces-are-not": (
        "k8s-extender/webhook/admission.cc", "!absl::c_linear_search(options_.exempt_namespaces, name_space);", "!name_space.empty();"),
    "a-wrong-tree-is-announced": (
        "k8s-extender/apiserver/queue_objects.cc", "problem.queue].push_back(problem.text);\n", "problem.queue].clear();\n  wrong.clear();\n"),
    "a-condition-is-written-once": (
        "k8s-extender/apiserver/queue_objects.cc", "      if (!written) continue;\n", ""),
    "owner-of-the-first-pods": (
        "k8s-extender/apiserver/owner_sizes.cc",
        "  gang->due = SteadyNow() + quiet_;\n",
        "  gang->due = SteadyNow();\n"),
    "owner-grows-while-it-runs": (
        "k8s-extender/apiserver/owner_sizes.cc",
        " || (gang->told >= 0 && runs)) return;",
        " || (count < 0 && runs)) return;"),
    "tasks-below-the-job": (
        "k8s-extender/dialects/gang_keys.cc",
        "sum != *said->min_member)) {",
        "sum > *said->min_member)) {"),
    # --- heads (Q-6) ---
    "the-lost-wait-for-whom-a-queue-keeps": (
        "state/queueing/queue_checks.cc", "  if (gangs.front()->depleted()) return sum;\n", ""),
    "the-lost-wait-for-whom-room-is-kept": (
        "state/frontends/extender_frontend.cc", "< pod.facts.priority || repairs;", "< pod.facts.priority || (repairs && false);"),
    "too-many-together-wait": (
        "state/queueing/queue_checks.cc", "asked.fresh > spec.max_applications) {\n    return {", "asked.fresh > spec.max_applications + 99) {\n    return {"),
    "hold-is-backfill": (
        "state/scheduling/planning.cc", "  if (head == nullptr) return next;", "  if (head == nullptr || next.has_value()) return next;"),
    "who-never-fits-holds-up": (
        "state/reservations/backfill.cc", "|| states_.Of(item).could == State::Could::kNo) continue;", ") continue;"),
    "lone-pods-pass-unseen": (
        "state/binding/plan_lifecycle.cc", "  if (passes) r_.heads->NotePassed", "  if (passes && pod.gang != nullptr) r_.heads->NotePassed"),
    "a-nodes-own-pods-pass": (
        "state/binding/plan_lifecycle.cc", " && !pod.facts.permanent && pod.cls != kNoClass;", " && pod.cls != kNoClass;"),
    "every-pod-passes": (
        "state/reservations/backfill.cc", "== room && (left < asks ||", ">= room && (left < asks ||"),
    "the-limit-is-forgotten": (
        "state/reservations/backfill.h", "now_ms >= gang.kept.passed_since_ms + Limit();", "now_ms >= gang.kept.passed_since_ms + 1000 * Limit();"),
    "nobody-notes-who-passed": (
        "state/reservations/backfill.cc", "    if (queues_->Before(*head, gang)) passed.push_back(head->id);\n", ""),
    "held-room-yields-to-all": (
        "state/reservations/future_reservations.cc", "  return as.over_by_ms != kNever && kept.starts_ms != kNever && as.over_by_ms <= kept.starts_ms;\n", "  return true;\n"),
    "held-room-yields-to-none": (
        "state/reservations/future_reservations.cc", "over_by_ms <= kept.starts_ms;", "over_by_ms <= kept.starts_ms - 86'400'000;"),
    "a-limit-is-held-from-nobody": (
        "state/queueing/queue_checks.cc", "has + wants + kept.Get(id) <= most", "has + wants <= most"),
    "durations-from-the-start": (
        "state/reservations/projected_release.cc", "piece.over_ms = std::max(now_ms, began_ms + gang.rules.duration_ms);", "piece.over_ms = now_ms + gang.rules.duration_ms;"),
    "held-room-is-lost": (
        "state/reservations/future_reservations.cc", "  } else if (lifted.held) {\n    Charge(kept_.at(gang.id));\n", "  } else if (lifted.held) {\n    Erase(gang.id);\n"),
    "passing-is-forgotten-by-a-restart": (
        "state/persistence/records.cc", "  record.set_passed_since_ms(gang.kept.passed_since_ms);\n", ""),
    # --- queues (Q-1 to) ---
    "limit-of-the-queue-only": (
        "state/queueing/queue_checks.cc", "    of.fresh += fresh ? 1 : 0;\n", "    of.fresh += fresh ? 1 : 0;\n    break;\n"),
    "quota-binds-everybody": (
        "state/queueing/queue_checks.cc", "      if (fixed) of.fixed.Add(resource, amount);\n", "      if (fixed || amount > 0) of.fixed.Add(resource, amount);\n"),
    "one-unit-beyond-the-limit": (
        "state/queueing/queue_checks.cc", "if (has + wants + kept.Get(id) <= most ||", "if (has + wants + kept.Get(id) <= most + 1 ||"),
    "never-is-only-later": (
        "state/queueing/queue_checks.cc", "if (reason.code == ReasonCode::kQueueRejected) return reason;", "if (reason.code == ReasonCode::kQueueRejected) continue;"),
    "total-is-not-asked-for": (
        "state/queueing/queue_checks.cc", "whole ? std::max(needed, gang.rules.total_number) : needed", "needed"),
    "min-resources-are-not-asked-for": (
        "state/queueing/queue_checks.cc", "if (id >= 0 && sum.Get(id) < amount) sum.Set(id, amount);", "if (id >= 0 && sum.Get(id) > amount) sum.Set(id, amount);"),
    "any-number-of-gangs": (
        "state/queueing/queue_checks.cc", "runs + asked.fresh > may_run", "runs + asked.fresh > may_run + 1000"),
    "a-gang-that-ended-runs-on": (
        "state/machine/reconciler.cc", "  r_.queues->Follow(gang, runs, wants,", "  r_.queues->Follow(gang, runs || gang.children() > 0, wants,"),
    "who-never-can-asks-all-the-same": (
        "state/queueing/queues.cc", "  if (waits && !never && home", "  if (waits && home"),
    "alike-is-alike": (
        "state/scheduling/planning.cc", "const int64_t over = r_.pipeline->AnyTimed() ?", "const int64_t over = gangs.empty() ?"),
    "nothing-is-kept-beside": (
        "state/scheduling/reserve_room.cc", "    kept.push_back({&r_.gangs->gang(id), r_.pipeline->KeptFor(r_.gangs->gang(id))});\n", ""),
    "who-is-over-the-share-first": (
        "state/queueing/queues.cc", "over_a != over_b) return over_b;", "over_a != over_b) return over_a;"),
    "shares-of-yesterday": (
        "state/scheduling/planning.cc", "  r_.queues->NewRound();\n", ""),
    "extras-beyond-the-limit": (
        "state/frontends/extender_frontend.cc", "    if (Reason reason = r_.queues->Check(pod); !reason.none()) {\n", "    if (Reason reason = r_.queues->Check(pod); !reason.none() && false) {\n"),
    "refused-extras-are-forgotten": (
        "state/scheduling/waking.cc", "  if (freed) r_.queues->TouchRefused();\n", ""),
    "room-in-a-queue-wakes-nobody": (
        "state/scheduling/waking.cc", "      return QueueSaysOtherwise(first);", "      return missed && QueueSaysOtherwise(first);"),
    "the-newest-first": (
        "state/queueing/fair_share.cc", ": a->age < b->age;", ": a->age > b->age;"),
    "rest-by-no-weight": (
        "state/queueing/fair_share.cc", "wants_[each.claim] - each.got, claim.weight,", "wants_[each.claim] - each.got, 1,"),
    "quotas-by-priority": (
        "state/queueing/fair_share.cc", "      for (Party& each : parties) each.priority = 0;  // every quota alike\n", ""),
    "waiting-gangs-stay-counted": (
        "state/queueing/queues.cc", "  Count(known.queue, -1, &waiting_gangs_);\n", ""),
    "grpc-gangs-name-no-queue": (
        "service/rpc/reading.cc", "    out->queue = gang.queue();\n", ""),
    "grpc-gangs-are-preemptible": (
        "service/rpc/reading.cc", "  if (gang.has_preemptible()) out->preemptible = gang.preemptible();\n", ""),
    "grpc-queue-names-unchecked": (
        "service/rpc/reading.cc", "    if (!IsQueueName(gang.queue())) {\n", "    if (false) {\n"),
    "cores-as-milli": (
        "service/app.cc", 'return resource == "cpu" ? static_cast<double>(amount) / 1000 : static_cast<double>(amount);', "static_cast<void>(resource);\n  return static_cast<double>(amount);"),
    "gangs-in-inner-queues": (
        "state/model/queue_tree.cc", "  if (id != kNoQueue && at(id).leaf) return {id, {}};\n", "  if (id != kNoQueue) return {id, {}};\n"),
    "fair-takes-totals": (
        "state/gangs/eligibility.cc", "  if (spec.sort != QueueSort::kFair) return {};\n", "  if (spec.sort != QueueSort::kFair || gang.rules.declares_total) return {};\n"),
    "new-queues-wake-nobody": (
        "state/machine/queue_commands.cc", "  gangs_.JudgeAnew();\n", ""),
    "parents-account-unbooked": (
        "state/base/accounts.cc", "    sums_[static_cast<size_t>(account)].AddTimes(amounts, times);\n  }\n}\n\nvoid Accounts::Book(int32_t account, const ResourceSum&",
        "    sums_[static_cast<size_t>(account)].AddTimes(amounts, times);\n    break;\n  }\n}\n\nvoid Accounts::Book(int32_t account, const ResourceSum&"),
    # --- what an unkind world was found to do ---
    "too-early-is-forgotten": (
        "state/binding/bindings.cc", "  if (pod.state == MemberState::kPending && RetryAt(pod) > 0) return RetryAt(pod);\n", ""),
    "any-answer-is-a-list": (
        "k8s-extender/apiserver/informer.cc",
        "    if (absl::Status is_list = CheckList(*list); !is_list.ok()) return is_list;\n", ""),
    "bookmarks-are-news": (
        "k8s-extender/apiserver/informer.cc",
        "  const absl::StatusOr<Json> event = ParseJsonCut(line, \"watch event\");\n",
        "  ++events_;\n  const absl::StatusOr<Json> event = ParseJsonCut(line, \"watch event\");\n"),
    "a-watch-is-tried-for-ever": (
        "k8s-extender/apiserver/informer.cc", "  if (!busy) ++in_vain_;\n", "  static_cast<void>(busy);\n"),
    "the-end-of-one-before-ends-this-one": (
        "k8s-extender/apiserver/informer.cc",
        "    if (known == known_.end() || known->second == identity) handlers_.remove(identity, key);\n",
        "    handlers_.remove(identity, key);\n"),
    "time-is-for-each-read": (
        "k8s-extender/apiserver/client.cc", "[connection] { connection->stop(); }", "[connection] {}"),
    "any-bytes-are-text": (
        "k8s-extender/apiserver/client.cc", "\": \", Plain(message));", "\": \", message);"),
    "every-conflict-is-another-pod": (
        "k8s-extender/actuator/actuator.cc", "  return same ? Again(refused) : Done();\n",
        "  static_cast<void>(refused);\n  return same ? Done() : Done();\n"),
    "told-to-wait-for-ever": (
        "k8s-extender/actuator/actuator.cc", "std::min(verdict.pause, options_.longest_told)", "verdict.pause"),
    "a-damaged-log-is-a-short-one": (
        "service/store/sqlite_log.cc", "    if (follows && behind_commit) {\n", "    if (false && behind_commit) {\n"),
    "a-torn-commit-is-damage": (
        "service/store/sqlite_log.cc", "ends != 0 && (!pads || ends != ended);", "ends != 0;"),
    "whatever-stands-there-is-ours": (
        "service/store/sqlite_store.cc", "if (mine_->size != said.st_size || header_ != ReadHeader()) return LeaveToOthers();", ""),
    "links-have-their-own-lock": (
        "service/store/sqlite_store.cc", "  options.path = RealPath(options.path);\n", ""),
    "half-an-export-is-one": (
        "clients/musterctl/store_commands.cc", "  if (!whole) {\n", "  if (false && !whole) {\n"),
    "what-cannot-be-printed-is-lost": (
        "clients/musterctl/main.cc", "  if (std::cout.good()) return code;\n", "  return code;\n"),
    "gates-that-stay-are-not-said": (
        "state/views/wait_reasons.cc", "plan.called_again() ? calls_->StillGated(gang, plan.id) : \"\"", "std::string()"),
    "a-gate-is-late-at-once": (
        "state/views/wait_reasons.cc", "plan.called_again() ? calls_", "true ? calls_"),
    "a-mate-that-is-whole-never-started": (
        "state/binding/bindings.cc", "mate->kept.satisfied && started(mate)) return;", "mate->kept.satisfied && started(mate)) break;"),
    "half-a-group-is-nobody": (
        "state/binding/repair.cc", "    gangs_->SetSatisfied(*mate, false);\n", ""),
    "the-first-members-are-asked-for": (
        "state/queueing/queue_checks.cc", "  if (pods == needed || runs.size() == 1) {\n", "  if (true) {\n"),
    "the-dearest-are-placed-or-nobody": (
        "state/scheduling/placing.cc", "constexpr int kMostLeftOut = 8;", "constexpr int kMostLeftOut = 0;"),
    "a-plan-keeps-what-its-queue-lost": (
        "state/machine/reconciler.cc", "  if (TakeBackOverdrawn(gang, step)) return SettleQueue(gang, step);\n", ""),
    "any-size-takes-a-kept-place": (
        "state/binding/future_slots.cc", " && r_.queues->CheckInstead(pod, slot.cls).none()", ""),
    "hold-is-for-nodes-only": (
        "state/scheduling/reserve_room.cc", "    const bool first = hold && !r_.queues->HeldForOthers(gang);\n", "    const bool first = false;\n"),
    "what-cannot-run-holds-its-queue": (
        "state/scheduling/reserve_room.cc", "    if (!CouldRun(gang, gangs, lifted, now_ms)) {\n", "    if (!CouldRun(gang, gangs, lifted, now_ms) && now_ms < 0) {\n"),
    "verbs-ask-in-vain": (
        "state/frontends/verbs_permit.cc", "r_.queues->Never(*pod.gang)", "Reason()"),
    "a-parent-has-nothing-of-its-own": (
        "state/queueing/queues.cc", "  if (home == kNoQueue && gang.active() > 0) return tree_->Find(gang.rules.queue);\n", ""),
    "groups-wait-in-one-queue": (
        "state/queueing/queues.cc", "AddDemand(Of(*each), Request(*each), &demand);", "AddDemand(home, Request(*each), &demand);"),
    "a-total-is-the-first-member": (
        "state/queueing/queue_checks.cc", " && gang.rules.min_resources.empty()) {", ") {"),
    "old-successes-run": (
        "state/views/view.cc", "gang.active() > 0 || (succeeded > 0 && pending == 0)", "gang.active() + succeeded > 0"),
    "words-of-before": (
        "state/scheduling/planning.cc", "  r_.backlog->SetReason(leader.id, {ReasonCode::kNoRoom, std::move(placed.why)});\n", ""),
    "not-known-is-not-bound": (
        "state/binding/bindings.cc", "  if (outcome.result == BindingResult::kRefused) return Fail(pod, outcome.message, step);\n",
        "  if (outcome.result == BindingResult::kRefused || step->now_ms() + RetryDelayMs(binding.attempts) >= r_.barrier->Of(pod).answer_by_ms) return Fail(pod, outcome.message, step);\n"),
    "who-cannot-be-asked-says-no": (
        "k8s-extender/actuator/actuator.cc", "found == Found::kUnknown ? BindingResult::kRetry", "false ? BindingResult::kRetry"),
    "the-log-is-put-aside-again": (
        "service/store/sqlite_store.cc", "  if (ours && left_.empty()) {\n", "  if (open_ != nullptr && access(log.c_str(), F_OK) == 0) {\n    left_.clear();\n"),
    "a-slow-answer-keeps-all": (
        "service/rpc/request_log.cc", "        order_.pop_front();\n        continue;\n", "        return;\n"),
    "preempts-wait-for-the-store": (
        "k8s-extender/webhook/extender.cc", "kPreemptPatience = absl::Milliseconds(1'500)", "kPreemptPatience = absl::Seconds(60)"),
    "one-status-for-all-of-a-name": (
        "k8s-extender/actuator/background.cc", " && known->second.uid == view.object_uid", ""),
    "who-cannot-serve-takes-over": (
        "service/app.cc", "  if (absl::Status free = CanServe(); !free.ok()) return free;\n", ""),
    "a-known-answer-is-no-word": (
        "service/rpc/door.h", "                       if (again && answer.status.ok()) return again(finish);\n", ""),
    "collectors-may-drip": (
        "service/tracing/otlp_exporter.cc", "[&client] { client.stop(); }", "[] {}"),
    "collectors-may-say-all": (
        "service/tracing/otlp_exporter.cc", "    return offset + size < kMostRead;\n",
        "    static_cast<void>(offset);\n    return true;\n"),
    "aliases-are-written-out": (
        "service/config/yaml_keys.cc", "      if (deep || ++nodes > kMostNodes) return;\n", "      if (++nodes > 100 * kMostNodes) return;\n"),
    "behind-the-end-is-nothing": (
        "service/recorder/segment.cc",
        "    return at_ == bytes_.size() ? absl::OkStatus() : Broken(\"something stands behind its end\");\n",
        "    return absl::OkStatus();\n"),
    "any-length-is-a-torn-end": (
        "service/recorder/segment.cc", "    if (!FrameBehind(rest.substr(1))) return false;\n", "    if (rest.size() > 0) return false;\n"),
    "commands-are-not-counted": (
        "service/recorder/segment.cc", "    if (ending_.commands != read_) {\n", "    if (false) {\n"),
    "who-does-not-read-keeps-his-place": (
        "service/http/door_stream.cc", "    if (stalled_) stalled_(true);\n", ""),
    "a-backup-is-as-good-as-new": (
        "service/store/sqlite_store.cc", "    if (absl::Status copy = TakeFromCopy(&out.records); !copy.ok()) return copy;\n", ""),
    "two-record-into-one-file": (
        "service/recorder/recorder.cc", "  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return", "  if (lock_ >= 0) return"),
    "who-is-counted-again-is-news": (
        "state/reservations/projected_release.cc", ", /*again=*/true);", ");"),
    "a-moved-node-moves-nobody": (
        "state/machine/ingest.cc", "  if (moves) r_.claims->ReverifyElsewhere(/*all=*/relabelled, step);\n", "  static_cast<void>(moves);\n"),
    "the-unreadable-pass-heads": (
        "state/binding/plan_lifecycle.cc", " && !pod.facts.permanent && pod.cls != kNoClass;", " && !pod.facts.permanent;"),
    "who-was-not-yet-back-is-counted": (
        "state/reservations/future_reservations.cc", "  for (const GangId id : lifted.others) Charge(kept_.at(id));\n  for (auto id = lifted.others.rbegin(); id != lifted.others.rend(); ++id) {  // who comes last loses it first\n",
        "  for (auto id = lifted.others.rbegin(); id != lifted.others.rend(); ++id) {\n    Charge(kept_.at(*id));\n"),
    "who-asks-takes-the-next-try-away": (
        "state/machine/due.cc", "std::min(overdue_ms, Deadline(gang, now_ms))", "overdue_ms < 0 ? 0 : Deadline(gang, now_ms)"),
    "deleted-on-the-way-is-on-the-way": (
        "state/binding/bindings.cc", "  r_.ledger->NoteThere(pod.id);\n  r_.claims->FreeSlot(pod);\n", "  r_.claims->FreeSlot(pod);\n"),
    "one-deep-object-stops-all": (
        "support/json.cc", "  if (!TooDeep(text)) return Parse(text, what, nullptr);\n", "  if (what.size() > 0) return ParseJson(text, what);\n"),
    "a-watch-hides-what-it-missed": (
        "service/rpc/event_service.cc", "      missed_ += page.missed;  // once: the next page begins behind them\n", ""),
    "who-preempts-is-refused-afterwards": (
        "state/frontends/extender_preempt.cc", "    if (guarded || BreaksGang(promised, candidate.victim_uids)) continue;\n", "    if (BreaksGang(promised, candidate.victim_uids)) continue;\n"),
    "his-own-room-keeps-him-off": (
        "state/frontends/extender_frontend.cc", "    yielded.AddTimes(request, 1);  // it was nominated for the node: what is reserved there is its own\n", ""),
    "one-victim-is-counted-twice": (
        "state/frontends/extender_preempt.cc", "    if (pod != nullptr && pod->gang != nullptr) victims_[{uid, preemptor}] = now_ms + kVictimMs;\n", ""),
    "the-last-who-was-told-of-him-has-him": (
        "state/frontends/extender_preempt.cc", "    if (whose == preemptor || uid == last) continue;\n    last = uid;\n",
        "    if (uid == last) continue;\n    last = uid;\n    if (std::prev(victims_.lower_bound({uid + '\\0', std::string()}))->first.second == preemptor) continue;\n"),
    "who-gives-way-to-nobody-does": (
        "state/frontends/extender_preempt.cc", "    if (!pod->gang->rules.preemptible) return true;  // D-13\n", ""),
    "budgets-are-not-weighed": (
        "k8s-extender/webhook/extender_json.cc", "args.pdb_violations[i]}};", "args.pdb_violations[i] * 0}};"),
    "owners-are-no-gangs-in-preempt": (
        "k8s-extender/webhook/extender_json.cc", "  GroupByOwner(pod, owner_kinds, &grouped);\n", "  static_cast<void>(owner_kinds);\n"),
    "the-last-binding-makes-it-whole": (
        "state/binding/bindings.cc", "!gang.kept.evicting && gang.whole()) NoteWhole(gang);", "!gang.kept.evicting) NoteWhole(gang);"),
    "who-runs-for-long-was-started-with-it": (
        "state/binding/repair.cc", "  for (const std::string& key : mates) {\n", "  for (const std::string& key : mates.empty() ? gang.rules.group : mates) {\n"),
    "a-repair-ends-with-its-places": (
        "state/machine/reconciler.cc", "    if (r_.repair->Mates(gang).empty()) r_.repair->Cancel(gang);", "    r_.repair->Cancel(gang);"),
    "a-part-goes-alone": (
        "state/binding/repair.cc", "(gang.active() == 0 || goes) && HalveGroup", "gang.active() == 0 && HalveGroup"),
    "who-needs-nobody-is-half-bound": (
        "state/gangs/types.h", " && rules.min_member != 0;", ";"),
    "who-takes-the-place-is-not-called": (
        "state/binding/plan_lifecycle.cc", "    return r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);  // who takes its place may be parked\n", "    return;\n"),
    "refused-members-call-each-other": (
        "state/machine/reconciler.cc", "        return fits->second;\n", "        return fits->second || full;\n"),
    "guarded-members-call-each-other": (
        "state/barrier/activations.cc", "state.refused && state.guarded == kNoClass && may(*pod)", "state.refused && may(*pod)"),
    "who-is-nominated-passes-his-limit": (
        "state/reservations/nominations.cc", " || !queues_->Check(*pod).none()) continue;", " || queues_ == nullptr) continue;"),
    "members-are-nominated-in-vain": (
        "state/machine/reconciler.cc", "    if (alone && !nominated) r_.nominations->Add(*pod);\n", ""),
    "who-comes-to-a-permitted-gang-waits": (
        "state/binding/permits.cc", "if (plan == nullptr || (plan->committed && each == &gang)) together", "if (plan == nullptr) together"),
    "bound-pods-hold-calls": (
        "state/reservations/plans.cc", "  if (Mut(*pod.gang).uses_holds) --promised_holds_;\n", "  if (Mut(*pod.gang).uses_holds) promised_holds_ -= 0;\n"),
    "another-minimum-strands-those-alike": (
        "state/machine/ingest.cc", "r_.planning->LeaveAlike(gang);\n  r_.backlog->ForgetReason", "r_.backlog->Remove(gang.id);\n  r_.backlog->ForgetReason"),
    "pods-of-a-former-owner-are-members": (
        "state/machine/ingest_pods.cc", "  if (object->second.uid == membership.owner_uid) return OwnerOf::kKnown;\n", "  if (object->second.uid.size() > 0) return OwnerOf::kKnown;\n"),
    "a-former-owner-says-how-many": (
        "state/machine/ingest.cc", "  if (another && object.dialect == GangDialect::kOwner) FollowOwner(gang, step);\n", ""),
    "victims-are-counted-for-ever": (
        "state/frontends/extender_preempt.cc", "at->second <= step->now_ms() ?", "at->second < 0 ?"),
    "it-runs-frees-what-it-has": (
        "state/machine/ingest_pods.cc", "facts.shape = known.shape;\n  return", "static_cast<void>(says_nothing);\n  return"),
    "who-comes-late-is-not-read": (
        "k8s-extender/apiserver/cluster_feed.cc", "if (!path.ok() || path->empty()) {  // what", "if (true) {  // what"),
    "late-kinds-make-all-wait": (
        "k8s-extender/apiserver/cluster_feed.cc", "return expected_ > 0 && listed_ >= expected_;", "return !informers_.empty() && listed_ >= informers_.size();"),
    "an-event-is-sent-once": (
        "k8s-extender/actuator/background.cc", "++event.attempts < tries &&", "++event.attempts < 0 &&"),
    "one-event-keeps-all-back": (
        "k8s-extender/actuator/background.cc", "  event->alone = !overloaded;\n", "  event->alone = false;\n"),
    "an-event-that-arrived-is-told-twice": (
        "k8s-extender/actuator/background.cc", "  if (event->count == 1 && event->attempts > 0) return Done();  // an earlier try of it had arrived\n", ""),
    "a-forgotten-event-stays-forgotten": (
        "k8s-extender/actuator/background.cc", "if (!again.ok() || again->status == 404) return Again(again);", "if (!again.ok()) return Again(again);"),
    "who-starts-over-hears-nothing": (
        "service/rpc/event_service.cc", "+ page.missed, page.last);", "+ page.missed, page.last + (int64_t{1} << 40));"),
    "what-is-missed-is-counted-again": (
        "service/rpc/event_service.cc", "std::max<int64_t>(after_, 0) + page.missed, page.last)", "std::max<int64_t>(after_, 0), page.last)"),
    "ports-wrap": (
        "clients/cpp/muster_client.cc", "  if (absl::Status port = CheckPort(options.server); !port.ok()) return port;\n", "  static_cast<void>(CheckPort);\n"),
    "who-never-runs-keeps-its-queue": (
        "state/scheduling/reserve_room.cc", "    places.empty() ? r_.queues->EndHold(gang) : r_.queues->Hold(gang);\n", "    if (!places.empty()) r_.queues->Hold(gang);\n"),
    "strict-heads-are-for-ever": (
        "state/reservations/backfill.cc", "  if (strict_.contains(gang.id)) return again_ms;\n", "  if (strict_.contains(gang.id)) return kNever;\n"),
    "numbers-of-classes-come-again": (
        "state/cluster/cluster.cc", "  released_classes_.push_back(id);\n", "  unused_classes_.push_back(id);\n"),
    "who-goes-opens-his-own-node": (
        "state/binding/plan_lifecycle.cc", "r_.cluster->has_class(cls) && r_.cluster->pod_class(cls).has_neighbours;\n    });", "r_.cluster->has_class(cls) && cls < 0;\n    });"),
    "what-could-not-run-never-will": (
        "state/scheduling/waking.cc", "      if (facts_changed) Doubt(r_.gangs->gang(first));\n", ""),
    "what-could-run-always-will": (
        "state/scheduling/waking.cc", "  if (lost) r_.heads->DoubtHolders();\n", "  static_cast<void>(lost);\n"),
    "the-next-alike-sleeps": (
        "state/scheduling/planning.cc", "  given_up_[*next].retry_at_ms = retry_at_ms;\n", ""),
    "who-left-is-near-still": (
        "state/machine/ingest_pods.cc", "  if (felt) r_.claims->ReverifyElsewhere(/*all=*/false, step);\n  if (pod.cls", "  static_cast<void>(felt);\n  if (pod.cls"),
    "taints-move-nobody": (
        "state/machine/ingest.cc", " || r_.cluster->node(known).facts.taints != node.taints;", ";"),
    "less-is-held-in-silence": (
        "state/queueing/queues.cc", "  if (!fresh) ledger_->NoteFreed();  // it may ask for less by now\n", ""),
    "statuses-come-first": (
        "k8s-extender/actuator/background.cc", "std::exchange(status_was_last_, false) && due.has_value();", "std::exchange(status_was_last_, false) && events_.size() > 100'000;"),
    "logs-are-waited-for": (
        "service/telemetry/logging.cc", "    return poll(&out, 1, within_ms) != 0;", "    return poll(&out, 1, -within_ms) != 7;"),
    # --- what objects say is read, or refused (S-6) ---
    "a-wrong-type-asks-for-nothing": (
        "k8s-extender/dialects/metadata.cc",
        "  if (!right) Note(absl::StrCat(path, \".\", key, \": \", verb, \" a \", TypeName(value), \"; expected \", expected));\n", ""),
    "a-node-is-whatever-it-says": (
        "k8s-extender/dialects/objects.cc", "  if (!fields.problem().empty()) return absl::InvalidArgumentError(fields.problem());\n", ""),
    "any-effect-is-every-effect": (
        "k8s-extender/dialects/objects.cc", "if (!effect.empty() && !toleration.effect.has_value()) {", "if (effect.size() > 1'000) {"),
    "what-is-offered-is-rounded-up": (
        "k8s-extender/dialects/objects.cc", "reading == Reading::kOffered ? Rounding::kDown : Rounding::kUp", "Rounding::kUp"),
    "limits-count-beside-requests": (
        "k8s-extender/dialects/objects.cc", "      if (Child(resources, \"requests\").contains(name)) continue;\n", ""),
    "more-than-can-be-counted-is-not-charged": (
        "k8s-extender/dialects/objects.cc", "reading == Reading::kAsked\n          ? ParseQuantity(text, unit)", "reading != Reading::kOffered\n          ? ParseQuantity(text, unit)"),
    "who-opted-in-by-half-is-not-charged": (
        "k8s-extender/dialects/objects.cc", "if (decides != binds && !on_node) {", "if (decides != binds) {"),
    "who-has-a-node-is-not-charged": (
        "k8s-extender/dialects/objects.cc", "if (out.invalid.empty() && out.node_name.empty()) out.invalid", "if (out.invalid.empty()) out.invalid"),
    "a-resize-is-not-seen": (
        "k8s-extender/dialects/objects.cc", "      TakeLarger(kept, &asked);\n", ""),
    "a-resize-that-cannot-be-counts": (
        "k8s-extender/dialects/objects.cc", "    if (!infeasible_) {\n", "    if (!infeasible_ || asked.size() < 1'000) {\n"),
    "sidecars-are-not-resized": (
        "k8s-extender/dialects/objects.cc", "      if (sidecar) requests = OnNode(", "      if (!sidecar) requests = OnNode("),
    "sidecars-have-no-ports": (
        "k8s-extender/dialects/objects.cc", "  ParseHostPorts(spec, \"initContainers\", fields, out);\n", ""),
    "what-is-no-neighbour-rule-is-none": (
        "k8s-extender/dialects/pod_affinity.cc",
        "    if (own.problem().empty()) out.spread.push_back(std::move(read));\n    fields->Note(own.problem());\n",
        "    if (own.problem().empty()) out.spread.push_back(std::move(read));\n"),
    "the-last-wave-is-a-whole-one": (
        "k8s-extender/dialects/owners.cc", "    count.first = std::min(count.all, std::max<int64_t>(1, left));\n", "    static_cast<void>(left);\n"),
    "jobs-in-order-come-at-once": (
        "k8s-extender/dialects/owners.cc", "(in_order && behind) ||", "(in_order && behind && count.first < 0) ||"),
    "who-waited-comes-with-who-is-over": (
        "k8s-extender/dialects/owners.cc", "      if (over.contains(StringOrEmpty(jobs[i], \"name\"))) continue;\n", ""),
    "failed-indexes-come-again": (
        "k8s-extender/dialects/owners.cc", "      sum += std::clamp<int64_t>(last - first + 1, 0, kMostMembers);\n", ""),
    "dependents-come-at-once": (
        "k8s-extender/dialects/owners.cc", "    return depends_on.is_array() &&", "    return depends_on.is_string() &&"),
    "a-late-launcher-is-waited-for": (
        "k8s-extender/dialects/owners.cc", "return {all, all - later, \"\"};", "return {all, all, \"\"};"),
    "owners-of-one-name-are-one": (
        "k8s-extender/dialects/owners.cc", "  out->gang.owner_uid = owner->uid;\n", ""),
    "a-token-file-is-where-we-are": (
        "k8s-extender/apiserver/kube_config.cc", "    config.token_file = InFolder(file.as<std::string>(), folder);\n", "    config.token_file = file.as<std::string>();\n"),
    "a-token-that-is-not-there-is-nobody": (
        "k8s-extender/apiserver/kube_config.cc", "if (!token.ok() && config.token.empty())", "if (!token.ok() && !config.token.empty())"),
    "an-affinity-without-values-waits": (
        "service/rpc/shape_reading.cc", "      if (count == 0) wrong(\"at least one\");\n", ""),
    "tolerations-say-what-nobody-reads": (
        "service/rpc/shape_reading.cc", "if (exists && !from.value().empty()) {", "if (exists && from.value().size() > 1'000'000) {"),
    "addresses-are-any-text": (
        "service/rpc/shape_reading.cc", "if (!IsAddress(port.ip)) {", "if (port.ip.empty() && !IsAddress(port.ip)) {"),
    "a-port-is-taken-twice": (
        "service/rpc/shape_reading.cc", "if (!seen.emplace(port.protocol, port.port, port.ip).second) {", "if (seen.size() > 100'000) {"),
    "fields-are-any-fields": (
        "service/rpc/shape_reading.cc", "if (by_name ? from[i].key() != \"metadata.name\" : !IsLabelKey(from[i].key())) {", "if (!by_name && !IsLabelKey(from[i].key())) {"),
    "resources-have-blank-names": (
        "service/rpc/reading.cc", " && absl::c_all_of(name, seen);", ";"),
    "half-a-device-is-offered": (
        "service/rpc/reading.cc", "ReadAmounts(node.allocatable(), At(path, \"allocatable\"), violations, Rounding::kDown);", "ReadAmounts(node.allocatable(), At(path, \"allocatable\"), violations);"),
    "labels-of-nodes-are-any-text": (
        "service/rpc/reading.cc", "    if (!IsShown(key)) violations->Add(At(path, \"labels\")", "    if (key.size() > 1000) violations->Add(At(path, \"labels\")"),
    "a-group-is-the-others": (
        "service/rpc/reading.cc", "gang.groups.empty() || absl::c_linear_search(gang.groups, id)", "gang.groups.empty() || !id.empty()"),
    "members-share-a-name": (
        "service/rpc/reading.cc", "  if (violations->none()) CompareMembers(", "  if (!violations->none()) CompareMembers("),
    "a-subgroup-of-none": (
        "service/rpc/reading.cc", "    if (!named.empty()) violations->Add(path, absl::StrCat(Quoted(named), \"; its gang declares no subgroups\"));\n", ""),
    "there-and-gone-in-one-step": (
        "service/rpc/facts_service.cc", "      CheckRemoved(*request, update, &violations);\n", ""),
    "something-comes-behind-the-last-part": (
        "service/rpc/facts_service.cc", "    if (ended_) {\n", "    if (ended_ && parts_ < 0) {\n"),
    "nobody-warns-of-an-empty-node": (
        "service/rpc/facts_service.cc", "    if (!OffersNothing(facts.nodes[i])) continue;\n", "    if (!OffersNothing(facts.nodes[i]) || i < 1'000'000) continue;\n"),
    "what-the-core-says-has-no-field": (
        "service/rpc/errors.cc", "  if (field_of != nullptr) {\n", "  if (field_of != nullptr && line.empty()) {\n"),
    "a-group-waits-for-one-plan": (
        "state/views/wait_reasons.cc", "  if (plan.mates.empty()) return \"until the plan is confirmed\";\n", "  return \"until the plan is confirmed\";\n"),
    "callers-need-a-scheduler": (
        "state/views/view.cc", "asked != pending.end() && (*asked)->facts.scheduler_name.empty();", "asked == pending.end();"),
    "nobody-is-missing-at-the-barrier": (
        "state/views/view.cc", "      return BarrierHint(gang, eligibility.Unplaced(gang));\n", "      return \"\";\n"),
    "planned-room-waits-for-members": (
        "service/rpc/gang_service.cc", "      if (plan != nullptr && plan->to_come == 0) unconfirmed_.insert(holder.gang);\n", "      static_cast<void>(plan);\n"),
    "a-wait-ends-with-its-connection": (
        "clients/cpp/muster_client.cc", "if (enough || !away || !lost(ended)) return ended;", "if (enough || !away || lost(ended)) return ended;"),
    "owners-that-nobody-reads-have-names": (
        "k8s-extender/apiserver/cluster_feed.cc",
        "                  pod->gang.owner_uid.clear();  // nobody will tell which of its name is the one that is there\n", ""),
    "created-in-the-same-second-is-gone": (
        "state/machine/ingest_pods.cc", "  return facts.node_name.empty() ? OwnerOf::kUnread : OwnerOf::kFormer;\n",
        "  return OwnerOf::kFormer;\n"),
    "every-failure-is-news": (
        "state/binding/repair.cc", "return !absl::c_binary_search(gang.kept.failed, pod->facts.uid);", "return pod != nullptr;"),
    "places-are-given-back-unread": (
        "state/machine/machine.cc",
        "void Machine::On(const Unreserve& command, Step* step) {\n  if (!sources_.complete()) return step->Refuse(StillReading());\n",
        "void Machine::On(const Unreserve& command, Step* step) {\n"),
    "bound-before-it-is-read-is-not-permitted": (
        "state/machine/machine.cc",
        "void Machine::On(const PostBind& command, Step* step) {\n  if (!sources_.complete()) return step->Refuse(StillReading());\n",
        "void Machine::On(const PostBind& command, Step* step) {\n"),
    "whoever-is-there-brings-those-to-come": (
        "state/gangs/eligibility.cc", "all_to_come > 0 ? gang.quorum().SomebodyServes(gang.kept.satisfied) : plannable > 0", "plannable > 0"),
    "who-has-a-place-comes-as-an-extra": (
        "state/machine/reconciler.cc",
        "        if (calls && (r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasPlaceFor(pod))) return false;\n", ""),
    "old-domains-keep-off": (
        "state/machine/ingest.cc",
        "  for (const Pod* pod : gang.in(MemberState::kPending)) r_.calls->Unguard(*pod);\n", ""),
    "nominated-at-the-barrier": (
        "state/frontends/verbs_permit.cc", "    r_.nominations->Remove(pod);\n", ""),
    "waits-since-the-process-does": (
        "service/rpc/mapping.cc", "std::min(view.waits_since_ms, view.reason_since_ms)", "view.reason_since_ms"),
    "who-came-is-met-in-silence": (
        "state/binding/future_slots.cc",
        "    if (met && plan != nullptr) r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);\n", "    static_cast<void>(met);\n"),
    "the-next-one-of-a-start-is-not-called": (
        "state/binding/plan_lifecycle.cc",
        "    if (gang.kept.room_until_ms != 0) r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);\n", ""),
    "who-came-keeps-his-place-for-ever": (
        "state/machine/due.cc", "  r_.claims->AwaitWhoCame(gang);  // who came, and whose scheduler did not ask for his place\n", ""),
    "siblings-of-the-satisfied-serve": (
        "state/model/quorum.cc", "serves[i] == 0 && (node.parent < 0 || serves[static_cast<size_t>(node.parent)] != 0) ? 1 : 0", "serves[i] == 0 ? 1 : 0"),
    "what-may-arrive-is-planned-anew": (
        "state/machine/ingest.cc", "  if (places.empty()) return;\n  const Group gangs", "  if (!places.empty()) return;\n  const Group gangs"),
    "places-that-were-sent-are-anybodys": (
        "state/scheduling/placing.cc", "    if (slot >= 0 && r_.plans->HasPlaceFor(*place.pod)) r_.plans->Offer(*place.pod, slot);\n",
        "    static_cast<void>(slot);\n"),
    "planned-again-without-room": (
        "state/scheduling/placing.cc", "      if (!fits || missing-- == 0) return false;\n", "      static_cast<void>(fits);\n      if (missing-- == 0) return false;\n"),
    "a-pod-alone-loses-what-was-sent": (
        "state/binding/commitments.cc", "    if (!alone || !TakeUpSent(", "    if (alone || !TakeUpSent("),
    "what-was-sent-is-kept-for-ever": (
        "state/binding/bindings.cc", "  if (Resumable(pod)) return EndResume(pod, step);\n", ""),
    "kept-where-its-scheduler-does-not-go": (
        "state/frontends/extender_frontend.cc", "    if (question.offer->Contains(node)) {\n", "    if (question.offer != nullptr) {\n"),
    "kept-although-refused": (
        "state/machine/ingest_pods.cc",
        "  if (r_.bindings->Resumable(pod) && SaysNothingOfUs(pod) && TellsOfNodes(pod)) r_.bindings->EndResume(pod, step);\n", ""),
    "given-back-for-a-call-that-failed": (
        "state/machine/ingest_pods.cc", " && SaysNothingOfUs(pod) && TellsOfNodes(pod)) r_.bindings", " && SaysNothingOfUs(pod)) r_.bindings"),
    "kept-for-a-gangs-member": (
        "state/machine/ingest_pods.cc",
        "  if (change.gang && r_.bindings->Resumable(pod)) r_.bindings->EndResume(pod, step);  // a plan is to say where it goes\n", ""),
    "kept-and-evicts-others": (
        "state/frontends/extender_preempt.cc",
        "  if (pod != nullptr && r_.bindings->Resumable(*pod)) r_.bindings->EndResume(*pod, step);  // it finds no node\n", ""),
    "anybodys-outcome-ends-what-is-kept": (
        "state/binding/bindings.cc", "  if (!asked || Resumable(pod) || binding.node", "  if (!asked || binding.node"),
    "who-arrives-late-takes-the-places-of-all": (
        "state/binding/bindings.cc", "  if (there) r_.plans->DropFree(gang, index);\n", "  static_cast<void>(there);\n  static_cast<void>(index);\n"),
    "who-waits-for-a-late-one-waits-on": (
        "state/machine/reconciler.cc", " && (plan->to_come > 0 || plan->held == plan->present());", " && plan->to_come > 0;"),
    "planned-again-in-two-domains": (
        "state/machine/ingest.cc",
        "  for (const Planning::Destination& place : places) r_.claims->ReverifyNode(place.node, step);\n", ""),
}
