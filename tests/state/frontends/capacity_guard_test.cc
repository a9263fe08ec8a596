// SPEC K-3, K-9, P-8: which nodes a pod without a quorum may not use, and which victims it may have, beside a second
// account of the cluster in whole cpus.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {
namespace {

class GuardWorld : public FrontendsTest {
 public:
  explicit GuardWorld(uint32_t seed) : random_(seed) {}
  void TestBody() override {}

 protected:
  int64_t Draw(uint32_t below) { return static_cast<int64_t>(random_() % below); }
  const Pod& RunOn(PodDescription facts, const std::string& node) {
    facts.node_name = node;
    const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kRunning);
    ledger_.ChargePod(pod.id, cluster_.FindNode(node), pod.cls, ChargeKind::kUsed);
    return pod;
  }
  std::mt19937 random_;
};

// Some nodes with pods, plans and reservations.
class Promises : public GuardWorld {
 public:
  explicit Promises(uint32_t seed) : GuardWorld(seed) {
    for (int i = 0; i < 4; ++i) {
      const std::string name = absl::StrCat("n", i);
      Twin& node = nodes_[name];
      node.cpu = node.free = 3 + Draw(4);
      AddNode(name, node.cpu);
    }
    for (int i = 0; i < 4; ++i) AddUser(absl::StrCat("user-", i));
    for (int i = 0; i < 3; ++i) AddGang(absl::StrCat("gang", i));
    for (auto& [name, node] : nodes_) {
      if (Draw(6) != 0) continue;
      ledger_.MarkUnobservedBind(cluster_.FindNode(name), kT0 + 1);
      node.in_flight = true;
    }
  }

  void Check() {
    const int64_t cpu = 1 + Draw(3);
    const auto priority = static_cast<int32_t>(Draw(3));
    const bool repairs = Draw(3) == 0;
    PodDescription facts = repairs ? Facts("asks", cpu, "broken", 2) : Facts("asks", cpu);
    facts.priority = priority;
    const Pod& pod = Put(facts);
    if (repairs) {
      PodDescription other = Facts("other", 1, "broken", 2);
      other.priority = priority;
      Put(other, /*submitted=*/false, MemberState::kRunning);
      gangs_.SetSatisfied(GangAt("broken"), true);
    }
    const std::string nominated = Draw(2) == 0 ? absl::StrCat("n", Draw(4)) : "";
    if (!nominated.empty() && nodes_[nominated].free >= cpu) {
      ledger_.ChargePod(pod.id, cluster_.FindNode(nominated), pod.cls, ChargeKind::kReserved);
      nodes_[nominated].free -= cpu;
    }
    const auto guarded = [&](const std::string& name, int64_t regained) {
      const Twin& node = nodes_[name];
      if (node.promises.empty() && !node.in_flight) return false;
      const bool own = ledger_.ChargeOf(pod.id).node == cluster_.FindNode(name);
      int64_t yields = regained + (own ? cpu : 0);
      for (const Promise& each : node.promises) {
        const bool first = each.priority < priority || (repairs && !each.planned);
        yields += first && !each.committed ? each.cpu : 0;
      }
      return node.free < cpu && (yields == 0 || node.free + yields < cpu);
    };
    CheckFilter(pod, guarded);
    if (!repairs) CheckVictims(pod, guarded);
  }

 private:
  struct Promise {
    int64_t cpu;
    int32_t priority;
    bool planned;
    bool committed;
  };
  struct Twin {
    int64_t cpu = 0;
    int64_t free = 0;
    bool in_flight = false;
    std::vector<Promise> promises;
    std::map<std::string, int64_t> users;
  };

  void AddUser(const std::string& name) {
    const std::string on = absl::StrCat("n", Draw(4));
    const int64_t cpu = 1 + Draw(2);
    if (nodes_[on].free < cpu) return;
    const Pod& pod = RunOn(Facts(name, cpu), on);
    nodes_[on].free -= cpu;
    nodes_[on].users[name] = cpu;
    if (Draw(5) != 0) return;
    ledger_.MarkInFlight(pod.id);
    nodes_[on].in_flight = true;
  }
  // A gang with a plan, a committed plan, or a reservation on running pods, which may overlap with others.
  void AddGang(const std::string& name) {
    const int64_t cpu = 1 + Draw(2);
    const auto priority = static_cast<int32_t>(Draw(2));
    const auto pods = static_cast<int32_t>(1 + Draw(3));
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts = Facts(absl::StrCat(name, "-", i), cpu, name, pods);
      facts.priority = priority;
      Put(facts);
    }
    const Gang& gang = GangAt(name);
    if (Draw(2) == 0) {
      const std::string on = absl::StrCat("n", Draw(4));
      if (nodes_[on].cpu < cpu * pods) return;
      const ClassId cls = (*gang.in(MemberState::kPending).begin())->cls;
      future_reservations_.Reserve(gang, {{cluster_.FindNode(on), cls, pods}}, FutureReservations::WaitsFor::kRunning,
                                   kNever, kT0);
      nodes_[on].promises.push_back({cpu * pods, priority, false, false});
      nodes_[on].free -= cpu * pods;
      return;
    }
    PlanNow(gang);
    if (plans_.Of(gang) == nullptr) return future_reservations_.Release(gang);
    const bool commits = Draw(3) == 0;
    if (commits) plans_.Commit(gang);
    for (const Slot& slot : plans_.Of(gang)->slots) {
      Twin& node = nodes_[cluster_.node(slot.node).facts.name];
      node.promises.push_back({cpu, priority, true, commits});
      node.free -= cpu;
    }
  }
  template <typename Guarded>
  void CheckFilter(const Pod& pod, const Guarded& guarded) {
    std::vector<std::string> offered;
    std::set<std::string> expected;
    for (int64_t left = Draw(6); left > 0; --left) offered.push_back(absl::StrCat("n", Draw(5)));
    std::sort(offered.begin(), offered.end());
    offered.erase(std::unique(offered.begin(), offered.end()), offered.end());
    std::shuffle(offered.begin(), offered.end(), random_);
    for (const std::string& name : offered) {
      if (nodes_.contains(name) && guarded(name, 0)) expected.insert(name);
    }
    const FilterReply reply = capacity_guard_.FilterExtra(pod, NodeOffer(offered));
    EXPECT_EQ(reply.kind, FilterReply::Kind::kPass);
    EXPECT_EQ(reply.guarded, std::vector<std::string>(expected.begin(), expected.end()));
    EXPECT_EQ(reply.reason.code, expected.empty() ? ReasonCode::kNone : ReasonCode::kGuarded);
    const std::vector<std::string> all = capacity_guard_.FilterExtra(pod, NodeOffer::AllNodes()).guarded;
    for (const auto& [name, node] : nodes_) {
      EXPECT_EQ(std::binary_search(all.begin(), all.end(), name), guarded(name, 0)) << name;
    }
  }
  template <typename Guarded>
  void CheckVictims(const Pod& pod, const Guarded& guarded) {
    Preempt question{pod.facts.uid, {}, false};
    std::vector<std::string> expected;
    for (const auto& [name, node] : nodes_) {
      PreemptCandidate candidate{name, {}};
      int64_t regained = 0;
      bool known = true;
      for (const auto& [user, cpu] : node.users) {
        if (Draw(2) == 0) continue;
        candidate.victim_uids.push_back(user);
        regained += cpu;
      }
      if (Draw(6) == 0) {
        candidate.victim_uids.emplace_back("unknown");
        known = false;
      }
      question.candidates.push_back(candidate);
      if (!known || !guarded(name, regained)) expected.push_back(name);
    }
    question.candidates.push_back({"absent", {}});  // what Muster does not see yet it does not forbid
    expected.emplace_back("absent");
    EXPECT_EQ(capacity_guard_.FilterCandidates(question, &pod, kT0).nodes, expected);
    EXPECT_TRUE(capacity_guard_.victims().empty()) << "they are in no gang";
  }

  std::map<std::string, Twin> nodes_;
};

TEST(CapacityGuardTest, RandomPromises_GuardWhatIsNotYielded) {
  for (uint32_t seed = 1; seed <= 1'500 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Promises(seed).Check();
  }
}

// Running gangs, and preemptors that ask for some of their members, one after the other.
class Victims : public GuardWorld {
 public:
  explicit Victims(uint32_t seed) : GuardWorld(seed) {
    AddNode("n", 1'000);
    for (int i = 0; i < 3; ++i) AddGang(absl::StrCat("g", i));
    RunOn(Facts("lone", 1), "n");
    for (int i = 0; i < 3; ++i) PutLone(absl::StrCat("preemptor-", i), 1);
  }
  void Check() {
    int64_t now_ms = kT0;
    for (int step = 0; step < 12; ++step) {
      now_ms += Draw(4) * 1'000;
      const std::string preemptor = absl::StrCat("preemptor-", Draw(3));
      Preempt question{preemptor, {{"n", {}}}, false};
      std::vector<std::string>& victims = question.candidates[0].victim_uids;
      if (Draw(4) == 0) victims.emplace_back("lone");
      if (Draw(4) == 0) victims.emplace_back("unknown");
      for (const auto& [uid, gang] : members_) {
        if (Draw(4) == 0) victims.push_back(uid);
      }
      const bool allowed = MayEvict(preemptor, victims, now_ms);
      capacity_guard_.ExpireVictims(now_ms);
      const PreemptReply reply = capacity_guard_.FilterCandidates(question, &PodAt(preemptor), now_ms);
      ASSERT_EQ(reply.nodes.size(), allowed ? 1U : 0U) << "step " << step;
      if (!allowed) continue;
      for (const std::string& uid : victims) {
        if (members_.contains(uid)) promised_[{uid, preemptor}] = now_ms + 5'000;
      }
    }
  }

 private:
  struct TwinGang {
    int32_t minimum = 0;
    bool preemptible = true;
    bool grouped = false;
  };
  void AddGang(const std::string& name) {
    TwinGang& gang = gangs_of_[name];
    gang.minimum = static_cast<int32_t>(1 + Draw(3));
    gang.preemptible = Draw(4) != 0;
    gang.grouped = Draw(4) == 0;
    for (int64_t i = 0; i < gang.minimum + Draw(3); ++i) {
      PodDescription facts = Facts(absl::StrCat(name, "-", i), 1, name, gang.minimum);
      facts.gang.declaration.Mutable().preemptible = gang.preemptible;
      if (gang.grouped) facts.gang.declaration.Mutable().groups = {"d/" + name, "d/other"};
      const Pod& pod = RunOn(facts, "n");
      const int64_t kind = Draw(9);
      if (kind == 0) gangs_.SetState(pod, MemberState::kCommitted);
      if (kind == 1) gangs_.SetState(pod, MemberState::kWaiting);
      if (kind == 2) gangs_.SetState(pod, MemberState::kTerminating);
      if (kind == 3) gangs_.SetState(pod, MemberState::kBound);
      members_[facts.uid] = name;
    }
  }
  [[nodiscard]] bool IsIn(const std::string& uid, std::initializer_list<MemberState> states) const {
    return std::find(states.begin(), states.end(), PodAt(uid).state) != states.end();
  }
  [[nodiscard]] bool MayEvict(const std::string& preemptor, const std::vector<std::string>& victims,
                              int64_t now_ms) const {
    std::set<std::string> hit;
    for (const std::string& uid : victims) {
      if (!members_.contains(uid)) continue;
      const TwinGang& gang = gangs_of_.at(members_.at(uid));
      if (!gang.preemptible) return false;
      if (gang.minimum <= 1 && !gang.grouped) continue;
      if (IsIn(uid, {MemberState::kWaiting, MemberState::kCommitted})) return false;
      hit.insert(members_.at(uid));
    }
    return std::all_of(hit.begin(), hit.end(), [&](const std::string& name) {
      int32_t stay = 0;
      for (const auto& [uid, gang] : members_) {
        if (gang != name || !IsIn(uid, {MemberState::kBound, MemberState::kRunning})) continue;
        bool goes = std::find(victims.begin(), victims.end(), uid) != victims.end();
        for (const auto& [promise, until_ms] : promised_) {
          goes = goes || (promise.first == uid && promise.second != preemptor && until_ms > now_ms);
        }
        stay += goes ? 0 : 1;
      }
      return stay >= gangs_of_.at(name).minimum;
    });
  }

  std::map<std::string, TwinGang> gangs_of_;
  std::map<std::string, std::string> members_;                       // the gang of each
  std::map<std::pair<std::string, std::string>, int64_t> promised_;  // victim and preemptor: until when
};

TEST(CapacityGuardTest, RandomPreemptors_LeaveGangsTheirMinimum) {
  for (uint32_t seed = 1; seed <= 600 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Victims(seed).Check();
  }
}

class GuardReasons : public FrontendsTest {};

TEST_F(GuardReasons, PromisedNode_ReasonNamesPromise) {
  AddNode("n", 2);
  PutGang("g", 2);
  PlanNow(GangAt("g"));
  AddNode("free", 1);
  const Pod& pod = PutLone("a", 1);
  const FilterReply reply = capacity_guard_.FilterExtra(pod, NodeOffer({"n", "free"}));
  EXPECT_EQ(reply.guarded, std::vector<std::string>{"n"});
  EXPECT_EQ(reply.reason.text, "the node's free capacity is promised to a gang");
  EXPECT_TRUE(capacity_guard_.FilterExtra(pod, NodeOffer({"free"})).reason.none());
}

}  // namespace
}  // namespace muster
