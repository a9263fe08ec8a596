#include "state/whatif/what_if.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "state/base/problem.h"
#include "state/recording/recording.h"

namespace muster {
namespace {

constexpr char kHostname[] = "kubernetes.io/hostname";
// The largest number of planning rounds before the answer is given as it is then.
constexpr int kMaxRounds = 100'000;

class HypotheticalMachine {
 public:
  HypotheticalMachine(const MachineSettings& settings, int64_t now_ms) : machine_(settings), now_ms_(now_ms) {}

  absl::StatusOr<WhatIfAnswer> Answer(absl::string_view state, const WhatIf& question) {
    if (absl::Status read = recording::RestoreState(state, &machine_); !read.ok()) return read;
    WhatIfAnswer answer;
    const std::string key =
        question.job.has_value() ? absl::StrCat(question.job->name_space, "/", question.job->name) : question.gang;
    if (!question.job.has_value() && machine_.reader().FindGang(key) == nullptr) {
      return absl::NotFoundError(absl::StrCat("gang ", key, " is not known"));
    }
    absl::flat_hash_set<std::string> planned_now;
    machine_.reader().ForEachGang([&](const Gang& gang) {
      if (HasPlan(gang)) planned_now.insert(gang.key);
    });
    for (const WhatIf::AddedNode& added : question.added) {
      if (absl::Status done = Add(added); !done.ok()) return done;
    }
    if (absl::Status done = IncreaseQueues(question.more); !done.ok()) return done;
    for (const std::string& name : question.gone) {
      if (absl::Status done = Remove(name, key); !done.ok()) return done;
    }
    answer.affected_gangs.assign(affected_.begin(), affected_.end());
    const bool changes = !question.added.empty() || !question.more.empty() || !question.gone.empty();
    if (question.job.has_value()) {
      // Gangs that wait now are planned before the job is submitted.
      if (changes) PlanUntil([] { return false; });
      if (const Outcome outcome = Apply(*question.job); !outcome.status.ok()) return outcome.status;
    }
    // Gangs before it in the order are planned first.
    PlanUntil([&] {
      const Gang* gang = machine_.reader().FindGang(key);
      return gang == nullptr || HasPlan(*gang);
    });
    FillAnswer(key, &answer);
    if (!lost_.empty()) FindReplacements(&answer);
    std::sort(answer.places.begin(), answer.places.end(),
              [](const auto& a, const auto& b) { return std::tie(a.name, a.node) < std::tie(b.name, b.node); });
    machine_.reader().ForEachGang([&](const Gang& gang) {
      if (gang.key != key && HasPlan(gang) && !planned_now.contains(gang.key))
        answer.planned_before.push_back(gang.key);
    });
    return answer;
  }

 private:
  [[nodiscard]] bool HasPlan(const Gang& gang) const { return machine_.reader().FindPlan(gang) != nullptr; }
  // nullptr: no node of that name is present.
  [[nodiscard]] const Node* Find(const std::string& node) const { return machine_.reader().facts.FindNode(node); }
  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, now_ms_, &outcome);
    return outcome;
  }

  absl::Status Add(const WhatIf::AddedNode& added) {
    NodeDescription pattern = added.node;
    std::string stem = pattern.name;
    if (!added.like.empty()) {
      const Node* like = Find(added.like);
      if (like == nullptr) {
        return absl::NotFoundError(absl::StrCat("node ", added.like, ", the template of added nodes, is not known"));
      }
      pattern = like->facts;
      pattern.unschedulable = false;
      stem = absl::StrCat(added.like, "-added");
    }
    for (int32_t i = 1; i <= added.count; ++i) {
      NodeDescription node = pattern;
      node.name = added.count == 1 && added.like.empty() ? stem : absl::StrCat(stem, "-", i);
      if (Find(node.name) != nullptr) {
        return InvalidArgument(
            {{Subject::kNode, node.name,
              absl::StrCat("node ", node.name, " exists already; expected a name that no node has")}});
      }
      for (auto& [label, value] : node.labels) {
        if (label == kHostname) value = node.name;
      }
      if (const Outcome outcome = Apply(UpsertNode{node}); !outcome.status.ok()) return outcome.status;
    }
    return absl::OkStatus();
  }

  absl::Status IncreaseQueues(const std::vector<WhatIf::QueueIncrease>& more) {
    QueueRules rules = machine_.reader().queues.tree().rules();
    for (const auto& [name, amounts] : more) {
      const auto queue = std::find_if(rules.queues.begin(), rules.queues.end(),
                                      [&name = name](const QueueSpec& each) { return each.name == name; });
      if (queue == rules.queues.end()) {
        return absl::NotFoundError(absl::StrCat("queue ", name, ", which would get more, is not declared"));
      }
      for (const auto& [resource, amount] : amounts) {
        bool any = false;
        for (ResourceList* of : {&queue->limit, &queue->quota}) {
          const auto at = of->find(resource);
          if (at == of->end()) continue;
          at->second = std::min(at->second + amount, kMaxAmount);
          any = true;
        }
        if (any) continue;
        return InvalidArgument({{Subject::kQueue, name,
                                 absl::StrCat("queue ", name, " has neither a limit nor a quota of ", resource,
                                              ": more of it would change nothing")}});
      }
    }
    absl::Status taken = Apply(SetQueues{std::move(rules)}).status;
    if (taken.ok()) return taken;
    return InvalidArgument(
        {{Subject::kQueue, "",
          absl::StrCat("queues with more would not be accepted: ", taken.message(), "; give more to that one too")}});
  }

  absl::Status Remove(const std::string& name, const std::string& asked) {
    if (Find(name) == nullptr) {
      return absl::NotFoundError(absl::StrCat("node ", name, ", which would be removed, is not known"));
    }
    for (PodId id = 0; id < machine_.reader().gangs.pod_limit(); ++id) {
      const Pod* pod = machine_.reader().gangs.PodAt(id);
      if (pod == nullptr || pod->gang == nullptr || pod->facts.node_name != name) continue;
      affected_.insert(pod->gang->key);
      if (pod->gang->key == asked && pod->active()) lost_.push_back(pod->facts);
    }
    for (const PodDescription& pod : lost_) Apply(RemovePod{pod.uid});
    return Apply(RemoveNode{name}).status;
  }

  void PlanUntil(absl::FunctionRef<bool()> decided) {
    for (int round = 0; round < kMaxRounds && machine_.PlanningDue() && !decided(); ++round) Apply(PlanRound{1});
  }

  // Finds another node for each member that the gang would lose with its node.
  void FindReplacements(WhatIfAnswer* answer) {
    size_t found = 0;
    for (PodDescription pod : lost_) {
      pod.gang = {};
      pod.node_name.clear();
      pod.phase = PodPhase::kPending;
      Apply(UpsertPod{pod});
      const Outcome outcome = Apply(FindNodes{pod.uid, {}});
      const auto* reply = std::get_if<NodesReply>(&outcome.reply);
      if (reply == nullptr || reply->nodes.empty()) continue;
      pod.node_name = reply->nodes.front().node;
      Apply(UpsertPod{pod});
      answer->places.push_back({pod.uid, pod.name, pod.node_name});
      ++found;
    }
    answer->starts = found == lost_.size();
    const std::string of = absl::StrCat(lost_.size(), lost_.size() == 1 ? " member is" : " members are",
                                        " on nodes that would be removed");
    answer->reason = answer->starts ? Reason{ReasonCode::kPlanned, absl::StrCat(of, "; there is room elsewhere")}
                                    : Reason{ReasonCode::kNoRoom, absl::StrCat(of, "; there is room for ", found)};
  }

  void FillAnswer(const std::string& key, WhatIfAnswer* answer) {
    Apply(RefreshExplanation{key});
    const Gang* gang = machine_.reader().FindGang(key);
    if (gang == nullptr) return;
    const GangView view = machine_.reader().gangs.View(*gang, /*with_members=*/true);
    answer->starts = view.satisfied || HasPlan(*gang);
    answer->reason = view.reason;
    for (const MemberView& member : view.members) {
      if (!member.node.empty()) answer->places.push_back({member.uid, member.name, member.node});
    }
    if (const Plan* plan = machine_.reader().FindPlan(*gang); plan != nullptr) {
      answer->reason = {ReasonCode::kPlanned, absl::StrCat("there is room for ", plan->slots.size(),
                                                           plan->slots.size() == 1 ? " member" : " members")};
      for (const Slot& slot : plan->slots) {
        if (slot.pod == nullptr) answer->places.push_back({"", "", machine_.reader().facts.NodeName(slot.node)});
      }
    }
  }

  Machine machine_;
  const int64_t now_ms_;
  std::set<std::string> affected_;    // gangs with members on nodes that would be removed
  std::vector<PodDescription> lost_;  // members of the gang in question, on nodes that would be removed
};

}  // namespace

absl::StatusOr<WhatIfAnswer> AnswerWhatIf(absl::string_view state, const MachineSettings& settings,
                                          const WhatIf& question, int64_t now_ms) {
  return std::make_unique<HypotheticalMachine>(settings, now_ms)->Answer(state, question);
}

}  // namespace muster
