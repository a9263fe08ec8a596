// The place of a gang in its queue, and the gangs before it (SPEC G-9, S-5).
#include <algorithm>
#include <utility>

#include "state/views/reader.h"

namespace muster {
namespace {

// The largest number of gangs in QueuePositionView::first.
constexpr size_t kMaxListed = 10;

// The queued gang that represents `gang`: the gang itself or the leader of its group; nullptr: not queued.
const Gang* FindQueued(const Gang& gang, const Eligibility& eligibility, const Backlog& backlog) {
  if (backlog.queued(gang.id) != nullptr) return &gang;
  if (gang.rules.group.empty()) return nullptr;
  for (const Gang* other : eligibility.Unplaced(gang)) {
    if (backlog.queued(other->id) != nullptr) return other;
  }
  return nullptr;
}

}  // namespace

bool QueuesReader::ViewPosition(const Gang* gang, QueueId queue, int32_t limit, QueuePositionCursor* read,
                                QueuePositionView* out) const {
  const Gang* asked = gang == nullptr ? nullptr : FindQueued(*gang, *r_.eligibility, *r_.backlog);
  if (gang != nullptr && asked == nullptr) return true;
  const QueueTree& tree = r_.queues->tree();
  const auto counts = [&](GangId id) {
    // A gang that can never run delays no other gang.
    if (id != (asked == nullptr ? -1 : asked->id) && r_.backlog->why(id).code == ReasonCode::kQueueRejected)
      return false;
    QueueId at = r_.backlog->lane(id) - 1;  // lane 0 has the gangs without a queue
    if (asked != nullptr) return at + 1 == r_.backlog->lane(asked->id);
    while (at != queue && at != kNoQueue) at = tree.at(at).parent;
    return at == queue;
  };
  const GangId end = std::min(r_.gangs->gang_limit(), read->next + limit);
  for (; read->next < end; ++read->next) {
    const QueueKey* key = r_.backlog->queued(read->next);
    if (key == nullptr || !counts(read->next)) continue;
    ++read->all;
    if (asked != nullptr && !(*key < *r_.backlog->queued(asked->id))) continue;
    ++read->before;
    if (read->first.size() == kMaxListed && read->first.back().first < *key) continue;
    std::pair<QueueKey, GangId> entry(*key, read->next);
    read->first.insert(std::upper_bound(read->first.begin(), read->first.end(), entry), std::move(entry));
    if (read->first.size() > kMaxListed) read->first.pop_back();
  }
  if (read->next < r_.gangs->gang_limit()) return false;
  const auto queue_of = [&](GangId id) {
    const QueueId at = r_.backlog->lane(id) - 1;
    return at == kNoQueue ? std::string() : tree.at(at).spec.name;
  };
  if (asked != nullptr) out->queue = queue_of(asked->id);
  out->place = asked == nullptr ? 0 : read->before + 1;
  out->places = read->all;
  for (const auto& [key, id] : read->first) {
    const Gang* each = r_.gangs->GangAt(id);
    if (each == nullptr) continue;
    out->first.push_back(
        {each->name_space, each->name, queue_of(id), r_.reasons->WithBlockerName(*each, each->reason)});
  }
  return true;
}

}  // namespace muster
