// libFuzzer: any JSON as Pod, Node and PodGroup is parsed, repaired or refused; the machine survives the result.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "k8s-extender/dialects/dialects.h"
#include "state/machine/machine.h"
#include "tests/verify/invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json = muster::ParseJson(absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!json.ok()) return 0;
  muster::Machine machine{muster::MachineSettings()};
  const auto apply = [&](const muster::Command& command) {
    muster::Outcome outcome;
    machine.Apply(command, 1000, &outcome);
    if (!CheckInvariants(machine).ok()) std::abort();
  };
  const auto node = muster::ParseNode(*json);
  if (node.ok()) apply(muster::UpsertNode{*node});
  for (const auto dialect :
       {muster::GangDialect::kPodGroupSigs, muster::GangDialect::kPodGroupX, muster::GangDialect::kNative}) {
    const auto group = muster::ParsePodGroup(*json, dialect);
    if (group.ok()) apply(muster::UpsertGangObject{*group});
  }
  const auto pod = muster::ParsePod(*json);
  if (pod.ok()) apply(muster::UpsertPod{*pod});
  apply(muster::FactsRead{});
  apply(muster::PlanRound{});
  return 0;
}
