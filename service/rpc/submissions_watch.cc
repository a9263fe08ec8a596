#include <grpcpp/alarm.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "service/rpc/mapping.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/stream.h"
#include "service/rpc/submission_mapping.h"
#include "service/rpc/times.h"

namespace muster {
namespace {

v1::Submission::State StateOf(SubmissionReply::State state) {
  switch (state) {
    case SubmissionReply::State::kWaiting:
      return v1::Submission::STATE_WAITING;
    case SubmissionReply::State::kPlanned:
      return v1::Submission::STATE_PLANNED;
    case SubmissionReply::State::kConfirmed:
      return v1::Submission::STATE_CONFIRMED;
    case SubmissionReply::State::kAbandoned:
      return v1::Submission::STATE_ABANDONED;
    case SubmissionReply::State::kExpired:
      return v1::Submission::STATE_EXPIRED;
  }
  return v1::Submission::STATE_UNSPECIFIED;
}

constexpr size_t kAtOnce = 128;                   // submissions read in one step
constexpr size_t kMaxDirty = 16'384;              // gangs whose changes wait to be read
constexpr std::chrono::milliseconds kPause(100);  // between two reads

// Each read takes the submissions that ended since the last one, in the order of their ends, and those of gangs that
// changed. While the client does not read, changed gangs are collected; beyond kMaxDirty the stream starts over.
class SubmissionsReactor final : public StreamReactor<v1::SubmissionEvent> {
 public:
  SubmissionsReactor(RpcGate* gate, std::string name_space) : StreamReactor(gate), wanted_(std::move(name_space)) {}

 protected:
  void OnAdmitted() override {
    listener_ = gate()->engine().AddListener([handle = handle()](const ViewChange& change) {
      handle->With([&change](StreamReactor* stream) { static_cast<SubmissionsReactor*>(stream)->Note(change); });
    });
    ReadSoon();
  }
  void OnStreamEnd() override {
    if (const int listener = listener_.exchange(0); listener != 0) gate()->engine().RemoveListener(listener);
  }
  void OnWritten() override {
    if (waiting() > 0) return;
    handle()->With([](StreamReactor* stream) { static_cast<SubmissionsReactor*>(stream)->ReadSoon(); });
  }

 private:
  struct Batch {
    uint64_t generation = 0;
    std::vector<std::pair<std::string, SubmissionReply>> found;
    std::string last_id;        // of the first list
    int64_t last_sequence = 0;  // of the last submission that ended
    bool more = false;          // the first list, or the ended ones, go on
  };

  // REQUIRES: the handle's lock, for all of these.
  void Note(const ViewChange& change) {
    for (const auto& [key, view] : *change.gangs) {
      if (IsIn(wanted_, key)) dirty_.insert(key);
    }
    if (dirty_.size() > kMaxDirty) StartOver();
    if (!dirty_.empty() || !begun_) ReadSoon();
  }
  void StartOver() {
    ++generation_;
    begun_ = listed_ = more_ended_ = false;
    resync_ = true;
    last_id_.clear();
    dirty_.clear();
    sent_.clear();
  }
  void ReadSoon() {
    if (reading_ || waiting() > 0) return;
    if (begun_ && listed_ && dirty_.empty() && !more_ended_) return;
    reading_ = true;
    alarm_ = std::make_unique<grpc::Alarm>();
    const std::chrono::milliseconds pause = begun_ && !listed_ ? std::chrono::milliseconds(0) : kPause;
    alarm_->Set(std::chrono::system_clock::now() + pause, [handle = handle()](bool due) {
      if (due) handle->With([](StreamReactor* stream) { static_cast<SubmissionsReactor*>(stream)->Read(); });
    });
  }
  void Read() {
    const auto batch = std::make_shared<Batch>();
    batch->generation = generation_;
    batch->last_id = last_id_;
    batch->last_sequence = last_sequence_;
    std::vector<std::string> gangs;
    while (listed_ && !dirty_.empty() && gangs.size() < kAtOnce)
      gangs.push_back(dirty_.extract(dirty_.begin()).value());
    const auto step = [batch, gangs, begun = begun_, listed = listed_](const Machine& machine) {
      const Reader& reader = machine.reader();
      if (!begun) batch->last_sequence = reader.submissions.all().last_sequence();
      const std::vector<std::string> ended = reader.submissions.all().EndedAfter(batch->last_sequence, kAtOnce);
      for (const std::string& id : ended) {
        const Submissions::Ended& each = *reader.submissions.all().FindEnded(id);
        batch->last_sequence = each.sequence;
        batch->found.emplace_back(id, each.reply);
      }
      batch->more = ended.size() == kAtOnce;
      std::vector<std::string> open;
      if (!listed) {
        open = reader.submissions.all().IdsAfter(batch->last_id, kAtOnce, /*ended=*/false);
        if (!open.empty()) batch->last_id = open.back();
        batch->more = open.size() == kAtOnce;
      }
      for (const std::string& key : gangs) {
        const Gang* gang = reader.FindGang(key);
        const Submission* submission = gang == nullptr ? nullptr : reader.submissions.all().Of(*gang);
        if (submission != nullptr) open.push_back(submission->id);
      }
      for (const std::string& id : open) batch->found.emplace_back(id, *reader.submissions.View(id));
      return true;
    };
    gate()->engine().ReadDurable(step, [handle = handle(), batch](const absl::Status& read) {
      handle->With([&](StreamReactor* stream) { static_cast<SubmissionsReactor*>(stream)->OnRead(read, *batch); });
    });
  }
  void OnRead(const absl::Status& read, const Batch& batch) {
    reading_ = false;
    if (!read.ok() && !absl::IsResourceExhausted(read)) return Close(ToGrpc(read));
    if (!read.ok()) StartOver();  // the mailbox is full: the gangs that were to be read are lost
    if (batch.generation != generation_) return ReadSoon();
    if (std::exchange(resync_, false)) {
      v1::SubmissionEvent event;
      event.set_resync(true);
      Send(std::move(event));
    }
    begun_ = true;
    last_sequence_ = batch.last_sequence;
    for (const auto& [id, reply] : batch.found) SendIfChanged(id, reply);
    if (listed_) {
      more_ended_ = batch.more;
    } else {
      last_id_ = batch.last_id;
      listed_ = !batch.more;
      if (listed_) {
        v1::SubmissionEvent event;
        event.set_synced(true);
        Send(std::move(event));
      }
    }
    ReadSoon();
  }
  void SendIfChanged(const std::string& id, const SubmissionReply& reply) {
    if (!IsIn(wanted_, reply.gang)) return;
    v1::SubmissionEvent event;
    *event.mutable_upserted() = ToMessage(id, reply);
    // While a gang waits, each query of its caller moves the time: that is not a change.
    if (reply.state == SubmissionReply::State::kWaiting) event.mutable_upserted()->clear_expire_time();
    const uint64_t fingerprint = Fingerprint(event);
    const bool over =
        reply.state != SubmissionReply::State::kWaiting && reply.state != SubmissionReply::State::kPlanned;
    const auto known = sent_.find(id);
    if (known != sent_.end() && known->second == fingerprint) return;
    if (over) {
      sent_.erase(id);
    } else {
      sent_[id] = fingerprint;
    }
    Send(std::move(event));
  }

  const std::string wanted_;
  bool begun_ = false;       // last_sequence_ is known
  bool listed_ = false;      // everything that existed was sent
  bool more_ended_ = false;  // submissions that ended wait to be read
  bool reading_ = false;     // a read is under way, or will be
  bool resync_ = false;      // changes were lost, and the client does not know yet
  uint64_t generation_ = 0;  // increases with each start
  std::string last_id_;      // position of the first list
  int64_t last_sequence_ = 0;
  absl::flat_hash_set<std::string> dirty_;           // gangs that changed
  absl::flat_hash_map<std::string, uint64_t> sent_;  // of submissions that have not ended: what was sent last
  std::atomic<int> listener_{0};
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace

v1::Submission ToMessage(const std::string& id, const SubmissionReply& reply) {
  v1::Submission out;
  out.set_id(id);
  out.set_gang(reply.gang);
  out.set_state(StateOf(reply.state));
  out.set_plan(reply.plan);
  for (const SubmissionReply::Place& place : reply.places) {
    v1::Placement* placement = out.add_placements();
    placement->set_pod_uid(place.uid);
    placement->set_pod_name(place.name);
    placement->set_node(place.node);
  }
  if (reply.expires_ms > 0) *out.mutable_expire_time() = TimestampOfMs(reply.expires_ms);
  if (!reply.reason.none()) FillReason(reply.reason, out.mutable_reason());
  return out;
}

bool IsIn(absl::string_view name_space, absl::string_view gang) {
  return name_space.empty() || (absl::ConsumePrefix(&gang, name_space) && absl::StartsWith(gang, "/"));
}

grpc::ServerWriteReactor<v1::SubmissionEvent>* BeginSubmissionsWatch(RpcGate* gate,
                                                                     grpc::CallbackServerContext* context,
                                                                     const std::string& name_space) {
  auto* stream = new SubmissionsReactor(gate, name_space);
  stream->Begin(context, Role::kReadOnly);
  return stream;
}

}  // namespace muster
