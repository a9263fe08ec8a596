#include <algorithm>

#include "absl/strings/str_cat.h"
#include "state/cluster/statement.h"
#include "tests/simulation/random_world.h"
#include "tests/state/cluster/pod_affinity_twin.h"
#include "tests/support/cluster_hash.h"
#include "tests/verify/hash.h"
#include "tests/verify/invariants.h"

namespace muster {

std::string RandomWorld::RestoreDiffers() const {
  std::vector<Record> records;
  for (const auto& [name, record] : records_) records.push_back(record);
  Machine other(Settings());
  if (const absl::Status loaded = other.Load(records); !loaded.ok()) return std::string(loaded.message());
  // Before the facts are complete nothing is reconciled: gangs are as they were promised.
  Outcome outcome;
  for (const auto& [key, object] : objects_) other.Apply(UpsertGangObject{object}, now_ms_, &outcome);
  for (const auto& [uid, pod] : pods_) {
    other.Apply(UpsertPod{machine_->reader().FindPod(uid)->facts}, now_ms_, &outcome);
  }
  // Submitted gangs are submitted again by their callers; their records are compared all the same.
  machine_->reader().ForEachGang([&](const Gang& gang) {
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) {
        if (pods_.count(pod->facts.uid) == 0) other.Apply(UpsertPod{pod->facts}, now_ms_, &outcome);
      }
    }
  });
  if (DurableHash(other) == DurableHash(*machine_)) return "";
  return "the durable state is restored otherwise";
}

std::string RandomWorld::FactsDiffer() const {
  std::vector<Record> records;
  for (const auto& [name, record] : records_) records.push_back(record);
  Machine other(OwnSettings());
  if (const absl::Status loaded = other.Load(records); !loaded.ok()) return std::string(loaded.message());
  Outcome outcome;
  other.Apply(RestoreFacts{}, now_ms_, &outcome);
  if (!outcome.status.ok()) return absl::StrCat("what was kept is refused: ", outcome.status.message());
  if (records.empty()) return "";
  if (other.rooms().sources.announcer() != machine_->rooms().sources.announcer() ||
      other.rooms().sources.version() != machine_->rooms().sources.version()) {
    return "the announcer's version is another";
  }
  if (other.reader().gangs.pod_count() != machine_->reader().gangs.pod_count()) {
    return absl::StrCat(other.reader().gangs.pod_count(), " of ", machine_->reader().gangs.pod_count(),
                        " pods are there again");
  }
  const Cluster& cluster = machine_->rooms().cluster;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (!cluster.node(id).known || !cluster.node(id).present) continue;
    const std::string& name = cluster.node(id).facts.name;
    const NodeId there = other.rooms().cluster.FindNode(name);
    if (there == kNoNode || !other.rooms().cluster.node(there).present) return absl::StrCat("node ", name, " is lost");
    const NodeDescription& facts = other.rooms().cluster.node(there).facts;
    const NodeDescription& before = cluster.node(id).facts;
    if (!(other.rooms().cluster.node(there).allocatable == cluster.node(id).allocatable) ||
        facts.labels != before.labels || facts.taints != before.taints || facts.unschedulable != before.unschedulable) {
      return absl::StrCat("node ", name, " is another");
    }
  }
  for (NodeId id = 0; id < other.rooms().cluster.node_limit(); ++id) {
    if (!other.rooms().cluster.node(id).known || !other.rooms().cluster.node(id).present) continue;
    const NodeId was = cluster.FindNode(other.rooms().cluster.node(id).facts.name);
    if (was == kNoNode || !cluster.node(was).present) {
      return absl::StrCat("node ", other.rooms().cluster.node(id).facts.name, " is there again and was gone");
    }
  }
  std::string differs;
  machine_->reader().ForEachGang([&](const Gang& gang) {
    const Gang* there = other.reader().FindGang(gang.key);
    if (there == nullptr) {
      // A name that only other gangs mention belongs to no gang.
      if (gang.children() > 0 || !gang.objects.empty()) differs = absl::StrCat("gang ", gang.key, " is lost");
      return;
    }
    if (there->objects.size() != gang.objects.size())
      differs = absl::StrCat("gang ", gang.key, ": its PodGroup is lost");
    if (there->submitted != gang.submitted) differs = absl::StrCat("gang ", gang.key, ": its submission is lost");
    const auto same = [](const auto& a, const auto& b) { return a.second.declaration == b.second.declaration; };
    if (there->objects.size() == gang.objects.size() &&
        !std::equal(gang.objects.begin(), gang.objects.end(), there->objects.begin(), same)) {
      differs = absl::StrCat("gang ", gang.key, ": its PodGroup is another");
    }
    if (there->rules.min_member != gang.rules.min_member && there->declared_by == gang.declared_by) {
      differs = absl::StrCat("gang ", gang.key, ": its minimum is another");
    }
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) {
        const Pod* its = other.reader().FindPod(pod->facts.uid);
        if (its == nullptr || its->facts.node_name != pod->facts.node_name || its->submitted != pod->submitted ||
            its->facts.shape->Key() != pod->facts.shape->Key() || its->facts.priority != pod->facts.priority ||
            its->facts.phase != pod->facts.phase || its->facts.gang.subgroup != pod->facts.gang.subgroup ||
            !(its->facts.gang.declaration == pod->facts.gang.declaration)) {
          differs = absl::StrCat("pod ", pod->facts.uid, " is lost, or another");
        }
      }
    }
  });
  return differs;
}

void RandomWorld::Plan() {
  const bool nominated =
      std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) { return !entry.second.nominated_node.empty(); });
  const int64_t plans = Plans();
  const Cluster& cluster = machine_->rooms().cluster;
  const uint64_t before = HashOf(cluster);
  const bool reserved = machine_->rooms().future_reservations.HasAnyReservation();
  const std::set<std::string> held = HeldFor();
  Apply(PlanRound{2});
  CheckHeads(held, plans);
  if (nominated || Plans() != plans || reserved || machine_->rooms().future_reservations.HasAnyReservation()) return;
  ++figures_["rounds rolled back"];
  if (HashOf(cluster) != before) violation_ = "a round of planning that promised nothing changed the cluster";
}

void RandomWorld::ComeToRest() {
  constexpr int kMaxRounds = 50;  // of which each tries every gang
  for (int rounds = 0; machine_->PlanningDue() && violation_.empty(); ++rounds) {
    if (rounds == kMaxRounds) violation_ = "P-9: planning is due for ever though nothing changes";
    Apply(PlanRound{64});
  }
}

int64_t RandomWorld::Plans() const {
  int64_t newest = 0;
  machine_->reader().ForEachGang([&](const Gang& gang) {
    if (const muster::Plan* plan = machine_->reader().FindPlan(gang); plan != nullptr)
      newest = std::max(newest, plan->id);
  });
  return newest;
}

Outcome RandomWorld::Apply(const Command& command) {
  Outcome outcome;
  if (only_transcribe_) {
    machine_->Apply(command, now_ms_, &outcome);
    TakeOut(outcome);
    return outcome;
  }
  if (writing_ && !lives_.empty()) lives_.back().commands.emplace_back(command, now_ms_);
  const std::set<std::string> placed = Placed();
  const QueueUse used = UseOfQueues();
  const bool finishing = queued_ && AnyPartiallyBound();
  machine_->Apply(command, now_ms_, &outcome);
  TakeOut(outcome);
  for (const Effect& effect : outcome.effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect)) {
      CheckWholeGang(bind->pod.uid);
      NoteMet(bind->pod.uid);
    }
  }
  CheckQueues(command, used, finishing);
  CheckDomains(outcome);
  CheckPodAffinity(outcome, placed);
  NoteWholeGangs();
  CheckWholeGroups();
  if (const absl::Status ok = CheckInvariants(*machine_); !ok.ok() && violation_.empty())
    violation_ = std::string(ok.message());
  return outcome;
}

// Delivers the outcome to the store, the API server and the callers.
void RandomWorld::TakeOut(const Outcome& outcome) {
  transcript_.Add(outcome);
  for (const Record& record : outcome.records) {
    if (record.value.empty()) {
      records_.erase(RecordName(record));
    } else {
      records_[RecordName(record)] = record;
    }
  }
  std::set<HoldToken> once;
  for (const HoldAnswer& answer : outcome.answers) {
    tokens_.erase(answer.token);
    if (!once.insert(answer.token).second) violation_ = absl::StrCat("token ", answer.token, " was answered twice");
  }
  for (const Effect& effect : outcome.effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect)) {
      bindings_[bind->pod.uid] = bind->node;
      ++figures_["bindings decided"];
    }
    if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
      if (pods_.count(mark->pod.uid) > 0) marks_.insert(mark->pod.uid);
    }
    if (const auto* evict = std::get_if<EvictPod>(&effect)) {
      if (pods_.count(evict->pod.uid) > 0) evictions_.insert(evict->pod.uid);
    }
  }
}

// Succeeded members count too, and future slots (P-7). Subgroups are counted by the names that pods give.
bool RandomWorld::Whole(const Gang& gang, const std::vector<MemberState>& states) const {
  std::map<std::string, int32_t> there;  // members of a leaf, or satisfied children
  int32_t all = 0;
  const auto count = [&](MemberState state) {
    for (const Pod* pod : gang.in(state)) {
      ++all;
      ++there[pod->facts.gang.subgroup];
    }
  };
  for (const MemberState state : states) count(state);
  count(MemberState::kSucceeded);
  const std::vector<Subgroup>& nodes = gang.rules.tree.nodes;
  if (nodes.empty()) return all >= gang.rules.min_member;
  if (const muster::Plan* plan = machine_->reader().FindPlan(gang); plan != nullptr) {
    for (const Subgroup& node : nodes) {
      for (const Slot& slot : plan->slots) there[node.name] += slot.is_future && slot.leaf == node.leaf ? 1 : 0;
    }
  }
  int32_t top = 0;
  std::map<std::string, int32_t> children;
  for (size_t i = nodes.size(); i-- > 0;) {
    const int32_t has = nodes[i].leaf >= 0 ? there[nodes[i].name] : children[nodes[i].name];
    if (has < nodes[i].minimum) continue;
    if (nodes[i].parent < 0) {
      ++top;
    } else {
      ++children[nodes[static_cast<size_t>(nodes[i].parent)].name];
    }
  }
  return top >= gang.rules.tree.minimum;
}

// P-4: members that start together start in the domain that the gang requires.
void RandomWorld::CheckDomains(const Outcome& outcome) {
  if (!machine_->rooms().sources.complete()) return;     // a start from before the restart continues in its domain
  std::map<std::string, std::set<std::string>> domains;  // by gang
  for (const Effect& effect : outcome.effects) {
    const auto* bind = std::get_if<BindPod>(&effect);
    const Pod* pod = bind == nullptr ? nullptr : machine_->reader().FindPod(bind->pod.uid);
    if (pod == nullptr || pod->gang == nullptr || machine_->rooms().pod_lifecycle.BindingOf(*pod).attempts > 1)
      continue;
    const std::string& key = pod->gang->rules.topology.required;
    if (key.empty()) continue;
    const Labels& labels = machine_->rooms().cluster.node(machine_->rooms().cluster.FindNode(bind->node)).facts.labels;
    const auto label = labels.find(key);
    const std::string value = label == labels.end() ? "(none)" : label->second;
    std::set<std::string>& of_gang = domains[pod->gang->key];
    of_gang.insert(key == "zone" ? value : absl::StrCat(labels.at("zone"), "/", value));
    ++figures_["bindings in a required domain"];
    if (of_gang.size() > 1 || value == "(none)") {
      violation_ = absl::StrCat("P-4: gang ", pod->gang->key, " is bound outside one domain of ", key);
    }
  }
}

// Pods that have a slot in their gang's plan.
std::set<std::string> RandomWorld::Placed() const {
  std::set<std::string> out;
  for (const auto& [uid, facts] : pods_) {
    const Pod* pod = machine_->reader().FindPod(uid);
    if (pod != nullptr && machine_->rooms().plans.SlotIndex(*pod) >= 0) out.insert(uid);
  }
  return out;
}

// P-3: a pod that starts by a plan violates no anti-affinity, neither its own nor that of others. kube-scheduler
// ensures this for pods that are placed one by one.
void RandomWorld::CheckPodAffinity(const Outcome& outcome, const std::set<std::string>& placed) {
  if (!machine_->rooms().sources.complete()) return;
  PodAffinityTwin twin;
  const auto as_twin = [this](const Pod& pod) {
    TwinPod out{pod.facts.name_space, UnpackLabels(pod.facts.labels), pod.facts.shape, ""};
    out.shape.pod_affinity.affinity.clear();  // the pods that it has affinity to may be gone
    out.shape.pod_affinity.spread.clear();
    const NodeId node = machine_->rooms().ledger.ChargeOf(pod.id).node;
    if (node != kNoNode) out.node = machine_->rooms().cluster.node(node).facts.name;
    return out;
  };
  for (const Effect& effect : outcome.effects) {
    const auto* bind = std::get_if<BindPod>(&effect);
    const Pod* pod = bind == nullptr ? nullptr : machine_->reader().FindPod(bind->pod.uid);
    if (pod == nullptr || !placed.contains(pod->facts.uid) ||
        machine_->rooms().pod_lifecycle.BindingOf(*pod).attempts > 1)
      continue;
    if (of_namespace_.has_value()) twin.namespaces["d"] = *of_namespace_;
    if (twin.nodes.empty()) {
      for (NodeId id = 0; id < machine_->rooms().cluster.node_limit(); ++id) {
        const Node& node = machine_->rooms().cluster.node(id);
        if (node.present) twin.nodes[node.facts.name] = node.facts;
      }
      for (PodId id = 0; id < machine_->reader().gangs.pod_limit(); ++id) {
        const Pod* other = machine_->reader().gangs.PodAt(id);
        const bool there = other != nullptr && machine_->rooms().ledger.ChargeOf(id).node != kNoNode &&
                           machine_->rooms().ledger.ChargeOf(id).kind == ChargeKind::kUsed;
        if (there) twin.pods.push_back(as_twin(*other));
      }
    }
    if (!twin.Holds(as_twin(*pod))) {
      violation_ = absl::StrCat("P-3: pod ", bind->pod.uid, " is bound to ", bind->node, ", near whom it must not be");
    }
    figures_["pods bound with anti-affinity"] += pod->facts.shape->pod_affinity.anti_affinity.empty() ? 0 : 1;
  }
}

void RandomWorld::CheckWholeGang(const std::string& uid) {
  const Pod* pod = machine_->reader().FindPod(uid);
  if (pod == nullptr || pod->gang == nullptr || pod->gang->rules.min_member <= 0) return;
  if (machine_->rooms().pod_lifecycle.BindingOf(*pod).attempts > 1)
    return;  // decided earlier and sent again; its gang's minimum may have grown since
  const Gang& gang = *pod->gang;
  const bool whole = Whole(gang, {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning});
  if (!whole && started_.count(gang.key) == 0 && whole_.count(gang.key) == 0 && violation_.empty()) {
    violation_ = absl::StrCat("K-13: pod ", uid, " is bound alone although its gang ", gang.key,
                              ", which was never whole, has ", gang.active(), " of ", gang.rules.min_member);
  }
  if (!gang.durable.satisfied && !whole) {
    violation_ = absl::StrCat("pod ", uid, " is bound although its gang ", gang.key, " has ", gang.active(), " of ",
                              gang.rules.min_member);
  }
}

void RandomWorld::NoteMet(const std::string& uid) {
  const Pod* pod = machine_->reader().FindPod(uid);
  if (pod == nullptr || pod->gang == nullptr || started_.count(pod->gang->key) == 0) return;
  figures_["members bound on future slots"] +=
      pod->gang->durable.future_slots_until_ms > 0 && machine_->rooms().plans.SlotIndex(*pod) >= 0 ? 1 : 0;
}

void RandomWorld::NoteWholeGangs() {
  machine_->reader().ForEachGang([this](const Gang& gang) {
    const bool idle = gang.active() == 0 && gang.count(MemberState::kWaiting) == 0;
    if (idle && machine_->reader().FindPlan(gang) == nullptr && machine_->rooms().sources.complete()) {
      started_.erase(gang.key);
      whole_.erase(gang.key);
    }
    if (gang.rules.min_member < 0 || gang.active() == 0) return;
    if (Whole(gang, {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning})) started_.insert(gang.key);
    if (Whole(gang, {MemberState::kBound, MemberState::kRunning})) whole_.insert(gang.key);
  });
}

void RandomWorld::CheckWholeGroups() {
  // After a restart: a gang that was satisfied before is still satisfied when all facts are read.
  if (!machine_->rooms().sources.complete()) return;
  std::set<std::string> satisfied;
  machine_->reader().ForEachGang([&](const Gang& gang) {
    if (!gang.durable.satisfied) return;
    satisfied.insert(gang.key);
    if (satisfied_before_.count(gang.key) > 0) return;
    for (const std::string& id : gang.rules.group) {
      const Gang* peer = machine_->reader().FindGang(id);
      if (peer == nullptr || peer->rules.group != gang.rules.group) return;
    }
    for (const std::string& id : gang.rules.group) {
      const Gang* peer = machine_->reader().FindGang(id);
      const bool placed = Whole(*peer, {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning});
      if (peer->durable.satisfied || placed) continue;
      violation_ = absl::StrCat("gang ", gang.key, " is satisfied although gang ", id, " of its group is not");
    }
    if (!gang.rules.group.empty()) ++figures_["gangs of groups started"];
  });
  satisfied_before_ = std::move(satisfied);
}

}  // namespace muster
