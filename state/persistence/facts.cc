#include "state/persistence/facts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "state/persistence/declaration.h"
#include "state/persistence/template.h"

namespace muster {
namespace {

namespace proto = store::v1;

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

template <typename Map>
ResourceList AmountsOf(const Map& map) {
  return ResourceList(map.begin(), map.end());
}

// --- to messages ---

void Put(const Reason& from, proto::Reason* to) {
  to->set_code(static_cast<int>(from.code));
  to->set_text(from.text);
}

void Put(const GangMembership& from, proto::Membership* to) {
  to->set_name(from.name);
  to->set_dialect(static_cast<int>(from.dialect));
  if (from.key_dialect.has_value()) to->set_said_in(static_cast<int>(*from.key_dialect));
  to->set_declares(from.declares);
  PutDeclaration(from.declaration, to->mutable_declaration());
  if (!from.problem.none()) Put(from.problem, to->mutable_problem());
  for (const std::string& ignored : from.ignored) to->add_ignored(ignored);
  to->set_subgroup(from.subgroup);
  to->set_owner_uid(from.owner_uid);
}

// --- from messages ---

Reason Get(const proto::Reason& from) { return {As<ReasonCode>(from.code()), from.text()}; }

GangMembership Get(const proto::Membership& from) {
  GangMembership to;
  to.name = from.name();
  to.dialect = As<GangDialect>(from.dialect());
  if (from.has_said_in()) to.key_dialect = As<GangDialect>(from.said_in());
  to.declares = from.declares();
  to.declaration = GetDeclaration(from.declaration());
  if (from.has_problem()) to.problem = Get(from.problem());
  to.ignored.assign(from.ignored().begin(), from.ignored().end());
  to.subgroup = from.subgroup();
  to.owner_uid = from.owner_uid();
  return to;
}

NodeDescription Get(const proto::NodeRecord& from, const std::string& name) {
  NodeDescription to;
  to.name = name;
  to.labels = Labels(from.labels().begin(), from.labels().end());
  for (const auto& taint : from.taints()) {
    to.taints.push_back({taint.key(), taint.value(), As<TaintEffect>(taint.effect())});
  }
  to.unschedulable = from.unschedulable();
  to.allocatable = AmountsOf(from.allocatable());
  return to;
}

DurablePod Get(const proto::PodRecord& from, const std::string& uid) {
  DurablePod to;
  PodDescription& facts = to.facts;
  facts.uid = uid;
  facts.name_space = from.namespace_();
  facts.name = from.name();
  facts.created_ms = from.created_ms();
  facts.priority = from.priority();
  facts.scheduler_name = from.scheduler_name();
  facts.shape = GetTemplate(from.shape());
  facts.labels = PackLabels(Labels(from.labels().begin(), from.labels().end()));
  facts.gang = Get(from.gang());
  facts.node_name = from.node_name();
  facts.nominated_node = from.nominated_node();
  facts.phase = As<PodPhase>(from.phase());
  facts.deleting = from.deleting();
  facts.our_gate = from.our_gate();
  facts.other_gates = from.other_gates();
  facts.timed_out_mark = from.timed_out_mark();
  facts.unschedulable = from.unschedulable();
  facts.activation_mark = from.called();
  facts.permanent = from.permanent();
  facts.invalid = from.invalid();
  to.submitted = from.submitted();
  return to;
}

DurableSubmission Get(const proto::SubmissionRecord& from, const std::string& id) {
  DurableSubmission to{id, from.gang(), from.fingerprint(), from.ttl_ms(), from.ended(), {}, from.sequence()};
  to.reply.state = As<SubmissionReply::State>(from.state());
  to.reply.gang = from.gang();
  to.reply.plan = from.plan();
  to.reply.fingerprint = from.fingerprint();
  for (const auto& place : from.places()) to.reply.places.push_back({place.uid(), place.name(), place.node()});
  if (from.has_reason()) to.reply.reason = Get(from.reason());
  return to;
}

}  // namespace

std::vector<std::string> SnapshotKinds() { return {kNode, kAnnouncer}; }

void WriteNodeRecord(const NodeDescription& node, ApplyContext* ctx) {
  proto::NodeRecord record;
  for (const auto& [key, value] : node.labels) (*record.mutable_labels())[key] = value;
  for (const Taint& taint : node.taints) {
    proto::Taint& out = *record.add_taints();
    out.set_key(taint.key);
    out.set_value(taint.value);
    out.set_effect(static_cast<int>(taint.effect));
  }
  record.set_unschedulable(node.unschedulable);
  for (const auto& [name, amount] : node.allocatable) (*record.mutable_allocatable())[name] = amount;
  PutMessage(kNode, node.name, record, ctx);
}

void DeleteNodeRecord(absl::string_view name, ApplyContext* ctx) { Delete(kNode, std::string(name), ctx); }

void WritePodRecord(const PodDescription& pod, bool submitted, ApplyContext* ctx) {
  proto::PodRecord record;
  record.set_namespace_(pod.name_space);
  record.set_name(pod.name);
  record.set_created_ms(pod.created_ms);
  record.set_priority(pod.priority);
  record.set_scheduler_name(pod.scheduler_name);
  PutTemplate(pod.shape, record.mutable_shape());
  for (auto& [key, value] : UnpackLabels(pod.labels)) (*record.mutable_labels())[key] = value;
  Put(pod.gang, record.mutable_gang());
  record.set_node_name(pod.node_name);
  record.set_nominated_node(pod.nominated_node);
  record.set_phase(static_cast<int>(pod.phase));
  record.set_deleting(pod.deleting);
  record.set_our_gate(pod.our_gate);
  record.set_other_gates(pod.other_gates);
  record.set_timed_out_mark(pod.timed_out_mark);
  record.set_unschedulable(pod.unschedulable);
  record.set_called(pod.activation_mark);
  record.set_permanent(pod.permanent);
  record.set_invalid(pod.invalid);
  record.set_submitted(submitted);
  PutMessage(kPod, pod.uid, record, ctx);
}

void DeletePodRecord(absl::string_view uid, ApplyContext* ctx) { Delete(kPod, std::string(uid), ctx); }

namespace {

proto::PodGroupRecord Written(const GangObject& object) {
  proto::PodGroupRecord record;
  record.set_dialect(static_cast<int>(object.dialect));
  record.set_namespace_(object.name_space);
  record.set_name(object.name);
  record.set_uid(object.uid);
  record.set_created_ms(object.created_ms);
  PutDeclaration(object.declaration, record.mutable_declaration());
  return record;
}

}  // namespace

void WriteObjectRecord(const GangObject& object, ApplyContext* ctx) {
  PutMessage(kPodGroup, ObjectKey(object.dialect, object.name_space, object.name), Written(object), ctx);
}

void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, ApplyContext* ctx) {
  Delete(kPodGroup, ObjectKey(dialect, name_space, name), ctx);
}

void WriteCreatedRecord(const GangObject& object, ApplyContext* ctx) {
  PutMessage(kCreated, ObjectKey(object.dialect, object.name_space, object.name), Written(object), ctx);
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
  proto::SubmissionRecord record;
  record.set_gang(submission.gang);
  record.set_fingerprint(submission.fingerprint);
  record.set_ttl_ms(submission.ttl_ms);
  record.set_ended(submission.ended);
  record.set_sequence(submission.sequence);
  if (submission.ended) {
    record.set_state(static_cast<int>(submission.reply.state));
    record.set_plan(submission.reply.plan);
    for (const SubmissionReply::Place& place : submission.reply.places) {
      proto::SubmissionRecord::Place& out = *record.add_places();
      out.set_uid(place.uid);
      out.set_name(place.name);
      out.set_node(place.node);
    }
    if (!submission.reply.reason.none()) Put(submission.reply.reason, record.mutable_reason());
  }
  PutMessage(kSubmission, submission.id, record, ctx);
}

void DeleteSubmissionRecord(absl::string_view id, ApplyContext* ctx) { Delete(kSubmission, std::string(id), ctx); }

absl::Status DurableFacts::Read(const Record& record, bool* known) {
  *known = true;
  const auto parse = [&](auto message, auto take) -> absl::Status {
    if (!message.ParseFromString(record.value)) {
      return absl::InvalidArgumentError(absl::StrCat("not a readable ", message.GetDescriptor()->name()));
    }
    take(message);
    return absl::OkStatus();
  };
  if (record.kind == kNode) {
    return parse(proto::NodeRecord(), [&](const auto& node) { nodes.push_back(Get(node, record.key)); });
  }
  if (record.kind == kPod) {
    return parse(proto::PodRecord(), [&](const auto& pod) { pods.push_back(Get(pod, record.key)); });
  }
  if (record.kind == kPodGroup || record.kind == kCreated) {
    return parse(proto::PodGroupRecord(), [&](const auto& group) {
      (record.kind == kCreated ? created : objects)
          .push_back({As<GangDialect>(group.dialect()), group.namespace_(), group.name(), group.uid(),
                      group.created_ms(), GetDeclaration(group.declaration())});
    });
  }
  if (record.kind == kAnnouncer) {
    return parse(proto::AnnouncerRecord(), [&](const auto& parsed) {
      announcer = parsed.source();
      stale_since_ms = parsed.stale_since_ms();
      version = parsed.version();
    });
  }
  if (record.kind == kSubmission) {
    return parse(proto::SubmissionRecord(),
                 [&](const auto& submission) { submissions.push_back(Get(submission, record.key)); });
  }
  *known = false;
  return absl::OkStatus();
}

}  // namespace muster
