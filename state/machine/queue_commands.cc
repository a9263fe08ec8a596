// Queues as they are declared while the machine runs (SPEC Q-1).
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

absl::Status Check(const QueueRules& rules) {
  const std::vector<std::string> problems = ProblemsOf(rules);
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

// Who is known keeps its place, which is its age; who is new comes last.
absl::StatusOr<QueueRules> Applied(QueueRules rules, const ApplyQueues& command) {
  absl::flat_hash_set<std::string> stays;
  for (const QueueSpec& queue : command.put) {
    if (!stays.insert(queue.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("queue ", queue.name, ": is declared twice"));
    }
    const auto known = std::find_if(rules.queues.begin(), rules.queues.end(),
                                    [&](const QueueSpec& each) { return each.name == queue.name; });
    if (known == rules.queues.end()) {
      rules.queues.push_back(queue);
    } else {
      *known = queue;
    }
  }
  for (const std::string& name : command.remove) {
    const auto known = std::find_if(rules.queues.begin(), rules.queues.end(),
                                    [&](const QueueSpec& each) { return each.name == name; });
    if (known == rules.queues.end()) return absl::NotFoundError(absl::StrCat("there is no queue ", name));
    rules.queues.erase(known);
  }
  if (command.only) {
    const auto goes = [&](const QueueSpec& queue) { return !stays.contains(queue.name); };
    rules.queues.erase(std::remove_if(rules.queues.begin(), rules.queues.end(), goes), rules.queues.end());
  }
  if (absl::Status right = Check(rules); !right.ok()) return right;
  return rules;
}

}  // namespace

void Machine::On(const SetQueues& command, Step* step) {
  if (absl::Status right = Check(command.rules); !right.ok()) return step->Refuse(right);
  TakeQueues(command.rules, step);
}

void Machine::On(const ApplyQueues& command, Step* step) {
  absl::StatusOr<QueueRules> rules = Applied(queue_tree_.rules(), command);
  if (!rules.ok()) return step->Refuse(rules.status());
  TakeQueues(*std::move(rules), step);
}

// Whoever was held, or let go, by the rules before is judged by these from now on; who runs stays.
void Machine::TakeQueues(QueueRules rules, Step* step) {
  if (rules == queue_tree_.rules()) return;
  if (keeps_queues_) WriteQueuesRecord(rules.queues, step);
  queues_.Set(std::move(rules));
  gangs_.ForEachGang([this](const Gang& gang) { queues_.Pay(gang); });  // before anybody is judged by what is used
  planning_.WakeAll();
  gangs_.JudgeAnew();
  gangs_.ForEachGang([this](const Gang& gang) { gangs_.Touch(gang); });
}

}  // namespace muster
