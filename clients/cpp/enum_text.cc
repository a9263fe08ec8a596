#include "clients/cpp/enum_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// The words of "GANG_MODE_NON_STRICT" without the name of the enum, "GANG_MODE_".
std::vector<std::string> WordsOf(const google::protobuf::EnumValueDescriptor* value) {
  if (value == nullptr) return {"?"};  // of a newer server
  if (value->number() == 0) return {};
  std::string prefix;
  for (const char c : value->type()->name()) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  const absl::string_view rest = absl::StripPrefix(value->name(), prefix + "_");
  return absl::StrSplit(absl::AsciiStrToLower(rest), '_');
}

}  // namespace

std::string EnumText(const google::protobuf::EnumValueDescriptor* value) {
  std::string out;
  for (std::string& word : WordsOf(value)) {
    word[0] = absl::ascii_toupper(static_cast<unsigned char>(word[0]));
    out += word;
  }
  return out;
}

std::string PolicyText(const google::protobuf::EnumValueDescriptor* value) {
  return absl::StrJoin(WordsOf(value), "-");
}

}  // namespace muster
