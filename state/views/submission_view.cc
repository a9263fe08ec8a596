// The state of a submission, as its caller sees it (SPEC S-1).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "state/views/reader.h"

namespace muster {

SubmissionReply ViewSubmission(const SubmissionViewRooms& rooms, const Gang& gang, int64_t now_ms) {
  const Submission& submission = *rooms.submissions->Of(gang);
  const Plan* plan = rooms.plans->Of(gang);
  SubmissionReply reply;
  reply.gang = gang.key;
  reply.expires_ms = submission.expires_ms;
  if (plan == nullptr) {
    reply.reason = rooms.reasons->WithBlockerName(gang, rooms.reasons->Of(gang, now_ms));
    return reply;
  }
  reply.state = SubmissionReply::State::kPlanned;
  reply.plan = plan->id;
  for (const Slot& slot : plan->slots) {
    reply.places.push_back({slot.pod->facts.uid, slot.pod->facts.name, rooms.cluster->node(slot.node).facts.name});
  }
  reply.reason = {ReasonCode::kPlanned, "room is reserved; confirm the plan"};
  const MemberSet& pending = gang.in(MemberState::kPending);
  const auto more = std::count_if(pending.begin(), pending.end(), [&rooms](const Pod* pod) {
    return pod->submitted && rooms.plans->SlotIndex(*pod) < 0;
  });
  if (more > 0)
    absl::StrAppend(&reply.reason.text, "; ", more, " more, beyond the minimum, are scheduled with Filter and Permit");
  if (!submission.confirmed) return reply;
  for (const Gang* other : rooms.plans->PeersOf(gang)) {
    if (const Submission* its = rooms.submissions->Of(*other); its != nullptr && its->confirmed) continue;
    reply.reason.text = absl::StrCat("confirmed; gang ", other->key, " of its group is not confirmed yet");
    break;
  }
  return reply;
}

std::optional<SubmissionReply> SubmissionReader::View(const std::string& id) const {
  if (const SubmissionReply* ended = r_.submissions->FindFinished(id); ended != nullptr) return *ended;
  const Gang* gang = r_.submissions->Find(id);
  if (gang == nullptr) return std::nullopt;
  return ViewSubmission(r_, *gang, *now_ms_);
}

}  // namespace muster
