// Declarations of a gang, by its pods and by PodGroups, and the rules that result (SPEC D-8, D-9).
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/gangs/gangs.h"

namespace muster {

void Gangs::Warn(Gang* gang, std::string text) {
  constexpr size_t kMaxWarnings = 16;
  if (text.empty() || gang->warnings.size() >= kMaxWarnings || absl::c_linear_search(gang->warnings, text)) return;
  gang->warnings.push_back(std::move(text));
}

bool Gangs::PutObject(const Gang& gang, const GangObject& object) {
  Gang& changed = MutateTracked(gang);
  const auto known = gang.objects.find(object.dialect);
  const bool unchanged = known != gang.objects.end() && known->second.declaration == object.declaration &&
                         known->second.created_ms == object.created_ms;
  changed.objects[object.dialect] = object;
  if (unchanged) return false;  // only its status changed, mostly by Muster itself
  changed.created_ms = object.created_ms;
  return true;
}

bool Gangs::DropObject(const Gang& gang, GangDialect dialect) {
  Gang& changed = MutateTracked(gang);
  if (changed.objects.erase(dialect) == 0) return false;
  // The age comes from the remaining object, else from the first member; kNever: from the next member or object.
  const int64_t of_member = gang.children() == 0 ? kNever : FirstMember(gang).facts.created_ms;
  changed.created_ms = gang.object() == nullptr ? of_member : gang.object()->created_ms;
  return true;
}

bool Gangs::Adopt(const Pod& pod) {
  const GangMembership& membership = pod.facts.gang;
  if (!membership.declares) return false;
  Gang& gang = MutateTracked(*pod.gang);
  const GangDeclaration& declared = *membership.declaration;
  const std::string name = absl::StrCat("pod ", pod.facts.name);
  for (const std::string& warning : declared.warnings) Warn(&gang, absl::StrCat(name, ": ", warning));
  if (!declared.unreadable_minimum.empty()) {
    const std::string text = absl::StrCat(name, ": ", declared.unreadable_minimum);
    if (gang.unreadable.empty()) gang.unreadable = text;
    Warn(&gang, text);
    return false;
  }
  // A declaration with a minimum overrides one without (D-8).
  const bool first = !gang.annotations.has_value();
  if (first || (!(*gang.annotations)->min_member.has_value() && declared.min_member.has_value())) {
    gang.annotations = membership.declaration;
    gang.declared_by = pod.facts.uid;
    gang.declared_as = membership.declared_in();
    ReadRules(gang);
    return true;
  }
  if (membership.declaration == *gang.annotations) {
    MutateTracked(pod).facts.gang.declaration = *gang.annotations;  // equal declarations share one object
    return false;
  }
  const std::string contradiction = DescribeContradiction(*gang.annotations, declared);
  if (!contradiction.empty())
    Warn(&gang, absl::StrCat(name, " contradicts an earlier pod, which takes precedence: ", contradiction));
  return false;
}

bool Gangs::TransferDeclaration(const Gang& gang) {
  for (const MemberSet& members : gang.members) {
    const auto source = absl::c_find_if(members, [&](const Pod* pod) {
      const GangMembership& membership = pod->facts.gang;
      return membership.declares && membership.declaration == *gang.annotations &&
             membership.declared_in() == gang.declared_as;
    });
    if (source == members.end()) continue;
    MutateTracked(gang).declared_by = (*source)->facts.uid;
    return true;
  }
  return false;
}

// The pod whose declaration was in force comes first, then the others in order of creation (D-9).
void Gangs::Redeclare(const Gang& declared) {
  Gang& gang = MutateTracked(declared);
  gang.annotations.reset();
  gang.declared_as = GangDialect::kKoordinator;  // as of a gang that was never declared
  gang.unreadable.clear();
  gang.warnings.clear();
  for (const auto& [dialect, object] : gang.objects) {
    for (const std::string& warning : object.declaration->warnings) Warn(&gang, absl::StrCat("PodGroup: ", warning));
  }
  std::vector<const Pod*> members = gang.AllMembers();
  const std::string first = std::exchange(gang.declared_by, "");
  const auto key = [&](const Pod* pod) {
    return std::make_tuple(pod->facts.uid != first, pod->facts.created_ms, absl::string_view(pod->facts.uid));
  };
  absl::c_sort(members, [&](const Pod* a, const Pod* b) { return key(a) < key(b); });
  for (const Pod* pod : members) Adopt(*pod);
  ReadRules(gang);
}

void Gangs::ReadRules(const Gang& read) {
  Gang& gang = MutateTracked(read);
  const GangDeclaration* object = gang.object() == nullptr ? nullptr : &*gang.object()->declaration;
  const GangDeclaration* annotations = gang.annotations.has_value() ? &**gang.annotations : nullptr;
  const bool by_object = object != nullptr && (annotations == nullptr || !annotations->min_member.has_value());
  const GangDialect dialect = by_object ? gang.object()->dialect : gang.declared_as;
  GangRules rules = ResolveRules(annotations, object, dialect, settings_.defaults);
  SubgroupTree tree = std::exchange(rules.tree, std::exchange(gang.rules.tree, {}));
  gang.rules = std::move(rules);  // still with the old tree, which the counts of its members refer to
  SetTree(std::move(tree), &gang);
  if (annotations != nullptr && object != nullptr) {
    const std::string differs = DescribeContradiction(*object, *annotations);
    if (!differs.empty()) Warn(&gang, absl::StrCat("the pods' annotations override the PodGroup: ", differs));
  }
  if (gang.rules.group == std::vector<std::string>{gang.key}) gang.rules.group.clear();
  groups_.Set(gang.id, gang.key, gang.rules.group);
}

}  // namespace muster
