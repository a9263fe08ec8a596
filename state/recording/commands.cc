#include "state/recording/commands.h"

#include <iterator>
#include <utility>

namespace muster::recording {
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
  for (const std::string& name : offer.names()) {
    const auto [entry, is_fresh] = numbers_.try_emplace(name, numbers_.size());
    if (is_fresh) fresh.push_back(name);
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
  std::vector<std::string> offered;
  for (const auto& [start, size] : runs) {
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

}  // namespace muster::recording
