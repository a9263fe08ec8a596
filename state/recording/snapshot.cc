#include "state/recording/snapshot.h"

#include "state/recording/archive.h"

namespace muster::recording {
namespace {

// Pods are named by their ids; gangs are named by nobody but themselves.
class StateWriter : public Writer {
 public:
  using Writer::Writer;
  void Special(const Pod* const& pod) { Number(pod == nullptr ? 0 : static_cast<uint64_t>(pod->id) + 1); }
};

class StateReader : public Reader {
 public:
  StateReader(absl::string_view bytes, const Machine* machine) : Reader(bytes), machine_(machine) {}
  void Special(const Pod*& pod) {
    const uint64_t id = Number();
    pod = nullptr;
    if (id == 0) return;
    if (id <= static_cast<uint64_t>(machine_->pod_limit())) pod = machine_->PodAt(static_cast<PodId>(id - 1));
    if (pod == nullptr) Fail();
  }

 private:
  const Machine* machine_;
};

}  // namespace

std::string SaveState(const Machine& machine) {
  std::string bytes;
  StateWriter writer(&bytes);
  Pass(writer, machine);
  return bytes;
}

absl::Status RestoreState(absl::string_view bytes, Machine* machine) {
  StateReader reader(bytes, machine);
  Pass(reader, *machine);
  if (!reader.ok() || !reader.done()) {
    return absl::InvalidArgumentError("the state that it opens with cannot be read");
  }
  return absl::OkStatus();
}

uint64_t StateLayout() { return LayoutOf<Machine>(); }

}  // namespace muster::recording
