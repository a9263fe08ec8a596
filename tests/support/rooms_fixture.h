// The components of the core up to scheduling, wired as the machine wires them, for tests of one component at a time. A
// test puts facts directly into the components and sets the time; nothing is reconciled. Each node offers 10 "pods"
// besides its CPU. Not thread-safe.
#ifndef MUSTER_TESTS_SUPPORT_ROOMS_FIXTURE_H_
#define MUSTER_TESTS_SUPPORT_ROOMS_FIXTURE_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/binding/activations.h"
#include "state/binding/bindings.h"
#include "state/binding/broken_plans.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/binding/repair.h"
#include "state/binding/wait_clock.h"
#include "state/cluster/class_index.h"
#include "state/gangs/sources.h"
#include "state/persistence/records.h"
#include "state/reservations/backfill.h"
#include "state/reservations/deadlines.h"
#include "state/reservations/nominations.h"
#include "state/reservations/plans.h"
#include "state/reservations/submissions.h"
#include "state/scheduling/planning.h"
#include "state/scheduling/waker.h"
#include "state/views/wait_reasons.h"
#include "tests/support/facts.h"
#include "tests/support/lines.h"

namespace muster {

inline constexpr int64_t kHoldMs = 20'000;
inline constexpr int64_t kAnswerMs = 45'000;
inline constexpr int64_t kBindWithinMs = 300'000;
inline constexpr int64_t kRepairMs = 30'000;
inline constexpr int64_t kPlanIdleMs = 30'000;
inline constexpr int64_t kFutureMemberMs = 600'000;

class RoomsTest : public testing::Test {
 protected:
  explicit RoomsTest(int32_t max_holds = 100, bool nominate = true)
      : activations_(&gangs_, &cluster_, nominate),
        plan_maker_({&cluster_, &gangs_, &eligibility_, &plans_, &queues_, &nominations_, &plan_lifecycle_, &placer_},
                    {max_holds, 64}) {
    At(kT0);
    sources_.Complete();
  }

  // --- time and outcome ---
  // Begins a new command at `now_ms` and discards the outcome of the last one.
  ApplyContext* At(int64_t now_ms) {
    out_ = Outcome();
    ctx_.emplace(now_ms, &out_);
    return &*ctx_;
  }
  // The outcome since the last At.
  [[nodiscard]] Lines Done() const { return LinesOf(out_); }

  // --- facts ---
  NodeId AddNode(const std::string& name, int64_t cpu) { return PutNode(SmallNode(name, cpu)); }
  NodeId PutNode(const NodeDescription& node) {
    EXPECT_TRUE(cluster_.UpsertNode(node).ok());
    return cluster_.FindNode(node.name);
  }
  // Changes the node's facts.
  template <typename Change>
  void ChangeNode(const std::string& name, const Change& change) {
    NodeDescription node = NodeAt(name).facts;
    change(&node);
    PutNode(node);
  }
  [[nodiscard]] const Node& NodeAt(const std::string& name) const { return cluster_.node(cluster_.FindNode(name)); }
  [[nodiscard]] int64_t UsedOn(const std::string& name) const { return NodeAt(name).used.Get(0); }
  [[nodiscard]] int64_t ReservedOn(const std::string& name) const { return NodeAt(name).reserved.Get(0); }

  static PodDescription Facts(const std::string& name, int64_t cpu) { return Lone(name, cpu); }
  static PodDescription Facts(const std::string& name, int64_t cpu, const std::string& gang, int32_t min) {
    return Member(name, gang, min, cpu);
  }
  const Pod& Put(PodDescription facts, bool submitted = false, MemberState state = MemberState::kPending) {
    if (!scheduler_.empty()) facts.scheduler_name = scheduler_;
    const ClassId cls = facts.invalid.empty() ? *cluster_.AcquireClass(facts.shape) : kNoClass;
    const Pod& pod = gangs_.AddPod(std::move(facts), cls, state, submitted);
    if (!pod.facts.gang.in_gang()) return pod;
    const Gang& gang =
        *gangs_.Intern(pod.facts.name_space, pod.facts.gang.name, pod.facts.created_ms, ctx_->now_ms()).gang;
    gangs_.Join(pod, gang);
    gangs_.Adopt(pod);
    return pod;
  }
  const Pod& PutLone(const std::string& name, int64_t cpu) { return Put(Facts(name, cpu)); }
  const Pod& PutMember(const std::string& name, int64_t cpu, const std::string& gang, int32_t min) {
    return Put(Facts(name, cpu, gang, min));
  }
  // Members "g-1" to "g-n" of gang "g", of one cpu each, all of them needed.
  const Gang& PutGang(const std::string& name, int32_t members) {
    for (int32_t i = 1; i <= members; ++i) PutMember(absl::StrCat(name, "-", i), 1, name, members);
    return GangAt(name);
  }
  [[nodiscard]] const Gang& GangAt(const std::string& name) const { return *gangs_.FindGang("d/" + name); }
  [[nodiscard]] const Pod& PodAt(const std::string& uid) const { return *gangs_.FindPod(uid); }
  // Changes the pod's facts only; the change has no consequences.
  template <typename Change>
  void ChangePod(const std::string& uid, const Change& change) {
    const Pod& pod = PodAt(uid);
    PodDescription facts = pod.facts;
    change(&facts);
    gangs_.SetFacts(pod, std::move(facts), pod.cls);
  }
  void RemoveMember(const std::string& uid) {
    const Pod& pod = PodAt(uid);
    gangs_.Leave(pod);
    gangs_.RemovePod(pod);
  }

  // --- plans and bindings ---
  // Queues the gang as new and runs one planning round at the time of the last At.
  void PlanNow(const Gang& gang) {
    backlog_.Remove(gang.id);
    backlog_.Add(gang.id, eligibility_.KeyOf(gang));
    planning_.Round(64, &*ctx_);
  }
  // The pod takes the free slot of its class on the node.
  void Take(const std::string& uid, const std::string& node) {
    const Pod& pod = PodAt(uid);
    plans_.Offer(pod, Plans::FindFree(*plans_.Of(*pod.gang), pod, cluster_.FindNode(node)));
  }
  // The pod takes its slot and arrives at the barrier with a held bind call.
  void ReachBarrier(const std::string& uid, const std::string& node, HoldToken token) {
    if (plans_.SlotIndex(PodAt(uid)) < 0) Take(uid, node);
    pod_lifecycle_.SetByPermit(PodAt(uid), false);
    bindings_.ArriveAtBarrier(PodAt(uid), cluster_.FindNode(node), token, &*ctx_);
  }
  void Report(const std::string& uid, const std::string& node, BindingResult result, const std::string& message = "") {
    bindings_.OnBindingOutcome(PodAt(uid), BindingOutcome{uid, node, result, message}, &*ctx_);
  }
  // Whether the gang was touched since the last call; clears all touches.
  bool Touched(const Gang& gang) {
    bool touched = false;
    while (const Gang* next = gangs_.TakeTouched()) touched = touched || next == &gang;
    return touched;
  }
  // The pods or gangs marked since the last call because their deadline must be set again.
  static std::vector<int32_t> DrainDirty(Deadlines* deadlines) {
    std::vector<int32_t> ids;
    deadlines->DrainDirty([&](int32_t id) { ids.push_back(id); });
    return ids;
  }
  bool PodIsLookedAt(const std::string& uid) {
    const std::vector<int32_t> ids = DrainDirty(&pod_deadlines_);
    return std::find(ids.begin(), ids.end(), PodAt(uid).id) != ids.end();
  }
  void ExpectNothingPromised() const {
    EXPECT_EQ(pod_lifecycle_.held_binds(), 0);
    EXPECT_EQ(plans_.promised_holds(), 0);
    EXPECT_TRUE(ledger_.promised().empty());
  }

  Cluster cluster_;
  ClassIndex index_{&cluster_};
  Topology topology_{&cluster_, {}};
  Ledger ledger_{&cluster_};
  Gangs gangs_{GangsSettings{GangDefaults(), {"default-scheduler"}, false}};
  QueueTree queue_tree_;
  Eligibility eligibility_{&gangs_, &queue_tree_, &cluster_, true};
  Sources sources_;
  Backlog backlog_;
  Deadlines gang_deadlines_;
  Deadlines pod_deadlines_;
  Plans plans_{&gangs_, &ledger_};
  Domains domains_{&topology_, &ledger_, &plans_};
  Queues queues_{&queue_tree_, &cluster_, &ledger_, &gangs_, &eligibility_};
  Activations activations_;
  Nominations nominations_{&gangs_, &cluster_, &queues_, &ledger_};
  PodLifecycle pod_lifecycle_{{&cluster_, &ledger_, &gangs_, &backlog_, &plans_, &activations_, &nominations_,
                               &future_reservations_, &pod_deadlines_},
                              kBindWithinMs};
  FutureReservations future_reservations_{&gangs_, &eligibility_, &cluster_, &ledger_, &queues_};
  Backfill backfill_{&gangs_, &cluster_, &backlog_, &queues_, &future_reservations_};
  WaitClock clock_{&gangs_};
  Submissions submissions_{&gangs_, &gang_deadlines_};
  WaitReasons reasons_{
      {&eligibility_, &backlog_, &plans_, &activations_, &sources_, &queues_, &backfill_, &cluster_, &domains_}};
  PlanLifecycle plan_lifecycle_{{&cluster_, &gangs_, &eligibility_, &backlog_, &plans_, &activations_, &pod_lifecycle_,
                                 &clock_, &submissions_, &queues_},
                                kPlanIdleMs,
                                kFutureMemberMs};
  BrokenPlans broken_plans_{{&cluster_, &ledger_, &gangs_, &eligibility_, &backlog_, &plans_, &domains_, &nominations_,
                             &future_reservations_, &plan_lifecycle_}};
  Repair repair_{&gangs_, &eligibility_, &plans_, &plan_lifecycle_, kRepairMs};
  Bindings bindings_{{&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &pod_lifecycle_, &plan_lifecycle_,
                      &broken_plans_, &repair_, &backfill_},
                     {kHoldMs, kAnswerMs}};
  Placer placer_{{&cluster_, &ledger_, &index_, &topology_, &gangs_, &eligibility_, &queues_}};
  Waker waker_{{&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &backlog_, &queues_, &nominations_,
                &future_reservations_, &backfill_}};
  FuturePlacer future_placer_{{&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &queues_, &nominations_,
                               &future_reservations_, &backfill_, &placer_},
                              {64, kFutureMemberMs}};
  PlanMaker plan_maker_;
  Planning planning_{{&gangs_, &eligibility_, &sources_, &backlog_, &queues_, &future_reservations_, &backfill_,
                      &waker_, &future_placer_, &plan_maker_}};
  Outcome out_;
  std::optional<ApplyContext> ctx_;
  std::string scheduler_;  // of pods added from now on; empty: as in their facts
};

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_ROOMS_FIXTURE_H_
