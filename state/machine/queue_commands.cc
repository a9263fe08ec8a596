// The commands that declare queues at run time (SPEC Q-1).
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "state/base/problem.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

absl::Status Check(const QueueRules& rules) {
  std::vector<Problem> problems;
  for (const QueueProblem& problem : ValidateQueuesByName(rules)) {
    problems.push_back({Subject::kQueue, problem.queue, ToString(problem)});
  }
  return problems.empty() ? absl::OkStatus() : InvalidArgument(problems);
}

// The rules after `command`. A known queue keeps its position, which is its age; a new queue comes last.
absl::StatusOr<QueueRules> Applied(QueueRules rules, const ApplyQueues& command) {
  absl::flat_hash_set<std::string> declared;
  for (const QueueSpec& queue : command.put) {
    if (!declared.insert(queue.name).second) {
      return InvalidArgument({{Subject::kQueue, queue.name, ToString(QueueProblem{queue.name, "is declared twice"})}});
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
    const auto removed = [&](const QueueSpec& queue) { return !declared.contains(queue.name); };
    rules.queues.erase(std::remove_if(rules.queues.begin(), rules.queues.end(), removed), rules.queues.end());
  }
  if (absl::Status right = Check(rules); !right.ok()) return right;
  return rules;
}

}  // namespace

void Machine::On(const SetQueues& command, ApplyContext* ctx) {
  if (absl::Status right = Check(command.rules); !right.ok()) return ctx->Refuse(right);
  ReplaceQueueRules(command.rules, ctx);
}

void Machine::On(const ApplyQueues& command, ApplyContext* ctx) {
  absl::StatusOr<QueueRules> rules = Applied(queue_tree_.rules(), command);
  if (!rules.ok()) return ctx->Refuse(rules.status());
  ReplaceQueueRules(*std::move(rules), ctx);
}

// The new rules apply to every gang that waits; running gangs stay.
void Machine::ReplaceQueueRules(QueueRules rules, ApplyContext* ctx) {
  if (rules == queue_tree_.rules()) return;
  if (persist_queues_) WriteQueuesRecord(rules.queues, ctx);
  queues_.Set(std::move(rules));
  gangs_.ForEachGang([this](const Gang& gang) { queues_.SetPayers(gang); });  // before any check against usage
  planning_.WakeAll();
  gangs_.InvalidateEligibility();
  gangs_.ForEachGang([this](const Gang& gang) { gangs_.Touch(gang); });
}

}  // namespace muster
