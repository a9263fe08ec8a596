#include "state/recording/recording.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "state/base/varint.h"

namespace muster::recording {

// --- commands ---

namespace {

// The names with the numbers `start` to `start + size - 1`.
struct Run {
  uint64_t start = 0;
  uint64_t size = 0;
};

}  // namespace

void CommandWriter::Special(const Offer& offer) {
  Number(offer == nullptr ? 0 : 1);
  if (offer != nullptr) offers_->push_back(offer);
}

void CommandReader::Special(Offer& offer) {
  offer = nullptr;
  if (Number() == 0) return;
  if (offers_->empty()) return Fail();
  offer = std::move(offers_->front());
  offers_->pop_front();
}

void OfferWriter::Write(const NodeOffer& offer, std::string* out) {
  std::vector<std::string> fresh;
  std::vector<Run> runs;
  for (const absl::string_view name : offer.names()) {
    const auto [entry, is_fresh] = numbers_.try_emplace(name, numbers_.size());
    if (is_fresh) fresh.emplace_back(name);
    if (runs.empty() || runs.back().start + runs.back().size != entry->second) runs.push_back({entry->second, 0});
    ++runs.back().size;
  }
  archive::Writer writer(out);
  writer.Number(offer.every() ? 1 : 0);
  archive::Pass(writer, fresh);
  archive::Pass(writer, runs);
}

Offer OfferReader::Read(archive::Reader* reader) {
  const bool every = reader->Number() != 0;
  std::vector<std::string> fresh;
  std::vector<Run> runs;
  archive::Pass(*reader, fresh);
  archive::Pass(*reader, runs);
  names_.insert(names_.end(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
  auto offered = std::make_shared<NodeOffer>(every ? NodeOffer::AllNodes() : NodeOffer());
  for (const auto& [start, size] : runs) {
    if (start > names_.size() || size > names_.size() - start) {
      reader->Fail();
      break;
    }
    for (size_t i = start; i < start + size; ++i) offered->Add(names_[i]);
  }
  return reader->ok() ? offered : nullptr;
}

uint64_t DigestOf(const Outcome& outcome) {
  StateHasher digester;
  archive::Pass(digester, outcome);
  return digester.value();
}

// --- states ---

namespace {

uint64_t NumberOf(const Pod* pod) { return pod == nullptr ? 0 : static_cast<uint64_t>(pod->id) + 1; }

// Writes pointers to pods as ids; no other pointers refer to shared objects. A state has millions of small numbers,
// which are buffered before they are appended.
class StateWriter {
 public:
  static constexpr bool kReads = false;
  // `out` is complete after Finish. REQUIRES: `out` outlives the writer.
  explicit StateWriter(std::string* out) : out_(out) {}

  void Number(uint64_t value) {
    if (chunk_.size() - used_ < kMaxVarintBytes) Finish();
    used_ = static_cast<size_t>(WriteVarint(value, chunk_.data() + used_) - chunk_.data());
  }
  void Bytes(absl::string_view bytes) {
    Number(bytes.size());
    if (bytes.size() > chunk_.size() - used_) Finish();
    if (bytes.size() > chunk_.size()) {
      out_->append(bytes.data(), bytes.size());
    } else {
      used_ = static_cast<size_t>(std::copy(bytes.begin(), bytes.end(), chunk_.data() + used_) - chunk_.data());
    }
  }
  void Finish() {
    out_->append(chunk_.data(), used_);
    used_ = 0;
  }
  void Special(const Pod* const& pod) { Number(NumberOf(pod)); }

 private:
  std::string* out_;
  std::array<char, 4096> chunk_;
  size_t used_ = 0;
};

class StateReader : public archive::Reader {
 public:
  StateReader(absl::string_view bytes, const Machine* machine) : archive::Reader(bytes), machine_(machine) {}
  void Special(const Pod*& pod) {
    const uint64_t id = Number();
    pod = nullptr;
    if (id == 0) return;
    if (id <= static_cast<uint64_t>(machine_->reader().gangs.pod_limit()))
      pod = machine_->reader().gangs.PodAt(static_cast<PodId>(id - 1));
    if (pod == nullptr) Fail();
  }

 private:
  const Machine* machine_;
};

class StateDigester : public StateHasher {
 public:
  void Special(const Pod* const& pod) { Number(NumberOf(pod)); }
  // The sum of the hashes of the entries, which have no order.
  template <typename Key, typename Value>
  void Special(const absl::flat_hash_map<Key, Value>& map) {
    uint64_t sum = 0;
    for (const auto& entry : map) {
      StateDigester digester;
      archive::Pass(digester, entry);
      sum += digester.value();
    }
    Number(sum);
  }
};

}  // namespace

std::string SaveState(const Machine& machine) {
  std::string bytes;
  StateWriter writer(&bytes);
  archive::Pass(writer, machine);
  writer.Finish();
  return bytes;
}

absl::Status RestoreState(absl::string_view bytes, Machine* machine) {
  StateReader reader(bytes, machine);
  archive::Pass(reader, *machine);
  if (!reader.ok() || !reader.done()) {
    return absl::InvalidArgumentError("the state that it opens with cannot be read");
  }
  return absl::OkStatus();
}

uint64_t StateHash(const Machine& machine) {
  StateDigester digester;
  archive::Pass(digester, machine);
  return digester.value();
}

}  // namespace muster::recording
