// libFuzzer: every input of the extender is parsed or refused, without a crash.
#include <cstddef>
#include <cstdint>

#include "k8s-extender/webhook/extender_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view body(reinterpret_cast<const char*>(data), size);
  const auto args = muster::ParseExtenderArgs(body);
  if (args.ok()) {
    muster::FilterReply reply;
    reply.reason.text = args->pod_uid;
    for (const auto kind : {muster::FilterReply::Kind::kPass, muster::FilterReply::Kind::kRefuse}) {
      reply.kind = kind;
      const std::string answer = muster::FilterResultJson(reply, *args, body);
      static_cast<void>(answer);
    }
  }
  static_cast<void>(muster::ParseBindingArgs(body));
  const auto preemption = muster::ParsePreemptionArgs(body);
  if (preemption.ok()) static_cast<void>(muster::PreemptionResultJson({}, *preemption));
  return 0;
}
