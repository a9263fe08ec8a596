// Commands and what came of them, as a recording has them (S-3).
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
#include "state/machine/settings.h"
#include "state/recording/archive.h"

namespace muster::recording {

using Offer = std::shared_ptr<const NodeOffer>;

// One command after the other. Node offers are put aside, in order: there are thousands of names in one.
class CommandWriter : public Writer {
 public:
  CommandWriter(std::string* out, std::vector<Offer>* offers) : Writer(out), offers_(offers) {}
  void Special(const Offer& offer);

 private:
  std::vector<Offer>* offers_;
};

// What was put aside, in the same order. Mostly the same nodes are named again and again: each name is written once,
// after that its number, and numbers that follow one another as one run.
class OfferWriter {
 public:
  void Write(const NodeOffer& offer, std::string* out);

 private:
  absl::flat_hash_map<std::string, uint64_t> numbers_;  // of names
};

// Reads what one OfferWriter wrote. Not ok: there is no offer.
class OfferReader {
 public:
  [[nodiscard]] Offer Read(Reader* reader);

 private:
  std::vector<std::string> names_;  // by number
};

// Takes the offers of the commands that it reads from `offers`, which outlives it.
class CommandReader : public Reader {
 public:
  CommandReader(absl::string_view bytes, std::deque<Offer>* offers) : Reader(bytes), offers_(offers) {}
  void Special(Offer& offer);

 private:
  std::deque<Offer>* offers_;
};

// Of everything that a command brought about; equal for equal outcomes.
[[nodiscard]] uint64_t DigestOf(const Outcome& outcome);

[[nodiscard]] std::string WriteSettings(const MachineSettings& settings);
[[nodiscard]] bool ReadSettings(absl::string_view bytes, MachineSettings* settings);

// Equal for programs that write commands and settings alike.
[[nodiscard]] uint64_t CommandLayout();

}  // namespace muster::recording

#endif  // MUSTER_STATE_RECORDING_COMMANDS_H_
