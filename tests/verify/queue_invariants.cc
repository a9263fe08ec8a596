#include "tests/verify/queue_invariants.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "state/gangs/gangs.h"

namespace muster {
namespace {

// The usage of every queue, recomputed: first its own gangs, then the queues below it.
class Recount {
 public:
  Recount(const Gangs& gangs, const Plans& plans, const Ledger& ledger, const Queues& queues)
      : plans_(plans), ledger_(ledger), queues_(queues) {
    const auto size = static_cast<size_t>(queues.tree().size());
    used_.resize(size);
    fixed_.resize(size);
    running_.resize(size);
    gangs.ForEachGang([this](const Gang& gang) { Add(gang); });
    for (QueueId id = queues.tree().size() - 1; id >= 0; --id) {
      const QueueId parent = queues.tree().at(id).parent;
      if (parent == kNoQueue) continue;
      const auto at = static_cast<size_t>(id);
      const auto above = static_cast<size_t>(parent);
      for (const auto& [resource, amount] : used_[at].entries()) used_[above].Add(resource, amount);
      for (const auto& [resource, amount] : fixed_[at].entries()) fixed_[above].Add(resource, amount);
      running_[above] += running_[at];
    }
  }
  [[nodiscard]] std::string Differs(const std::vector<Queues::Figures>& figures) const {
    for (QueueId id = 0; id < queues_.tree().size(); ++id) {
      const auto at = static_cast<size_t>(id);
      const std::string queue_name = absl::StrCat("queue ", queues_.tree().at(id).spec.name);
      if (!(used_[at] == ledger_.used().Of(id))) return absl::StrCat(queue_name, ": usage is not what its gangs have");
      if (!(fixed_[at] == ledger_.fixed().Of(id)))
        return absl::StrCat(queue_name, ": fixed usage is not what its gangs have");
      if (const int32_t counted = figures[at].running_gangs; counted != running_[at]) {
        return absl::StrCat(queue_name, " counts ", counted, " running gangs, has ", running_[at]);
      }
    }
    return wrong_payer_;
  }

 private:
  void Add(const Gang& gang) {
    const QueueId queue = queues_.Of(gang);
    const Plan* plan = plans_.Of(gang);
    bool runs = plan != nullptr;
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) {
        if (ledger_.PayerOf(pod->id).account != queue)
          wrong_payer_ = absl::StrCat("pod ", pod->facts.uid, " is paid for by another queue");
        const Ledger::PodCharge& charge = ledger_.ChargeOf(pod->id);
        if (charge.node != kNoNode) Charge(gang, queue, charge.cls);
        const MemberState state = pod->state;
        runs = runs || pod->active() || state == MemberState::kWaiting || state == MemberState::kTerminating;
      }
    }
    if (plan != nullptr) {
      for (const Slot& slot : plan->slots) {
        if (slot.state != SlotState::kCommitted) Charge(gang, queue, slot.cls);
      }
    }
    if (runs && queue != kNoQueue) ++running_[static_cast<size_t>(queue)];
  }
  void Charge(const Gang& gang, QueueId queue, ClassId cls) {
    if (queue == kNoQueue) return;
    const ResourceVector& request = ledger_.cluster().pod_class(cls).request;
    used_[static_cast<size_t>(queue)].AddTimes(request, 1);
    if (!gang.rules.preemptible) fixed_[static_cast<size_t>(queue)].AddTimes(request, 1);
  }

  const Plans& plans_;
  const Ledger& ledger_;
  const Queues& queues_;
  std::vector<ResourceSum> used_;
  std::vector<ResourceSum> fixed_;
  std::vector<int32_t> running_;
  std::string wrong_payer_;
};

}  // namespace

std::string FindQueueViolation(const Gangs& gangs, const Plans& plans, const Ledger& ledger, const Backlog& backlog,
                               const Queues& queues) {
  std::string wrong;
  std::vector<int32_t> waits(static_cast<size_t>(queues.tree().size()));
  std::vector<int32_t> asked(waits.size());
  const std::vector<Queues::Figures> figures = queues.ComputeFigures();
  gangs.ForEachGang([&](const Gang& gang) {
    if (backlog.queued(gang.id) == nullptr) return;
    const QueueId queue = queues.Of(gang);
    for (const std::string& key : gang.rules.group) {  // it waits for all of them
      const Gang* other = gangs.FindGang(key);
      for (QueueId at = other == nullptr ? kNoQueue : queues.Of(*other); at != kNoQueue;
           at = queues.tree().at(at).parent)
        ++asked[static_cast<size_t>(at)];
    }
    if (backlog.lane(gang.id) != queue + 1) wrong = absl::StrCat(gang.key, " is in the lane of another queue");
    for (QueueId at = queue; at != kNoQueue; at = queues.tree().at(at).parent) ++waits[static_cast<size_t>(at)];
  });
  for (QueueId id = 0; id < queues.tree().size(); ++id) {
    const std::string queue_name = absl::StrCat("queue ", queues.tree().at(id).spec.name);
    const auto at = static_cast<size_t>(id);
    const int32_t wait = waits[at];
    if (wait + asked[at] == 0 && !figures[at].waiting.empty()) {
      wrong = absl::StrCat(queue_name, " has waiting requests, and no gang waits");
    }
    if (const int32_t counted = figures[at].waiting_gangs; counted != wait) {
      wrong = absl::StrCat(queue_name, " counts ", counted, " gangs that wait, has ", wait);
    }
  }
  return wrong.empty() ? Recount(gangs, plans, ledger, queues).Differs(figures) : wrong;
}

}  // namespace muster
