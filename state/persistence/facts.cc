#include "state/persistence/facts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "state/persistence/fact_fields.h"

namespace muster {
namespace {

constexpr char kNode[] = "node";
constexpr char kPod[] = "pod";
constexpr char kPodGroup[] = "podgroup";
constexpr char kCreated[] = "created";
constexpr char kAnnouncer[] = "announcer";
constexpr char kSubmission[] = "submission";

// The value of a message without any field: an empty value would delete the record.
constexpr char kEmptyMessage[] = "\x92\x7d\x00";  // an unknown field of length zero

template <typename Message>
void PutMessage(const char* kind, std::string key, const Message& message, ApplyContext* ctx) {
  std::string value(message.ByteSizeLong(), '\0');
  {
    google::protobuf::io::ArrayOutputStream bytes(value.data(), static_cast<int>(value.size()));
    google::protobuf::io::CodedOutputStream out(&bytes);
    out.SetSerializationDeterministic(true);  // maps sorted by key: equal facts have equal bytes
    message.SerializeWithCachedSizes(&out);
  }
  if (value.empty()) value.assign(kEmptyMessage, 3);
  ctx->PutRecord({.kind = kind, .key = std::move(key), .value = std::move(value)});
}

void Delete(const char* kind, std::string key, ApplyContext* ctx) {
  ctx->PutRecord({.kind = kind, .key = std::move(key)});
}

std::string ObjectKey(GangDialect dialect, absl::string_view name_space, absl::string_view name) {
  return absl::StrCat(static_cast<int>(dialect), "/", name_space, "/", name);
}

// Writes the message of the value.
template <typename Message, typename Value>
void PutValue(const char* kind, std::string key, const Value& value, ApplyContext* ctx) {
  Message message;
  Write(value, &message);
  PutMessage(kind, std::move(key), message, ctx);
}

}  // namespace

std::vector<std::string> SnapshotKinds() { return {kNode, kAnnouncer}; }

void WriteNodeRecord(const NodeDescription& node, ApplyContext* ctx) {
  PutValue<proto::NodeRecord>(kNode, node.name, node, ctx);
}

void DeleteNodeRecord(absl::string_view name, ApplyContext* ctx) { Delete(kNode, std::string(name), ctx); }

void WritePodRecord(const PodDescription& pod, bool submitted, ApplyContext* ctx) {
  proto::PodRecord record;
  Write(pod, &record);
  record.set_submitted(submitted);
  PutMessage(kPod, pod.uid, record, ctx);
}

void DeletePodRecord(absl::string_view uid, ApplyContext* ctx) { Delete(kPod, std::string(uid), ctx); }

void WriteObjectRecord(const GangObject& object, ApplyContext* ctx) {
  PutValue<proto::PodGroupRecord>(kPodGroup, ObjectKey(object.dialect, object.name_space, object.name), object, ctx);
}

void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, ApplyContext* ctx) {
  Delete(kPodGroup, ObjectKey(dialect, name_space, name), ctx);
}

void WriteCreatedRecord(const GangObject& object, ApplyContext* ctx) {
  PutValue<proto::PodGroupRecord>(kCreated, ObjectKey(object.dialect, object.name_space, object.name), object, ctx);
}

void DeleteCreatedRecord(absl::string_view name_space, absl::string_view name, ApplyContext* ctx) {
  Delete(kCreated, ObjectKey(GangDialect::kApi, name_space, name), ctx);
}

void WriteAnnouncerRecord(absl::string_view source, int64_t version, int64_t stale_since_ms, ApplyContext* ctx) {
  proto::AnnouncerRecord record;
  record.set_source(std::string(source));
  record.set_version(version);
  record.set_stale_since_ms(stale_since_ms);
  PutMessage(kAnnouncer, "", record, ctx);
}

void WriteSubmissionRecord(const DurableSubmission& submission, ApplyContext* ctx) {
  PutValue<proto::SubmissionRecord>(kSubmission, submission.id, submission, ctx);
}

void DeleteSubmissionRecord(absl::string_view id, ApplyContext* ctx) { Delete(kSubmission, std::string(id), ctx); }

absl::Status DurableFacts::Read(const Record& record, bool* known) {
  *known = true;
  if (record.kind == kNode) {
    NodeDescription& node = nodes.emplace_back();
    node.name = record.key;
    return ReadMessage<proto::NodeRecord>(record, [&](const auto& message) { muster::Read(message, &node); });
  }
  if (record.kind == kPod) {
    DurablePod& pod = pods.emplace_back();
    pod.facts.uid = record.key;
    return ReadMessage<proto::PodRecord>(record, [&](const auto& message) {
      muster::Read(message, &pod.facts);
      pod.submitted = message.submitted();
    });
  }
  if (record.kind == kPodGroup || record.kind == kCreated) {
    GangObject& object = (record.kind == kCreated ? created : objects).emplace_back();
    return ReadMessage<proto::PodGroupRecord>(record, [&](const auto& message) { muster::Read(message, &object); });
  }
  if (record.kind == kAnnouncer) {
    return ReadMessage<proto::AnnouncerRecord>(record, [&](const auto& message) {
      announcer = message.source();
      stale_since_ms = message.stale_since_ms();
      version = message.version();
    });
  }
  if (record.kind == kSubmission) {
    DurableSubmission& submission = submissions.emplace_back();
    submission.id = record.key;
    return ReadMessage<proto::SubmissionRecord>(record, [&](const auto& message) {
      muster::Read(message, &submission);
      submission.reply.gang = submission.gang;
      submission.reply.fingerprint = submission.fingerprint;
    });
  }
  *known = false;
  return absl::OkStatus();
}

}  // namespace muster
