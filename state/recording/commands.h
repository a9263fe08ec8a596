// Serialises commands and digests of outcomes for recordings (S-3). Not thread-safe.
#ifndef MUSTER_STATE_RECORDING_COMMANDS_H_
#define MUSTER_STATE_RECORDING_COMMANDS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "state/api/commands.h"
#include "state/api/effects.h"
#include "state/base/archive.h"

namespace muster::recording {

using Offer = std::shared_ptr<const NodeOffer>;

// Writes commands one after the other. Node offers are appended to `offers` instead, in order: one offer can contain
// thousands of names.
class CommandWriter : public archive::Writer {
 public:
  CommandWriter(std::string* out, std::vector<Offer>* offers) : archive::Writer(out), offers_(offers) {}
  void Special(const Offer& offer);

 private:
  std::vector<Offer>* offers_;
};

// Writes the offers that a CommandWriter collected, in the same order. Offers mostly repeat the same nodes: each name
// is written once and by its number afterwards; consecutive numbers are written as one run.
class OfferWriter {
 public:
  void Write(const NodeOffer& offer, std::string* out);

 private:
  absl::flat_hash_map<std::string, uint64_t> numbers_;  // of names
};

// Reads what one OfferWriter wrote. If the reader is not ok, the offer is invalid.
class OfferReader {
 public:
  [[nodiscard]] Offer Read(archive::Reader* reader);

 private:
  std::vector<std::string> names_;  // by number
};

// Reads commands and takes their offers from the front of `offers`. REQUIRES: `offers` outlives the reader.
class CommandReader : public archive::Reader {
 public:
  CommandReader(absl::string_view bytes, std::deque<Offer>* offers) : archive::Reader(bytes), offers_(offers) {}
  void Special(Offer& offer);

 private:
  std::deque<Offer>* offers_;
};

// A digest of everything that a command resulted in; equal for equal outcomes.
[[nodiscard]] uint64_t DigestOf(const Outcome& outcome);

}  // namespace muster::recording

#endif  // MUSTER_STATE_RECORDING_COMMANDS_H_
