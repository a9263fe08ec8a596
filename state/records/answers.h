// Answers by request id, as the store keeps them (SPEC S-1, S-2). No rule of the core reads them.
#ifndef MUSTER_STATE_RECORDS_ANSWERS_H_
#define MUSTER_STATE_RECORDS_ANSWERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/messages/effects.h"

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
[[nodiscard]] bool IsAnswerRecord(const Record& record);
// InvalidArgument: it cannot be read.
[[nodiscard]] absl::StatusOr<KeptAnswer> ReadAnswer(const Record& record);

}  // namespace muster

#endif  // MUSTER_STATE_RECORDS_ANSWERS_H_
