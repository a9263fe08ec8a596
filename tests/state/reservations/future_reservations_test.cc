// SPEC P-8: capacity of terminating pods is reserved for a gang, and the cost is bounded when thousands of pods
// terminate at once.
#include "state/reservations/future_reservations.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

constexpr auto kTerminating = FutureReservations::WaitsFor::kTerminating;
constexpr auto kRunning = FutureReservations::WaitsFor::kRunning;

class FutureReservationsTest : public RoomsTest {
 protected:
  // Pods of one cpu each that are being deleted, on one node with as many cpus as pods.
  void PutTerminating(int32_t pods, const std::string& node = "n", int64_t since_ms = kT0) {
    const NodeId id = PutNode(NodeWith(node, {{"cpu", pods}, {"pods", 2 * pods + 10}}));
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts = Facts(absl::StrCat("old-", ended_++), 1);
      facts.node_name = node;
      facts.deleting = true;
      const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kTerminating);
      ledger_.ChargePod(pod.id, id, pod.cls, ChargeKind::kUsed);
      EXPECT_FALSE(future_reservations_.TrackTerminating(pod, since_ms));
    }
  }
  void EndPod(const std::string& uid) {
    ledger_.DischargePod(PodAt(uid).id, /*gained=*/true);
    future_reservations_.Remove(PodAt(uid));
  }
  int32_t ended_ = 0;
};

TEST_F(FutureReservationsTest, Reservation_AllPodsGone_BecomesPlan) {
  PutTerminating(2);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ASSERT_TRUE(future_reservations_.HasReservation(gang));
  EXPECT_EQ(NodeAt("n").future_reserved.Get(kCpu), 2);
  EXPECT_EQ(NodeAt("n").free.Get(kCpu), -2);
  EXPECT_FALSE(cluster_.ReservationsExceed(cluster_.FindNode("n"))) << "nothing is reserved";
  EXPECT_EQ(future_reservations_.OccupiedNodes(gang), std::vector<std::string>{"n"});
  EXPECT_EQ(future_reservations_.Deadline(gang), kT0 + FutureReservations::kTerminationPatienceMs);
  EndPod("old-0");
  planning_.Round(64, &*ctx_);
  EXPECT_EQ(plans_.Of(gang), nullptr) << "a half of it is free";
  EXPECT_TRUE(future_reservations_.HasReservation(gang));
  EndPod("old-1");
  planning_.Round(64, &*ctx_);
  EXPECT_NE(plans_.Of(gang), nullptr);
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
  EXPECT_EQ(NodeAt("n").future_reserved_pods, 0);
  EXPECT_EQ(ReservedOn("n"), 2);
  EXPECT_EQ(planning_.stats().reservations, 2) << "it was made again in the second round";
}

TEST_F(FutureReservationsTest, Deadline_IsEndOfPatienceForFirstPodOnItsNodes) {
  constexpr int64_t kPatience = FutureReservations::kTerminationPatienceMs;
  PutTerminating(1, "n", kT0 - kPatience);  // Muster no longer waits for it
  EXPECT_FALSE(future_reservations_.HasTerminatingPods(kT0));
  PutTerminating(1, "n", kT0 - 1'000);
  PutTerminating(1, "n", kT0 - 3'000);
  PutTerminating(1, "o", kT0 - 5'000);
  const Gang& gang = PutGang("g", 1);
  future_reservations_.Reserve(gang, {{cluster_.FindNode("n"), PodAt("g-1").cls, 1}}, kTerminating, kNever, kT0);
  EXPECT_EQ(future_reservations_.Deadline(gang), kT0 - 3'000 + kPatience);
}

// a reservation on running pods has no end. It yields by rank, by priority, and to gangs that end before it
// starts.
TEST_F(FutureReservationsTest, ReservationOnRunning_YieldsToClaimsThatMayOvertake) {
  using Rank = FutureReservations::Claimant::Rank;
  PutTerminating(4);
  for (const char* name : {"a", "owner", "z"}) PutGang(name, 1);
  PodDescription high = Facts("high-1", 1, "high", 1);
  high.priority = 1;
  Put(high);
  future_reservations_.Reserve(GangAt("owner"), {{0, PodAt("a-1").cls, 1}}, kRunning, kT0 + 5, kT0);
  EXPECT_EQ(future_reservations_.Deadline(GangAt("owner")), kNever);
  int64_t starved_since_ms = 0;
  const auto yields = [&](const char* to, Rank rank, int64_t ends_by_ms = kNever) {
    FutureReservations::Suspended suspended(future_reservations_);
    future_reservations_.Suspend(GangAt(to), {ends_by_ms, rank, starved_since_ms}, &suspended);
    return !suspended.others.empty();
  };
  EXPECT_TRUE(yields("high", Rank::kAny));
  EXPECT_FALSE(yields("a", Rank::kAny));
  for (const Rank rank : {Rank::kStarved, Rank::kBlocksQueue}) EXPECT_TRUE(yields("a", rank) && !yields("z", rank));
  EXPECT_TRUE(yields("z", Rank::kBlocksQueueFirst));
  EXPECT_TRUE(yields("z", Rank::kAny, kT0 + 5));
  EXPECT_FALSE(yields("z", Rank::kAny, kT0 + 6));
  // Past the starvation limit of its owner, it does not rely on the end that a claim declares.
  starved_since_ms = kT0;
  EXPECT_TRUE(yields("z", Rank::kAny, kT0 + 5)) << "its owner was not bypassed";
  gangs_.SetBypassedSince(GangAt("owner"), kT0 + 1);
  EXPECT_TRUE(yields("z", Rank::kAny, kT0 + 5)) << "not for long enough";
  gangs_.SetBypassedSince(GangAt("owner"), kT0);
  EXPECT_FALSE(yields("z", Rank::kAny, kT0 + 5));
  EXPECT_TRUE(yields("high", Rank::kAny));
}

TEST_F(FutureReservationsTest, PodsTerminatingTooLong_GetNoReservation) {
  PutTerminating(2);
  const Gang& gang = PutGang("g", 2);
  At(kT0 + FutureReservations::kTerminationPatienceMs);
  PlanNow(gang);
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
  EXPECT_EQ(UsedOn("n"), 2) << "what was lent is back";
}

// When the pods of a large namespace terminate at once, a round does not look ahead, so that it stays short.
TEST_F(FutureReservationsTest, ThousandsTerminating_AreNotLookedAheadAt) {
  PutTerminating(8'193);
  const Gang& gang = PutGang("g", 2);
  const int64_t before = cluster_.log_end();
  PlanNow(gang);
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
  EXPECT_LT(cluster_.log_end() - before, 100);
}

// One round suspends charges only within its budget, whichever gangs are tried.
TEST_F(FutureReservationsTest, Round_ManyGangs_SuspendsWithinBudget) {
  PutTerminating(2'000);
  for (int32_t i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("g", i);
    PutMember(name + "-1", 2'001 + i, name, 1);  // more than the whole node
    backlog_.Add(GangAt(name).id, eligibility_.KeyOf(GangAt(name)));
  }
  const int64_t before = cluster_.log_end();
  planning_.Round(64, &*ctx_);
  EXPECT_GT(cluster_.log_end() - before, 3'000) << "somebody looked ahead";
  EXPECT_LT(cluster_.log_end() - before, 20'000);
}

// A reservation on terminating pods ends when a gang before its owner in order takes the capacity. A reservation on
// running pods stays, whatever the order.
TEST_F(FutureReservationsTest, CapacityTakenByEarlierGang_ReleasesTerminatingReservation) {
  PutTerminating(4);
  const NodeId node = cluster_.FindNode("n");
  const Gang& first = PutGang("a", 2);
  const Gang& on_terminating = PutGang("b", 3);
  const ClassId cls = PodAt("a-1").cls;
  for (const char* name : {"0", "c"}) {  // in order before `on_terminating`, and after it
    SCOPED_TRACE(name);
    const Gang& on_running = PutGang(name, 2);
    future_reservations_.Reserve(on_terminating, {{node, cls, 3}}, kTerminating, kNever, kT0);
    future_reservations_.Reserve(on_running, {{node, cls, 2}}, kRunning, kNever, kT0);
    FutureReservations::Suspended suspended(future_reservations_);
    future_reservations_.Suspend(first, {kNever, FutureReservations::Claimant::Rank::kBlocksQueueFirst}, &suspended);
    ASSERT_EQ(suspended.others.size(), 2);
    future_reservations_.Reserve(first, {{node, cls, 2}}, kTerminating, kNever, kT0);
    future_reservations_.Resume(first, /*placed=*/false, /*keeps_own=*/true, &suspended);
    EXPECT_TRUE(future_reservations_.HasReservation(first));
    EXPECT_FALSE(future_reservations_.HasReservation(on_terminating)) << "4 end, 2 of them are the first one's";
    EXPECT_TRUE(future_reservations_.HasReservationOnRunning(on_running));
    EXPECT_TRUE(future_reservations_.ReservationFits(first));
    EXPECT_TRUE(future_reservations_.ReservationFits(on_running));
    future_reservations_.Release(on_running);
    future_reservations_.Release(first);
  }
}

// The node becomes smaller: of two gangs that wait for terminating pods, the last in order loses its reservation.
TEST_F(FutureReservationsTest, NodeShrinks_LastInOrderLosesReservation) {
  PutTerminating(4);
  const NodeId node = cluster_.FindNode("n");
  const Gang& last = PutGang("b", 2);
  const Gang& first = PutGang("a", 2);
  const ClassId cls = PodAt("a-1").cls;
  future_reservations_.Reserve(last, {{node, cls, 2}}, kTerminating, kNever, kT0);
  future_reservations_.Reserve(first, {{node, cls, 2}}, kTerminating, kNever, kT0);
  NodeDescription smaller = NodeAt("n").facts;
  smaller.allocatable["cpu"] = 3;
  PutNode(smaller);
  future_reservations_.ReleaseBroken(node);
  EXPECT_TRUE(future_reservations_.HasReservation(first));
  EXPECT_FALSE(future_reservations_.HasReservation(last));
}

// Reservations of both kinds on two nodes with some terminating pods, beside an account in whole cpus.
class RandomReservations : public FutureReservationsTest {
 public:
  explicit RandomReservations(uint32_t seed) : random_(seed) {
    for (const char* name : {"n", "m"}) {
      Twin& node = nodes_[name];
      AddNode(name, node.cpu = 6);
      for (int64_t left = Draw(7); left > 0; --left) {
        PodDescription facts = Facts(absl::StrCat("pod-", pods_++), 1);
        facts.node_name = name;
        const bool ends = Draw(2) == 0;
        facts.deleting = ends;
        const Pod& pod = Put(facts, /*submitted=*/false, ends ? MemberState::kTerminating : MemberState::kBound);
        ledger_.ChargePod(pod.id, cluster_.FindNode(name), pod.cls, ChargeKind::kUsed);
        EXPECT_FALSE(future_reservations_.TrackTerminating(pod, kT0));
        ++node.used;
        node.ending += ends ? 1 : 0;
      }
    }
    for (int i = 0; i < 4; ++i) AddGang(absl::StrCat("g", i));
  }
  void TestBody() override {}

  void Check() {
    const std::string name = absl::StrCat("g", Draw(4));
    const Gang& gang = GangAt(name);
    const TwinGang& own = gangs_of_[name];
    const auto rank = static_cast<Rank>(Draw(4));
    const int64_t ends_ms = Draw(2) == 0 ? kNever : kT0 + Draw(4);
    std::vector<std::string> yielding;
    for (const auto& [other, twin] : gangs_of_) {
      if (other != name && !twin.places.empty() && Yields(name, other, rank, ends_ms)) yielding.push_back(other);
    }
    std::sort(yielding.begin(), yielding.end(), [this](const auto& a, const auto& b) { return Before(a, b); });
    FutureReservations::Suspended suspended(future_reservations_);
    future_reservations_.Suspend(gang, {ends_ms, rank}, &suspended);
    std::vector<std::string> others;
    for (const ClaimId id : suspended.others) others.push_back(gangs_.gang(id).name);
    ASSERT_EQ(others, yielding);
    const bool has = !own.places.empty();
    ASSERT_EQ(suspended.own_on_running, has && own.running);
    ASSERT_EQ(suspended.own.size(), has && !own.running ? own.places.size() : 0U);
    std::set<std::string> off(yielding.begin(), yielding.end());
    off.insert(name);
    ASSERT_NO_FATAL_FAILURE(ExpectFree(off));
    // Meanwhile a pod takes a cpu, for the gang or for another one.
    const bool placed = Draw(2) == 0;
    const bool keeps_own = !placed && Draw(2) == 0;
    if (Draw(2) == 0) {
      const std::string on = Draw(2) == 0 ? "n" : "m";
      const Pod& pod = PutLone("late", 1);
      ledger_.ChargePod(pod.id, cluster_.FindNode(on), pod.cls, ChargeKind::kUsed);
      ++nodes_[on].used;
    }
    const int64_t position = cluster_.log_end();
    Touched(gang);
    const std::set<std::string> had = NodesOf(own);
    future_reservations_.Resume(gang, placed, keeps_own, &suspended);
    if (has && (!own.running || placed)) gangs_of_[name].places.clear();
    for (auto other = yielding.rbegin(); other != yielding.rend(); ++other) {
      const bool fits = Fits(*other);
      ASSERT_EQ(future_reservations_.HasReservation(GangAt(*other)), fits) << *other;
      if (!fits) gangs_of_[*other].places.clear();
      ASSERT_EQ(future_reservations_.ReservationFits(GangAt(*other)), true);
    }
    std::set<std::string> touched;
    while (const Gang* next = gangs_.TakeTouched()) touched.insert(next->name);
    for (const auto& [other, twin] : gangs_of_) {
      ASSERT_EQ(future_reservations_.HasReservation(GangAt(other)), !twin.places.empty()) << other;
      const bool lost = off.contains(other) && other != name && twin.places.empty();
      ASSERT_EQ(touched.contains(other), lost) << other;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectFree({}));
    if (has && !own.running) ExpectOwnGain(had, position, !placed && !keeps_own, off);
  }

 private:
  using Rank = FutureReservations::Claimant::Rank;
  struct Twin {
    int64_t cpu = 0;
    int64_t used = 0;
    int64_t ending = 0;  // of the used ones
  };
  struct TwinGang {
    int32_t priority = 0;
    int64_t created_ms = 0;
    bool running = false;
    int64_t starts_ms = kNever;
    std::vector<std::pair<std::string, int64_t>> places;  // node and cpus; none: no reservation
  };
  int64_t Draw(uint32_t below) { return static_cast<int64_t>(random_() % below); }
  void AddGang(const std::string& name) {
    TwinGang& gang = gangs_of_[name];
    gang.priority = static_cast<int32_t>(Draw(2));
    gang.created_ms = 1 + Draw(2);
    PodDescription facts = Facts(name + "-1", 1, name, 1);
    facts.priority = gang.priority;
    facts.created_ms = gang.created_ms;
    Put(facts);
    if (Draw(4) == 0) return;
    gang.running = Draw(2) == 0;
    if (gang.running && Draw(2) == 0) gang.starts_ms = kT0 + Draw(4);
    std::vector<Statement::Operation> places;
    for (const char* node : {"n", "m"}) {
      const int64_t most = gang.running
                               ? nodes_[node].cpu
                               : nodes_[node].cpu - nodes_[node].used + nodes_[node].ending - Reserved(node, {}, false);
      const int64_t cpus = std::min<int64_t>(most, 1 + Draw(3));
      if (cpus <= 0) continue;
      places.push_back({cluster_.FindNode(node), PodAt(name + "-1").cls, static_cast<int32_t>(cpus)});
      gang.places.emplace_back(node, cpus);
    }
    if (places.empty()) return;
    future_reservations_.Reserve(GangAt(name), places, gang.running ? kRunning : kTerminating, gang.starts_ms, kT0);
  }
  [[nodiscard]] bool Before(const std::string& a, const std::string& b) const {
    const TwinGang& first = gangs_of_.at(a);
    const TwinGang& second = gangs_of_.at(b);
    return std::tuple(-first.priority, first.created_ms, a) < std::tuple(-second.priority, second.created_ms, b);
  }
  [[nodiscard]] bool Yields(const std::string& to, const std::string& owner, Rank rank, int64_t ends_ms) const {
    const TwinGang& other = gangs_of_.at(owner);
    if (!other.running || rank == Rank::kBlocksQueue) return Before(to, owner);
    if (rank == Rank::kBlocksQueueFirst || (rank == Rank::kStarved && Before(to, owner))) return true;
    if (gangs_of_.at(to).priority > other.priority) return true;
    return ends_ms != kNever && other.starts_ms != kNever && ends_ms <= other.starts_ms;
  }
  // Cpus that reservations hold on the node, but for those of `off`; `running`: also those on running pods.
  [[nodiscard]] int64_t Reserved(const std::string& node, const std::set<std::string>& off, bool running) const {
    int64_t sum = 0;
    for (const auto& [name, gang] : gangs_of_) {
      if (off.contains(name) || (gang.running && !running)) continue;
      for (const auto& [on, cpus] : gang.places) sum += on == node ? cpus : 0;
    }
    return sum;
  }
  [[nodiscard]] bool Fits(const std::string& name) const {
    const TwinGang& gang = gangs_of_.at(name);
    return std::all_of(gang.places.begin(), gang.places.end(), [&](const auto& place) {
      const Twin& node = nodes_.at(place.first);
      if (gang.running) return place.second <= node.cpu;
      return node.cpu - node.used + node.ending >= Reserved(place.first, {}, false);
    });
  }
  static std::set<std::string> NodesOf(const TwinGang& gang) {
    std::set<std::string> out;
    for (const auto& [node, cpus] : gang.places) out.insert(node);
    return out;
  }
  void ExpectFree(const std::set<std::string>& off) const {
    for (const auto& [name, node] : nodes_) {
      ASSERT_EQ(NodeAt(name).free.Get(kCpu), node.cpu - node.used - Reserved(name, off, true)) << name;
    }
  }
  // What the gang no longer reserves may help others, unless it has used it or reserves it again.
  void ExpectOwnGain(const std::set<std::string>& had, int64_t position, bool gain,
                     const std::set<std::string>& off) const {
    std::set<std::string> gained;
    for (; position < cluster_.log_end(); ++position) {
      if (cluster_.log_at(position).gained) gained.insert(cluster_.node(cluster_.log_at(position).node).facts.name);
    }
    for (const std::string& node : had) {
      ASSERT_TRUE(!gain || gained.contains(node));
    }
    ASSERT_TRUE(gain || off.size() > 1 || gained.empty());
  }

  std::mt19937 random_;
  std::map<std::string, Twin> nodes_;
  std::map<std::string, TwinGang> gangs_of_;
  int pods_ = 0;
};

TEST(RandomReservationsTest, SuspendAndResume_AgreeWithAccount) {
  for (uint32_t seed = 1; seed <= 2'000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomReservations(seed).Check();
  }
}

}  // namespace
}  // namespace muster
