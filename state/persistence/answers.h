// Answers by request id, as the store keeps them (SPEC S-1, S-2). No rule of the core reads them.
#ifndef MUSTER_STATE_PERSISTENCE_ANSWERS_H_
#define MUSTER_STATE_PERSISTENCE_ANSWERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/api/effects.h"

namespace muster {

struct KeptAnswer {
  std::string key;           // caller, method and request id
  uint64_t fingerprint = 0;  // of the request
  int32_t code = 0;          // of gRPC
  std::string message;
  std::string details;
  std::string response;  // serialised
};

[[nodiscard]] Record AnswerRecord(const KeptAnswer& answer);
// That deletes it.
[[nodiscard]] Record NoAnswerRecord(std::string key);
// Takes the answers out of what a store has. InvalidArgument names one that cannot be read.
[[nodiscard]] absl::StatusOr<std::vector<KeptAnswer>> TakeAnswers(std::vector<Record>* records);

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_ANSWERS_H_
