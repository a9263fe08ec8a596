// SPEC P-8, P-9: which blocked claims a change wakes. A second account of the cluster, in whole cpus, says which claims
// may fit now; claims that cannot fit must sleep.
#include "state/scheduling/waker.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "state/reservations/future_reservations.h"
#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

const std::vector<std::string> kNodes = {"n0", "n1", "n2", "n3", "n4"};
const std::vector<std::string> kGangs = {"one", "many", "ssd", "large", "mixed", "other"};

class WakerTest : public RoomsTest {
 protected:
  struct Kind {
    int64_t cpu;
    bool ssd;
  };
  struct OnNode {
    int64_t cpu;
    bool terminating;
  };
  struct TwinNode {
    int64_t cpu = 4;
    bool ssd = false;
    bool cordoned = false;
    std::map<std::string, OnNode> pods;
    std::map<std::string, int64_t> reserved;  // cpus, by gang
  };

  void SetUp() override {
    for (const std::string& name : kNodes) Update(name);
    PutKind("one", {2, false}, 1);
    PutKind("many", {1, false}, 7);
    PutKind("ssd", {1, true}, 3);
    PutKind("large", {5, false}, 1);
    PutKind("mixed", {1, true}, 1);
    PutKind("mixed", {3, false}, 1);
    PutKind("other", {1, true}, 1);  // its first class is that of "mixed"
    PutKind("other", {2, false}, 1);
  }
  // Adds `pods` members of this kind to the gang, all of which it needs.
  void PutKind(const std::string& gang, Kind kind, int32_t pods) {
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts =
          Facts(absl::StrCat(gang, "-", members_++), kind.cpu, gang, gang == "mixed" || gang == "other" ? 2 : pods);
      if (kind.ssd) facts.shape.Mutable().node_selector = {{"disk", "ssd"}};
      Put(facts);
    }
    kinds_[gang].push_back(kind);
    needed_[gang] += pods;
  }
  void Update(const std::string& name) {
    const TwinNode& node = nodes_[name];
    NodeDescription facts = SmallNode(name, node.cpu);
    facts.unschedulable = node.cordoned;
    if (node.ssd) facts.labels = {{"disk", "ssd"}};
    PutNode(facts);
  }
  // How many pods of the kind fit on the node; `later`: once terminating pods and reservations are gone.
  static int64_t Room(const TwinNode& node, Kind kind, bool later) {
    if (node.cordoned || (kind.ssd && !node.ssd)) return 0;
    int64_t free = node.cpu;
    for (const auto& [uid, pod] : node.pods) free -= later && pod.terminating ? 0 : pod.cpu;
    for (const auto& [gang, cpu] : node.reserved) free -= later ? 0 : cpu;
    return std::max<int64_t>(0, free) / kind.cpu;
  }
  static bool IsEnding(const TwinNode& node) {
    return !node.reserved.empty() ||
           std::any_of(node.pods.begin(), node.pods.end(), [](const auto& each) { return each.second.terminating; });
  }
  void BlockAll() {
    for (const std::string& name : kGangs) {
      const Gang& gang = GangAt(name);
      backlog_.Remove(gang.id);
      const Reason why{ReasonCode::kNoRoom, "full"};
      backlog_.Block(gang.id, eligibility_.KeyOf(gang), name, waker_.WaitsFor(gang, why), why);
    }
  }

  void ChangeRandomly() {
    const std::string& name = kNodes[random_() % kNodes.size()];
    TwinNode& node = nodes_[name];
    const auto some = [&] {
      auto at = node.pods.begin();
      std::advance(at, random_() % node.pods.size());
      return at;
    };
    switch (random_() % 9) {
      case 0:
      case 1:
      case 2: {  // a pod starts, if it fits
        const auto cpu = static_cast<int64_t>(1 + random_() % 3);
        if (Room(node, {cpu, false}, false) == 0) return;
        PodDescription facts = Facts(absl::StrCat("lone-", ++lone_), cpu);
        facts.node_name = name;
        const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kBound);
        ledger_.ChargePod(pod.id, cluster_.FindNode(name), pod.cls, ChargeKind::kUsed);
        node.pods[pod.facts.uid] = {cpu, false};
        return;
      }
      case 3:
      case 4: {  // a pod ends
        if (node.pods.empty()) return;
        const auto at = some();
        const Pod& pod = PodAt(at->first);
        ledger_.DischargePod(pod.id, /*gained=*/true);
        future_reservations_.Remove(pod);
        gangs_.RemovePod(pod);
        node.pods.erase(at);
        gained_.insert(name);
        return;
      }
      case 5: {  // a pod is being deleted
        if (node.pods.empty()) return;
        const auto at = some();
        if (!at->second.terminating) gained_.insert(name);
        at->second.terminating = true;
        gangs_.SetState(PodAt(at->first), MemberState::kTerminating);
        EXPECT_FALSE(future_reservations_.TrackTerminating(PodAt(at->first), kT0));
        return;
      }
      case 6: {  // the node's facts change
        const TwinNode before = node;
        node.cpu = static_cast<int64_t>(2 + random_() % 4);
        node.ssd = random_() % 2 == 0;
        node.cordoned = random_() % 4 == 0;
        Update(name);
        if (node.cpu == before.cpu && node.ssd == before.ssd && node.cordoned == before.cordoned) return;
        facts_changed_ = true;
        gained_.insert(name);
        ReleaseBroken(name);
        return;
      }
      case 7: {  // room is reserved for a claim until running pods end
        const std::string& gang = kGangs[random_() % kGangs.size()];
        if (future_reservations_.HasReservation(GangAt(gang))) return;
        const Kind kind = kinds_[gang].front();
        const auto pods = static_cast<int32_t>(1 + random_() % 2);
        if (node.cordoned || (kind.ssd && !node.ssd) || node.cpu < kind.cpu * pods) return;
        future_reservations_.Reserve(GangAt(gang), {{cluster_.FindNode(name), ClassOf(gang), pods}},
                                     FutureReservations::WaitsFor::kRunning, kNever, kT0);
        node.reserved[gang] = kind.cpu * pods;
        return;
      }
      default: {  // the reservation ends
        const std::string& gang = kGangs[random_() % kGangs.size()];
        future_reservations_.Release(GangAt(gang));
        for (const std::string& each : kNodes) {
          if (nodes_[each].reserved.erase(gang) > 0) gained_.insert(each);
        }
      }
    }
  }
  // A reservation ends with the facts that made it possible: each fits alone into what the node offers.
  void ReleaseBroken(const std::string& name) {
    TwinNode& node = nodes_[name];
    future_reservations_.ReleaseBroken(cluster_.FindNode(name));
    for (const std::string& gang : kGangs) {
      if (!node.reserved.contains(gang)) continue;
      const bool stays = !node.cordoned && (node.ssd || !kinds_[gang].front().ssd) && node.reserved[gang] <= node.cpu;
      ASSERT_EQ(future_reservations_.HasReservation(GangAt(gang)), stays) << gang << " on " << name;
      if (!stays) node.reserved.erase(gang);
    }
  }
  [[nodiscard]] ClassId ClassOf(const std::string& gang) const {
    return (*GangAt(gang).in(MemberState::kPending).begin())->cls;
  }

  void ExpectRoomsAgree() {
    for (const std::string& gang : kGangs) {
      const Kind kind = kinds_[gang].front();
      for (const std::string& name : kNodes) {
        const TwinNode& node = nodes_[name];
        if (node.cordoned || (kind.ssd && !node.ssd)) continue;
        const NodeId id = cluster_.FindNode(name);
        ASSERT_EQ(future_reservations_.RoomAfterTermination(id, ClassOf(gang), 9), Room(node, kind, true));
        ASSERT_EQ(future_reservations_.RoomAfterTermination(id, ClassOf(gang), 1), Room(node, kind, true) > 0 ? 1 : 0);
      }
    }
  }
  void ExpectAwakeAgrees(int step) {
    for (const std::string& gang : kGangs) {
      const std::vector<Kind>& kinds = kinds_[gang];
      const bool any_room = std::any_of(gained_.begin(), gained_.end(), [&](const std::string& name) {
        return std::any_of(kinds.begin(), kinds.end(), [&](Kind kind) { return Room(nodes_[name], kind, true) > 0; });
      });
      int64_t least = 0;  // pods that fit at some time
      int64_t most = 0;   // the same, if what ends and what is free are added up without looking at the node's whole
      for (const auto& [name, node] : nodes_) {
        const int64_t later = Room(node, kinds.front(), true);
        least += later;
        most += Room(node, kinds.front(), false) +
                (IsEnding(node) ? later * static_cast<int64_t>(node.reserved.size() + 1) : 0);
      }
      const bool awake = backlog_.SleepingCondition(gang) == nullptr;
      const std::string where = absl::StrCat(gang, " at step ", step, ", facts changed: ", facts_changed_);
      if (!any_room || (kinds.size() == 1 && !facts_changed_ && most < needed_[gang])) {
        ASSERT_FALSE(awake) << where;
      } else if (kinds.size() > 1 || facts_changed_ || least >= needed_[gang]) {
        ASSERT_TRUE(awake) << where;
      }
      ASSERT_EQ(backlog_.is_forced_retry(GangAt(gang).id), awake && facts_changed_) << where;
      counts_[awake] += 1;
    }
  }

  std::mt19937 random_;
  std::map<std::string, TwinNode> nodes_;
  std::map<std::string, std::vector<Kind>> kinds_;
  std::map<std::string, int32_t> needed_;
  std::set<std::string> gained_;  // since the last Wake
  bool facts_changed_ = false;
  int members_ = 0;
  int lone_ = 0;
  std::map<bool, int> counts_;
};

TEST_F(WakerTest, RandomChanges_WakeClaimsThatMayFit) {
  BlockAll();
  waker_.Wake();
  for (int step = 0; step < 4'000; ++step) {
    BlockAll();
    ASSERT_FALSE(waker_.HasNews());
    gained_.clear();
    facts_changed_ = false;
    for (uint32_t changes = 1 + random_() % 3; changes > 0; --changes) ChangeRandomly();
    ASSERT_NO_FATAL_FAILURE(ExpectRoomsAgree());
    ASSERT_TRUE(gained_.empty() || waker_.HasNews());
    waker_.Wake();
    ASSERT_NO_FATAL_FAILURE(ExpectAwakeAgrees(step));
  }
  EXPECT_GT(counts_[true], 2'000);
  EXPECT_GT(counts_[false], 2'000);
}

TEST_F(WakerTest, WaitsFor_ReasonDecides) {
  const auto wait = [&](const std::string& gang, ReasonCode code) {
    const WakeCondition out = waker_.WaitsFor(GangAt(gang), {code, ""});
    return absl::StrCat(out.classes.size(), out.holds ? " holds" : "", out.queue ? " queue" : "", " ", out.at_least);
  };
  EXPECT_EQ(wait("many", ReasonCode::kNoRoom), "1 7");
  EXPECT_EQ(wait("mixed", ReasonCode::kNoRoom), "2 0") << "which of its pods are missing decides";
  for (const ReasonCode any : {ReasonCode::kMinResources, ReasonCode::kNoPlaceFound})
    EXPECT_EQ(wait("many", any), "0 0");
  EXPECT_EQ(wait("many", ReasonCode::kTooManyHolds), "0 holds 0");
  for (const ReasonCode queue : {ReasonCode::kQueueLimit, ReasonCode::kQueueRejected}) {
    EXPECT_EQ(wait("many", queue), "0 queue 0");
  }
}

// What a claim with affinity rules waits for may change on any node, unless the rules concern one node only.
TEST_F(WakerTest, WaitsFor_AffinityBeyondNode_AnyChange) {
  PodAffinityTerm term;
  term.selector.requirements = {{"app", SelectorOperator::kIn, {"db"}}};
  const auto wait = [&](const char* gang, const char* domain, bool apart) {
    term.topology_key = domain;
    PodDescription facts = Facts(absl::StrCat(gang, "-1"), 1, gang, 1);
    PodAffinityRules& rules = facts.shape.Mutable().pod_affinity;
    (apart ? rules.anti_affinity : rules.affinity) = {term};
    Put(facts);
    return waker_.WaitsFor(GangAt(gang), {ReasonCode::kNoRoom, ""}).classes.size();
  };
  EXPECT_EQ(wait("near", "kubernetes.io/hostname", false), 0U);
  EXPECT_EQ(wait("far", "zone", true), 0U);
  EXPECT_EQ(wait("apart", "kubernetes.io/hostname", true), 1U);
}

// room in a queue wakes what waits for its queue and may start there now, or is refused for another reason; not
// what waits for nodes.
TEST_F(WakerTest, QueueRoomFreed_WakesWhatItConcerns) {
  QueueSpec queue;
  queue.name = kDefaultQueue;
  queue.limit = {{"cpu", 6}};
  QueueRules rules;
  rules.queues = {queue};
  queues_.Set(rules);
  std::optional<QueueBound> bound;
  const auto block = [&](const std::string& name) {
    const Gang& gang = GangAt(name);
    backlog_.Remove(gang.id);
    Reason why = queues_.Check({&gang}, &bound);
    if (why.none()) why = {ReasonCode::kNoRoom, "full"};
    backlog_.Block(gang.id, eligibility_.KeyOf(gang), name, waker_.WaitsFor(gang, why), why, 0, {bound, {}});
    bound.reset();
  };
  const auto wake = [&](bool facts) {
    waker_.Wake();  // what the setting changed
    for (const char* name : {"many", "one", "mixed"}) block(name);
    backfill_.SetRunnable(GangAt("many"), /*runnable=*/false, /*blocking=*/false, kT0);
    ledger_.OnCapacityFreed();
    EXPECT_TRUE(waker_.HasFreedQueueRoom());
    EXPECT_TRUE(waker_.HasNews());
    if (facts) Update("n0-new");
    Touched(GangAt("many"));
    waker_.Wake();
    EXPECT_FALSE(waker_.HasNews());
    std::string awake;
    for (const char* name : {"many", "one", "mixed"}) {
      if (backlog_.SleepingCondition(name) == nullptr) absl::StrAppend(&awake, name, " ");
    }
    return awake;
  };
  ASSERT_EQ(queues_.Check({&GangAt("many")}, &bound).code, ReasonCode::kQueueRejected) << "it needs 7";
  EXPECT_EQ(wake(false), "") << "the queue refuses it as before; the others wait for nodes";
  EXPECT_EQ(backfill_.Of(GangAt("many")).runnable, Backfill::State::Runnable::kNo);
  EXPECT_EQ(wake(true), "one mixed ");
  EXPECT_EQ(backfill_.Of(GangAt("many")).runnable, Backfill::State::Runnable::kUnknown) << "the nodes have changed";
  EXPECT_TRUE(Touched(GangAt("many")));
}

// The log of changes is bounded: a reader that missed a dropped change takes everything for changed.
TEST_F(WakerTest, LogOverflows_EverythingWakes) {
  BlockAll();
  waker_.Wake();
  BlockAll();
  const NodeId node = cluster_.FindNode("n0");
  for (size_t i = 0; i <= Cluster::kMaxLog / 2; ++i) {
    cluster_.Charge(node, ClassOf("one"), ChargeKind::kUsed, 1);
    cluster_.Discharge(node, ClassOf("one"), ChargeKind::kUsed, 1, /*gained=*/false);
  }
  waker_.Wake();
  for (const std::string& gang : kGangs) EXPECT_TRUE(backlog_.is_forced_retry(GangAt(gang).id)) << gang;
  BlockAll();
  waker_.Wake();
  for (const std::string& gang : kGangs) EXPECT_NE(backlog_.SleepingCondition(gang), nullptr) << gang;
  // As many changes as the log has: none was dropped.
  for (size_t i = 0; i < Cluster::kMaxLog / 2; ++i) {
    cluster_.Charge(node, ClassOf("one"), ChargeKind::kUsed, 1);
    cluster_.Discharge(node, ClassOf("one"), ChargeKind::kUsed, 1, /*gained=*/false);
  }
  ASSERT_EQ(waker_.gain_position(), cluster_.log_start());
  waker_.Wake();
  for (const std::string& gang : kGangs) EXPECT_NE(backlog_.SleepingCondition(gang), nullptr) << gang;
}

}  // namespace
}  // namespace muster
