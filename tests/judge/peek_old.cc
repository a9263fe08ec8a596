#include "absl/strings/str_cat.h"
#include "tests/judge/peek.h"

namespace muster {

PodPeek Peek(const Machine& machine, const std::string& uid) {
  PodPeek out;
  const Pod* pod = machine.FindPod(uid);
  if (pod == nullptr) return out;
  out.known = true;
  out.submitted = pod->submitted;
  out.state = pod->state;
  out.facts = pod->facts;
  out.permitted_by_verbs = pod->state == MemberState::kCommitted && pod->binding.phase == BindingPhase::kNone;
  if (pod->charged_node != kNoNode) out.charged_node = machine.cluster().node(pod->charged_node).facts.name;
  return out;
}

std::vector<std::string> SubmittedUids(const Machine& machine) {
  std::vector<std::string> uids;
  machine.ForEachGang([&](const Gang& gang) {
    if (gang.submission == nullptr) return;
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) {
        if (pod->submitted) uids.push_back(pod->facts.uid);
      }
    }
  });
  return uids;
}

std::string ChangedViews(Machine* machine) {
  std::vector<std::string> gangs;
  std::vector<std::string> nodes;
  machine->TakeChanged(&gangs, &nodes);
  std::string out;
  for (const std::string& key : gangs) {
    const Gang* gang = machine->FindGang(key);
    absl::StrAppend(&out,
                    gang == nullptr ? absl::StrCat("gone ", key, "\n") : WriteView(machine->ViewGang(*gang, true)));
  }
  for (const std::string& name : nodes) {
    const NodeId id = machine->cluster().FindNode(name);
    absl::StrAppend(&out, id == kNoNode ? absl::StrCat("gone ", name, "\n") : WriteView(machine->ViewNode(id)));
  }
  return out;
}

std::string AllViews(const Machine& machine) {
  std::string out;
  machine.ForEachGang([&](const Gang& gang) { out += WriteView(machine.ViewGang(gang, true)); });
  return out;
}

}  // namespace muster
