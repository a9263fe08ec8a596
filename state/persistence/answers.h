// Durable answers by request id (SPEC S-1, S-2). No rule of the core reads them. Free functions; thread-safe.
#ifndef MUSTER_STATE_PERSISTENCE_ANSWERS_H_
#define MUSTER_STATE_PERSISTENCE_ANSWERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "state/api/effects.h"

namespace muster {

struct DurableAnswer {
  std::string key;           // caller, method and request id
  uint64_t fingerprint = 0;  // of the request
  int32_t code = 0;          // gRPC status code
  std::string message;
  std::string details;
  std::string response;  // serialised
};

[[nodiscard]] Record AnswerRecord(const DurableAnswer& answer);
// The record that deletes the answer from the store.
[[nodiscard]] Record AnswerDeletion(std::string key);
// Moves the answers out of the store's records. InvalidArgument: names an answer that cannot be read.
[[nodiscard]] absl::StatusOr<std::vector<DurableAnswer>> TakeAnswers(std::vector<Record>* records);

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_ANSWERS_H_
