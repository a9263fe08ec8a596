#include "tests/simulation/random_world.h"

#include "absl/strings/str_cat.h"
#include "tests/support/facts.h"

namespace muster {

RandomWorld::RandomWorld(uint64_t seed, bool persist_facts)
    : plain_(seed % 3 == 0),
      queued_(seed % 3 == 1),
      driven_(seed % 3 == 2),
      headed_(seed % 3 != 2),
      odd_(seed % 2 == 0),
      keeps_facts_(persist_facts),
      random_(seed),
      machine_(std::make_unique<Machine>(OwnSettings())) {
  for (int i = 0; i < 6; ++i) Apply(UpsertNode{RandomNode(i)});
  Apply(FactsRead{});
}

void RandomWorld::Step() {
  now_ms_ += Roll(20) == 0 ? Roll(40'000) : Roll(200);
  switch (Roll(22)) {
    case 0:
      Apply(UpsertNode{RandomNode(Roll(6))});
      break;
    case 1:
      if (Roll(8) == 0) Apply(RemoveNode{NodeName(Roll(6))});
      break;
    case 2:
    case 3:
      AddPod();
      break;
    case 4:
      RemoveSomePod();
      break;
    case 5:
      ChangeSomePod();
      break;
    case 6:
      ChangeGangObject();
      break;
    case 7:
    case 8:
    case 9:
      for (int i = 0; i < 8; ++i) FilterSome();
      break;
    case 10:
    case 11:
      for (int i = 0; i < 6; ++i) BindSome();
      break;
    case 12:
      FinishBindings();
      FinishWrites();
      break;
    case 13:
      if (!tokens_.empty()) HangUp();
      break;
    case 14:
      for (int i = 0; i < 4; ++i) PermitSome();
      break;
    case 15:
      Apply(PreFilter{pods_.empty() ? "" : SomeUid()});
      break;
    case 16:
      Roll(2) == 0 ? FindNoNode() : GiveBack();
      break;
    case 19:
      WholeGang();
      break;
    case 18:
      ScheduleGroup();
      break;
    case 17:
      for (int i = 0; i < 4; ++i) BindPermitted();
      break;
    default:
      Apply(Tick{});
      break;
  }
  if (plain_ && Roll(2) == 0) FillAndEnd();
  if (odd_ && Roll(8) == 0) AskOddly();
  if (driven_ && Roll(3) == 0) DriveSome();
  if (!plain_ && !keeps_facts_ && Roll(100) == 0) NameNamespace();
  if (queued_ && Roll(40) == 0) ChangeQueues();
  if (headed_ && Roll(100) == 0) ChangeHead();
  if (machine_->PlanningDue()) Plan();
  if (queued_) {
    bool held = false;
    machine_->reader().ForEachGang(
        [&](const Gang& gang) { held = held || gang.reason.code == ReasonCode::kQueueLimit; });
    figures_["steps held by a queue"] += held ? 1 : 0;
  }
  if (machine_->rooms().future_reservations.HasAnyReservation()) ++figures_["steps with room reserved"];
  if (Roll(400) == 0) Restart();
  if (Roll(400) == 0) ComeToRest();
}

MachineSettings RandomWorld::Settings() {
  MachineSettings settings;
  settings.max_holds = 24;
  settings.gang.wait_time_ms = 20'000;
  settings.topology_levels = {"zone", "rack"};
  return settings;
}

NodeDescription RandomWorld::RandomNode(int i) {
  NodeDescription node;
  node.name = NodeName(i);
  node.unschedulable = Roll(10) == 0;
  node.labels = {{"zone", absl::StrCat("z", Roll(2))}};
  if (Roll(6) > 0) node.labels["rack"] = absl::StrCat("r", Roll(2));
  if (Roll(8) == 0) node.taints.push_back({"dedicated", "x", TaintEffect::kNoSchedule});
  node.allocatable = {
      {"cpu", 1000 * (1 + Roll(8))}, {"memory", 1 << 30}, {"pods", 3 + Roll(8)}, {"nvidia.com/gpu", Roll(5)}};
  return node;
}

std::vector<std::string> RandomWorld::NodeNames(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(NodeName(i));
  return names;
}

PodDescription RandomWorld::NewPod() {
  const std::string uid = absl::StrCat("u", next_uid_++);
  PodDescription pod = Lone(absl::StrCat("p", next_uid_), 0);
  pod.uid = uid;
  pod.created_ms = now_ms_;
  return pod;
}

void RandomWorld::Put(const PodDescription& pod) {
  pods_.emplace(pod.uid, pod);
  Apply(UpsertPod{pod});
}

void RandomWorld::Remove(const std::string& uid) {
  pods_.erase(uid);
  evictions_.erase(uid);
  Apply(RemovePod{uid});
}

void RandomWorld::AddPod() {
  if (pods_.size() >= 48) return RemoveSomePod();
  PodDescription pod = NewPod();
  pod.priority = Roll(3);
  pod.shape.Mutable().requests = {{"cpu", 500 * (1 + Roll(3))}};
  if (Roll(3) == 0) pod.shape.Mutable().requests["nvidia.com/gpu"] = 1;
  if (Roll(6) == 0) pod.shape.Mutable().node_selector = {{"zone", "z0"}};
  if (Roll(8) == 0 && !plain_) pod.shape.Mutable().host_ports.push_back({Protocol::kTcp, 80 + Roll(2), "0.0.0.0"});
  AddPodAffinity(&pod);
  if (odd_ && Roll(3) == 0) AddOddShape(&pod);
  pod.our_gate = Roll(4) == 0;
  pod.other_gates = Roll(12) == 0;
  const int gang = Roll(9);
  if (gang < 5) {
    pod.gang.name = absl::StrCat("g", gang);
    pod.gang.declares = true;
    pod.gang.declaration.Mutable().min_member = 1 + gang;
    if (gang == 4) pod.gang.declaration.Mutable().on_timeout = OnTimeout::kRequeue;
    if (gang == 3) pod.gang.declaration.Mutable().on_member_failure = OnMemberFailure::kAll;
    if (gang == 2) pod.gang.declaration.Mutable().match_policy = static_cast<MatchPolicy>(Roll(4));
    if (gang == 1) pod.gang.declaration.Mutable().topology = TopologyRule{"rack", "", ""};
    if (queued_) pod.gang.declaration.Mutable().queue = gang < 3 ? "team" : SomeQueue();
    if (queued_ && gang == 0) pod.gang.declaration.Mutable().preemptible = false;
    if (headed_ && gang % 2 == 1) pod.gang.declaration.Mutable().duration_ms = 10'000 * gang;
    if (odd_ && Roll(3) == 0) AddOddRules(&pod.gang.declaration.Mutable());
  } else if (gang < 8) {
    pod.gang.name = absl::StrCat("g", gang);
    pod.gang.dialect = GangDialect::kPodGroupSigs;
    if (Roll(10) > 0) pod.gang.subgroup = absl::StrCat("s", Roll(3));
  }
  if (gang == 0) pod.scheduler_name = "mine";
  if (gang == 8 && Roll(3) == 0) {  // an ordinary gang in a group of submitted gangs
    pod.gang.name = "w1";
    pod.gang.declares = true;
    pod.gang.declaration.Mutable().min_member = 1;
    pod.gang.declaration.Mutable().groups = {"d/w0", "d/w1"};
  }
  if (Roll(12) == 0) {  // it existed before Muster, in any state
    for (int i = Roll(4); i >= 0; --i) ChangeFacts(&pod);
  }
  Put(pod);
}

void RandomWorld::FillAndEnd() {
  if (Roll(3) == 0 && pods_.size() < 48) {
    PodDescription pod = NewPod();
    pod.shape.Mutable().requests = {{"cpu", 500 * (1 + Roll(4))}};
    pod.node_name = NodeName(Roll(6));
    pod.phase = PodPhase::kRunning;
    return Put(pod);
  }
  if (pods_.empty()) return;
  PodDescription& pod = pods_.find(SomeUid())->second;
  pod.node_name = machine_->reader().FindPod(pod.uid)->facts.node_name;
  if (pod.node_name.empty()) return;
  if (pod.deleting && Roll(2) == 0) return Remove(std::string(pod.uid));
  pod.deleting = !pod.deleting || Roll(8) > 0;  // the announcement may turn out to be wrong
  Apply(UpsertPod{pod});
}

std::string RandomWorld::SomeUid() {
  auto it = pods_.begin();
  std::advance(it, Roll(static_cast<int>(pods_.size())));
  return it->first;
}

void RandomWorld::RemoveSomePod() {
  if (!pods_.empty()) Remove(SomeUid());
}

void RandomWorld::ChangeSomePod() {
  if (pods_.empty()) return;
  PodDescription& pod = pods_.find(SomeUid())->second;
  pod.node_name = machine_->reader().FindPod(pod.uid)->facts.node_name;
  // as in a list after a gap: several changes at once
  for (int i = Roll(4) == 0 ? 2 : 1; i > 0; --i) ChangeFacts(&pod);
  Apply(UpsertPod{pod});
}

void RandomWorld::ChangeFacts(PodDescription* pod) {
  const Pod* known = machine_->reader().FindPod(pod->uid);
  const bool pending = known == nullptr || known->state == MemberState::kPending;
  switch (Roll(14)) {
    case 0:
      if (!pod->node_name.empty()) pod->phase = PodPhase::kRunning;
      break;
    case 1:
      if (!pod->node_name.empty()) pod->phase = PodPhase::kSucceeded;
      break;
    case 2:
      pod->phase = PodPhase::kFailed;
      break;
    case 3:
      pod->deleting = true;
      break;
    case 4:
      pod->our_gate = false;
      break;
    case 5:
      if (Roll(2) == 0) pod->activation_mark = absl::StrCat(Roll(1'000));
      pod->unschedulable = absl::StrCat("0/6 nodes: ", Roll(3));
      break;
    case 6:
      if (pod->node_name.empty() && (pending || Roll(8) == 0)) pod->node_name = NodeName(Roll(7));
      break;
    case 7:
      if (pod->gang.declares) pod->gang.declaration.Mutable().min_member = 1 + Roll(4);
      break;
    case 8:
      if (Roll(3) == 0) pod->nominated_node = Roll(2) == 0 ? "" : NodeName(Roll(6));
      break;
    case 9:
      pod->shape.Mutable().requests["cpu"] = 500 * (1 + Roll(3));
      if (Roll(3) == 0) AddPodAffinity(pod);
      break;
    case 10:
      if (Roll(4) == 0) pod->gang.name = Roll(3) == 0 ? "" : absl::StrCat(Roll(4) == 0 ? "w" : "g", Roll(5));
      break;
    case 11:
      if (!pod->node_name.empty() && Roll(4) == 0) pod->node_name = NodeName(Roll(7));  // reported differently before
      break;
    case 12:
      if (Roll(4) == 0) pod->gang.subgroup = absl::StrCat("s", Roll(4));
      if (Roll(4) == 0) pod->invalid = pod->invalid.empty() ? "requests: cpu: cannot be read" : "";
      break;
    default:
      if (pending) pod->other_gates = Roll(6) == 0;
      break;
  }
}

// Label keys come into use one after the other: "app" soon, "tier" late, "team" by NotIn, which also matches pods
// without it.
void RandomWorld::AddPodAffinity(PodDescription* pod) {
  if (plain_) return;
  Labels labels = {{"app", absl::StrCat("a", Roll(3))}};
  if (Roll(3) == 0) labels["tier"] = absl::StrCat("t", Roll(2));
  if (Roll(4) == 0) labels["team"] = "x";
  pod->labels = PackLabels(labels);
  PodAffinityRules& rules = pod->shape.Mutable().pod_affinity;
  rules = PodAffinityRules();
  if (Roll(3) != 0) return;
  static const char* const kLabels[] = {"kubernetes.io/hostname", "rack", "zone"};
  PodSelector selector{Roll(8) == 0, {"d"}, {{"app", SelectorOperator::kIn, {labels["app"]}}}};
  if (Roll(12) == 0) selector.requirements = {{"tier", SelectorOperator::kExists, {}}};
  if (Roll(20) == 0) selector.requirements = {{"team", SelectorOperator::kNotIn, {"x"}}};
  if (!keeps_facts_ && Roll(4) == 0) {
    selector.namespaces.clear();
    selector.by_labels = true;
    selector.namespace_labels = {{NamespaceKey("of"), SelectorOperator::kIn, {absl::StrCat(Roll(2))}}};
  }
  switch (Roll(6)) {
    case 0:
      rules.affinity.push_back({kLabels[1 + Roll(2)], selector});
      break;
    case 1:
      rules.spread.push_back({kLabels[Roll(3)], 1 + Roll(2), 1, selector});
      break;
    default:
      rules.anti_affinity.push_back({kLabels[Roll(6) == 0 ? 1 : 0], selector});
      break;
  }
}

void RandomWorld::NameNamespace() {
  if (Roll(4) == 0) {
    of_namespace_.reset();
    Apply(RemoveNamespace{"d"});
    return;
  }
  of_namespace_ = Labels{{"of", absl::StrCat(Roll(2))}};
  Apply(UpsertNamespace{"d", *of_namespace_});
}

// Subgroups "s0" to "s2", two of them sometimes below a third, and the domains that they require.
void RandomWorld::AddShape(GangDeclaration* declaration) {
  const auto some_rule = [this]() -> TopologyRule {
    switch (Roll(6)) {
      case 0:
        return {"rack", "", ""};
      case 1:
        return {"zone", "rack", ""};
      case 2:
        return {"", "rack", ""};
      case 3:
        return {"", "", "zone"};
      default:
        return {};
    }
  };
  if (Roll(2) == 0) declaration->topology = some_rule();
  if (Roll(2) == 0) return;
  const bool deep = Roll(3) == 0;
  if (deep) declaration->subgroups.push_back({"top", "", 1 + Roll(2), {}, some_rule(), {}});
  for (int i = 0; i < 3; ++i) {
    declaration->subgroups.push_back(
        {absl::StrCat("s", i), deep && i < 2 ? "top" : "", 1 + Roll(2), {}, some_rule(), {}});
    if (Roll(4) == 0) {
      PodTemplate members;
      members.requests = {{"cpu", 500 * (1 + Roll(3))}};
      declaration->subgroups.back().members = std::move(members);
    }
  }
  // Now and then more than there are; more often all of them, so that members are planned before they exist.
  declaration->min_member = Roll(8) == 0 ? 4 : Roll(3) == 0 ? 3 - (deep ? 1 : 0) : 1 + Roll(2);
}

void RandomWorld::ChangeGangObject() {
  GangObject object;
  object.name_space = "d";
  object.name = absl::StrCat("g", 5 + Roll(3));
  object.created_ms = 5;
  object.declaration.Mutable().min_member = 1 + Roll(3);
  if (Roll(2) == 0) object.declaration.Mutable().wait_time_ms = 5'000;
  if (object.name != "g7" && Roll(20) != 0) object.declaration.Mutable().groups = {"d/g5", "d/g6"};
  if (Roll(30) == 0) object.declaration.Mutable().groups = {"d/g6", "d/g7"};
  AddShape(&object.declaration.Mutable());
  if (queued_) object.declaration.Mutable().queue = SomeQueue();
  if (Roll(10) == 0) {
    objects_.erase(object.name);
    Apply(RemoveGangObject{object.dialect, "d", object.name});
  } else {
    objects_[object.name] = object;
    Apply(UpsertGangObject{object});
  }
}

}  // namespace muster
