#include "state/recording/commands.h"

#include <utility>

namespace muster::recording {
namespace {

// The numbers `start` to `start + size - 1`.
struct Run {
  uint64_t start = 0;
  uint64_t size = 0;
  bool fresh = false;  // these names appear for the first time
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
  std::vector<Run> runs;
  for (const std::string& name : offer.names()) {
    const auto [entry, fresh] = numbers_.try_emplace(name, numbers_.size());
    const uint64_t number = entry->second;
    // New names form runs of their own, with their texts; a name that repeats within this offer is not new.
    const bool continues_run =
        !runs.empty() && runs.back().fresh == fresh && runs.back().start + runs.back().size == number;
    if (!continues_run) runs.push_back({number, 0, fresh});
    ++runs.back().size;
  }
  archive::Writer writer(out);
  writer.Number(offer.every() ? 1 : 0);
  writer.Number(runs.size());
  auto name = offer.names().begin();
  for (const Run& run : runs) {
    writer.Number(run.start);
    writer.Number(run.size);
    if (run.fresh) {
      for (uint64_t i = 0; i < run.size; ++i) writer.Bytes(name[static_cast<std::ptrdiff_t>(i)]);
    }
    name += static_cast<std::ptrdiff_t>(run.size);
  }
}

Offer OfferReader::Read(archive::Reader* reader) {
  const bool every = reader->Number() != 0;
  std::vector<std::string> offered;
  for (size_t runs = reader->Size(); runs > 0 && reader->ok(); --runs) {
    const uint64_t start = reader->Number();
    if (start == names_.size()) {
      for (size_t left = reader->Size(); left > 0 && reader->ok(); --left) {
        names_.emplace_back(reader->Bytes());
        offered.push_back(names_.back());
      }
      continue;
    }
    const uint64_t size = reader->Number();
    if (start > names_.size() || size > names_.size() - start) {
      reader->Fail();
      break;
    }
    const auto first = names_.begin() + static_cast<std::ptrdiff_t>(start);
    offered.insert(offered.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return reader->ok() ? std::make_shared<const NodeOffer>(every, std::move(offered)) : nullptr;
}

uint64_t DigestOf(const Outcome& outcome) {
  archive::Digester digester;
  archive::Pass(digester, outcome);
  return digester.value();
}

std::string WriteSettings(const MachineSettings& settings) { return archive::BytesOf(settings); }

bool ReadSettings(absl::string_view bytes, MachineSettings* settings) {
  archive::Reader reader(bytes);
  archive::Pass(reader, *settings);
  return reader.ok() && reader.done();
}

uint64_t CommandLayout() {
  StateHasher hasher;
  archive::AddLayout<Command>(&hasher);
  archive::AddLayout<MachineSettings>(&hasher);
  return hasher.value();
}

}  // namespace muster::recording
