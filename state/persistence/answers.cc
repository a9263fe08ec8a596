#include "state/persistence/answers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "state/persistence/fields.h"

namespace muster {
constexpr char kAnswer[] = "answer";
constexpr int32_t kAnswerFormat = 1;

void Convert(Pair<DurableAnswer, store::v1::AnswerRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(fingerprint, code, message, details, response);
}

Record AnswerRecord(const DurableAnswer& answer) {
  return {.kind = kAnswer,
          .key = answer.key,
          .format = kAnswerFormat,
          .value = MessageOf<store::v1::AnswerRecord>(answer).SerializeAsString()};
}

Record AnswerDeletion(std::string key) { return {.kind = kAnswer, .key = std::move(key), .format = kAnswerFormat}; }

absl::StatusOr<std::vector<DurableAnswer>> TakeAnswers(std::vector<Record>* records) {
  const auto first = std::stable_partition(records->begin(), records->end(),
                                           [](const Record& record) { return record.kind != kAnswer; });
  std::vector<DurableAnswer> answers;
  for (auto record = first; record != records->end(); ++record) {
    DurableAnswer& answer = answers.emplace_back();
    answer.key = record->key;
    if (record->format != kAnswerFormat || !ReadRecord<store::v1::AnswerRecord>(*record, &answer).ok()) {
      return absl::InvalidArgumentError(absl::StrCat("record \"", RecordName(*record), "\", format ", record->format,
                                                     ": not a readable AnswerRecord; run the version of Muster that "
                                                     "wrote it, or a newer one"));
    }
  }
  records->erase(first, records->end());
  return answers;
}

}  // namespace muster
