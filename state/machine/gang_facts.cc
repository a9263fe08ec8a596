#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "state/base/check.h"
#include "state/machine/pod_facts.h"

namespace muster {

const Gang& GangFacts::Intern(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                              int64_t now_ms) {
  const auto [gang, fresh] = r_.gangs->Intern(name_space, name, created_ms, now_ms);
  if (!fresh) return *gang;
  if (const auto restored = r_.restored->ClaimGang(gang->key); restored.has_value())
    r_.gangs->Restore(*gang, *restored);
  return *gang;
}

void GangFacts::Redeclare(const Gang& gang) {
  r_.gangs->Redeclare(gang);
  OnRulesChanged(gang);
}

// P-7: acquires the classes of the gang's future members, and releases those of before.
void GangFacts::RetainFutureClasses(const Gang& gang) {
  const SubgroupTree& tree = gang.rules.tree;
  if (!tree.ahead && gang.future_classes.empty()) return;
  std::vector<ClassId> classes(static_cast<size_t>(tree.leaves), kNoClass);
  for (const Subgroup& node : tree.nodes) {
    if (!node.future_template.has_value()) continue;
    const absl::StatusOr<ClassId> cls = r_.cluster->AcquireClass(*node.future_template);
    MUSTER_CHECK(cls.ok());  // ParseSubgroups has checked the requests
    classes[static_cast<size_t>(node.leaf)] = *cls;
  }
  for (const ClassId before : r_.gangs->SetFutureClasses(gang, std::move(classes))) {
    if (before != kNoClass) r_.cluster->ReleaseClass(before);
  }
}

void GangFacts::OnRulesChanged(const Gang& gang) {
  RetainFutureClasses(gang);
  if (!r_.backlog->why(gang.id).none()) r_.planning->LeaveBucket(gang);
  r_.backlog->ClearReason(gang.id);
  // Its domains may have changed: pods that they refused are activated like all refused pods (P-4, K-7).
  for (const Pod* pod : gang.in(MemberState::kPending)) r_.activations->RemoveGuarded(*pod);
  r_.gangs->Touch(gang);
}

void GangFacts::Join(const Pod& pod, ApplyContext* ctx) {
  if (!pod.facts.gang.in_gang()) return;
  const Gang& gang = Intern(pod.facts.name_space, pod.facts.gang.name, pod.facts.created_ms, ctx->now_ms());
  r_.gangs->Join(pod, gang);
  r_.queues->Join(pod);
  if (r_.gangs->Adopt(pod)) OnRulesChanged(gang);
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(gang, true);
  r_.plan_lifecycle->OnMemberJoined(pod, ctx);
  r_.gangs->Touch(gang);
}

void GangFacts::Leave(const Pod& pod) {
  const Gang* gang = pod.gang;
  r_.gangs->Leave(pod);
  r_.queues->Leave(pod);
  if (gang == nullptr || gang->declared_by != pod.facts.uid || gang->children() == 0) return;
  if (!r_.gangs->TransferDeclaration(*gang)) Redeclare(*gang);
}

}  // namespace muster
