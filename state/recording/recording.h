// The parts of a recording (S-3): serialised commands, digests of their outcomes, and serialised states of a machine.
// What-if questions copy a machine by its serialised state. Not thread-safe.
#ifndef MUSTER_STATE_RECORDING_RECORDING_H_
#define MUSTER_STATE_RECORDING_RECORDING_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/base/archive.h"
#include "state/machine/machine.h"

namespace muster::recording {

// --- commands ---

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

// --- states ---

// The state between two commands. Caches are omitted, because they change no answer.
[[nodiscard]] std::string SaveState(const Machine& machine);

// Afterwards the machine behaves exactly like the saved one. InvalidArgument: the bytes are not a state of this
// program; the machine must then be discarded. REQUIRES: the machine is new and has the same settings.
[[nodiscard]] absl::Status RestoreState(absl::string_view bytes, Machine* machine);

// A hash of everything that SaveState writes, equal in every process. Equal for machines with the same history, whether
// or not one of them was restored on the way: the same commands, and the same calls of TakeChanged.
[[nodiscard]] uint64_t StateHash(const Machine& machine);

}  // namespace muster::recording

#endif  // MUSTER_STATE_RECORDING_RECORDING_H_
