// libFuzzer: any protobuf message of the gRPC server is parsed or refused by its fields; the machine survives parsed
// messages.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "muster/v1/decision.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/placement.pb.h"
#include "service/rpc/reading.h"
#include "state/machine/machine.h"
#include "tests/support/facts.h"
#include "tests/verify/invariants.h"

namespace {

class Fuzzed {
 public:
  Fuzzed() : machine_(muster::MachineSettings()) {
    Apply(muster::UpsertNode{muster::NodeWith("n", {{"cpu", 8'000}, {"pods", 20}})});
    Apply(muster::FactsRead{});
  }

  void Read(absl::string_view bytes) {
    const auto kind = static_cast<uint8_t>(bytes[0]);
    const std::string message(bytes.substr(1));
    if (kind % 4 == 0) ReadGang(message);
    if (kind % 4 == 1) ReadUpdate(message);
    if (kind % 4 == 2) ReadSubmission(message);
    if (kind % 4 == 3) ReadVerbs(message);
  }

 private:
  void Apply(const muster::Command& command) {
    muster::Outcome outcome;
    machine_.Apply(command, now_ms_ += 10, &outcome);
    if (!CheckInvariants(machine_).ok()) std::abort();
  }
  void ReadGang(const std::string& bytes) {
    muster::v1::CreateGangRequest request;
    if (!request.ParseFromString(bytes)) return;
    muster::Violations violations;
    muster::UpsertGangObject upsert;
    upsert.object.dialect = muster::GangDialect::kApi;
    muster::ReadGangName(request.gang(), "gang", &violations, &upsert.object.name_space, &upsert.object.name);
    muster::ReadDeclaration(request.gang(), "gang", &violations, &upsert.object.declaration.Mutable());
    if (violations.none()) {
      Apply(upsert);
    } else if (violations.ToStatus().ok()) {
      std::abort();
    }
  }
  void ReadUpdate(const std::string& bytes) {
    muster::v1::UpdateFactsRequest request;
    if (!request.ParseFromString(bytes)) return;
    muster::Violations violations;
    muster::UpdateFacts update;
    update.facts_version = {request.source(), request.version()};
    for (const auto& node : request.nodes()) muster::ReadNode(node, "nodes", &violations, &update.nodes.emplace_back());
    for (const auto& pod : request.pods()) muster::ReadPod(pod, "pods", 1, &violations, &update.pods.emplace_back());
    update.removed_nodes.assign(request.removed_nodes().begin(), request.removed_nodes().end());
    update.removed_pods.assign(request.removed_pods().begin(), request.removed_pods().end());
    if (!violations.none()) return;
    Apply(update);
    Apply(muster::PlanRound{});
    Apply(muster::ReplaceFacts{{request.source(), 1}, update.nodes, update.pods});
    Apply(muster::PlanRound{});
  }
  void ReadSubmission(const std::string& bytes) {
    muster::v1::SubmitGangRequest request;
    if (!request.ParseFromString(bytes)) return;
    for (auto& set : *request.mutable_members())
      set.set_count(set.count() % 64);  // the reader limits sizes; tested there
    muster::Violations violations;
    muster::SubmitGang submit;
    submit.id = "s";
    submit.ttl_ms = 1'000;
    muster::ReadGangName(request.gang(), "gang", &violations, &submit.name_space, &submit.name);
    muster::ReadDeclaration(request.gang(), "gang", &violations, &submit.declaration.Mutable());
    muster::ReadMembers(request, "", "s", 1, &violations, &submit);
    if (!violations.none()) return;
    Apply(submit);
    Apply(muster::ConfirmGang{"s", 1});
    Apply(muster::AbandonGang{"s"});
    now_ms_ += 2'000;
    Apply(muster::Tick{});
  }
  void ReadVerbs(const std::string& bytes) {
    muster::v1::PermitRequest request;
    if (!request.ParseFromString(bytes)) return;
    Apply(muster::PreFilter{request.pod_uid()});
    Apply(muster::FindNodes{request.pod_uid(), {request.node()}});
    Apply(muster::Permit{request.pod_uid(), request.node(), 1, request.bind_timeout().seconds() & 0xffffff});
    Apply(muster::PostBind{request.pod_uid(), request.node()});
  }

  muster::Machine machine_;
  int64_t now_ms_ = 1'000;
};

}  // namespace

// Several messages, each preceded by its length, are sent to one machine.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  Fuzzed fuzzed;
  for (int i = 0; i < 8 && rest.size() > 2; ++i) {
    const size_t length = std::min<size_t>(static_cast<uint8_t>(rest[0]) * 2 + 1, rest.size() - 1);
    fuzzed.Read(rest.substr(1, length));
    rest.remove_prefix(1 + length);
  }
  return 0;
}
