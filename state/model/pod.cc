#include "state/model/pod.h"

#include "absl/algorithm/container.h"
#include "state/base/archive.h"

namespace muster {
namespace {

constexpr size_t kTypicalKeyBytes = 160;

void WriteRequests(const ResourceList& requests, bool amounts, archive::Writer* writer) {
  const auto asked = absl::c_count_if(requests, [](const auto& request) { return request.second != 0; });
  writer->Number(static_cast<uint64_t>(asked));
  for (const auto& [name, amount] : requests) {
    if (amount == 0) continue;
    writer->Bytes(name);
    if (amounts) archive::Pass(*writer, amount);
  }
}

void WriteConstraints(const PodTemplate& shape, archive::Writer* writer) {
  archive::Pass(*writer, shape.node_selector);
  archive::Pass(*writer, shape.has_affinity);
  archive::Pass(*writer, shape.affinity);
  archive::Pass(*writer, shape.tolerations);
}

}  // namespace

std::string PodTemplate::Family() const {
  std::string out;
  out.reserve(kTypicalKeyBytes);
  archive::Writer writer(&out);
  WriteRequests(requests, /*amounts=*/false, &writer);
  WriteConstraints(*this, &writer);
  return out;
}

std::string PodTemplate::Key() const {
  std::string out;
  out.reserve(kTypicalKeyBytes);
  archive::Writer writer(&out);
  WriteRequests(requests, /*amounts=*/true, &writer);
  WriteConstraints(*this, &writer);
  archive::Pass(writer, host_ports);
  archive::Pass(writer, pod_affinity);
  archive::Pass(writer, preferences);
  return out;
}

}  // namespace muster
