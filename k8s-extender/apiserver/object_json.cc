#include "k8s-extender/apiserver/object_json.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr int kMaxDepth = 200;
// The parser of a larger text is not kept for the next event: its memory is several times the text.
constexpr size_t kMaxKeptText = size_t{64} << 10;

constexpr char kItems[] = "items";
constexpr std::array<absl::string_view, 3> kContainerLists = {"containers", "ephemeralContainers", "initContainers"};
constexpr std::array<absl::string_view, 3> kStatusLists = {"containerStatuses", "ephemeralContainerStatuses",
                                                           "initContainerStatuses"};
// What is not read of the status of a container.
constexpr std::array<absl::string_view, 6> kUnreadOfStatuses = {"containerID", "image", "imageID",
                                                                "lastState",   "state", "volumeMounts"};
// What is not read of a container.
constexpr std::array<absl::string_view, 14> kUnreadOfContainers = {
    "args",           "command",         "env",          "envFrom",
    "image",          "imagePullPolicy", "lifecycle",    "livenessProbe",
    "readinessProbe", "securityContext", "startupProbe", "terminationMessagePath",
    "volumeDevices",  "volumeMounts"};

template <typename List>
bool Has(const List& list, absl::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

// Whether Muster never reads `key` of an object that is, or is in a list, at the key `within`.
bool IsUnread(absl::string_view within, absl::string_view key) {
  if (within == "metadata") return key == "managedFields";
  if (within == "spec") return key == "volumes";
  if (within == "status") return key == "images";
  if (Has(kStatusLists, within)) return Has(kUnreadOfStatuses, key);
  return Has(kContainerLists, within) && Has(kUnreadOfContainers, key);
}

// Builds the value by one walk; what is left out is skipped. Throws simdjson::simdjson_error.
class ObjectReader {
 public:
  static Json Read(ondemand::document* document) {
    Json out = Json::object();
    ReadFields(document->get_object(), "", 1, &out);
    return out;
  }
  // The fields of a list, without its items.
  static Json ReadHead(ondemand::document* document) {
    Json out = Json::object();
    for (ondemand::field field : document->get_object()) {
      const absl::string_view key = View(field.unescaped_key());
      ondemand::value value = field.value();
      const bool items = key == kItems && value.type() == ondemand::json_type::array;
      out[std::string(key)] = items ? Json::array() : ReadValue(value, key, 1);
    }
    return out;
  }
  static Json ReadItem(ondemand::value item) { return ReadValue(item, kItems, 2); }
  // As ReadItem, or as ParseJsonCut where simdjson cannot read it: it is nested too deeply, or a number is too large.
  static absl::StatusOr<Json> ReadItemAlone(ondemand::value item, absl::string_view what) {
    switch (item.type()) {
      case ondemand::json_type::object: {
        ondemand::object object = item.get_object();
        return ParseObjects(View(object.raw_json()), what);
      }
      case ondemand::json_type::array: {
        ondemand::array array = item.get_array();
        return ParseObjects(View(array.raw_json()), what);
      }
      default:
        return ReadItem(item);
    }
  }

 private:
  // simdjson's text as Abseil's type.
  template <typename Text>
  static absl::string_view View(simdjson::simdjson_result<Text> read) {
    const auto text = std::move(read).value();
    return {text.data(), text.size()};
  }
  static void ReadFields(ondemand::object object, absl::string_view within, int depth, Json* out) {
    if (depth >= kMaxDepth) throw simdjson::simdjson_error(simdjson::DEPTH_ERROR);
    for (ondemand::field field : object) {
      const absl::string_view key = View(field.unescaped_key());
      if (IsUnread(within, key)) continue;
      (*out)[std::string(key)] = ReadValue(field.value(), key, depth);
    }
  }
  static Json ReadValue(ondemand::value value, absl::string_view within, int depth) {
    switch (value.type()) {
      case ondemand::json_type::object: {
        Json out = Json::object();
        ReadFields(value.get_object(), within, depth + 1, &out);
        return out;
      }
      case ondemand::json_type::array: {
        if (depth + 1 >= kMaxDepth) throw simdjson::simdjson_error(simdjson::DEPTH_ERROR);
        Json out = Json::array();
        for (ondemand::value each : value.get_array()) out.push_back(ReadValue(each, within, depth + 1));
        return out;
      }
      case ondemand::json_type::string:
        return std::string(View(value.get_string()));
      case ondemand::json_type::number:
        return ReadNumber(value.get_number());
      case ondemand::json_type::boolean:
        return bool(value.get_bool());
      case ondemand::json_type::null:
        return value.is_null() ? Json() : throw simdjson::simdjson_error(simdjson::N_ATOM_ERROR);
    }
    return {};
  }
  static Json ReadNumber(ondemand::number number) {
    if (number.is_uint64()) return number.get_uint64();
    if (!number.is_int64()) return number.get_double();
    // As ParseJson: unsigned unless it is negative.
    return number.get_int64() < 0 ? Json(number.get_int64()) : Json(static_cast<uint64_t>(number.get_int64()));
  }
};

void CheckEnd(ondemand::document* document) {
  const auto rest = document->current_location();
  if (rest.error() != simdjson::OUT_OF_BOUNDS) throw simdjson::simdjson_error(simdjson::TRAILING_CONTENT);
}

Json Read(ondemand::parser* parser, const simdjson::padded_string& text) {
  ondemand::document document = parser->iterate(text);
  Json out = ObjectReader::Read(&document);
  CheckEnd(&document);
  return out;
}

absl::Status Stopped() { return absl::CancelledError("stopping"); }

absl::Status Unreadable(absl::string_view text, absl::string_view what, const simdjson::simdjson_error& error) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": cannot be read (", text.size(), " bytes): ", error.what()));
}

// Reads items until one fails, and adds those that it has read to `read`. Throws simdjson::simdjson_error.
absl::Status ReadItems(ondemand::document* document, absl::FunctionRef<bool(const Json& item)> on_item, size_t* read) {
  for (ondemand::value each : document->find_field_unordered(kItems).get_array()) {
    const Json item = ObjectReader::ReadItem(each);
    ++*read;
    if (!on_item(item)) return Stopped();
  }
  return absl::OkStatus();
}

// Reads the items behind the first `skipped`, each on its own. Throws simdjson::simdjson_error.
absl::Status ReadItemsAlone(ondemand::document* document, size_t skipped, absl::string_view what,
                            absl::FunctionRef<bool(const Json& item)> on_item) {
  size_t index = 0;
  for (ondemand::value each : document->find_field_unordered(kItems).get_array()) {
    if (index++ < skipped) continue;
    const absl::StatusOr<Json> item = ObjectReader::ReadItemAlone(each, what);
    if (!item.ok()) return item.status();
    if (!on_item(*item)) return Stopped();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> ParseObjects(absl::string_view text, absl::string_view what) {
  try {
    const simdjson::padded_string padded(text.data(), text.size());
    if (text.size() > kMaxKeptText) {
      ondemand::parser parser;
      return Read(&parser, padded);
    }
    static thread_local ondemand::parser kept;
    return Read(&kept, padded);
  } catch (const simdjson::simdjson_error&) {
    return ParseJsonCut(text, what);  // no object, nested too deeply, or no JSON: it knows the place of the mistake
  }
}

absl::Status ReadList(std::string text, absl::string_view what,
                      absl::FunctionRef<absl::Status(const Json& head)> on_head,
                      absl::FunctionRef<bool(const Json& item)> on_item) {
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  ondemand::parser parser;
  size_t read = 0;
  bool begun = false;  // with the items
  try {
    ondemand::document document = parser.iterate(text);
    const Json head = ObjectReader::ReadHead(&document);
    CheckEnd(&document);
    if (absl::Status status = on_head(head); !status.ok()) return status;
    if (!Child(head, kItems).is_array()) return absl::OkStatus();
    begun = true;
    document.rewind();
    return ReadItems(&document, on_item, &read);
  } catch (const simdjson::simdjson_error& error) {
    if (!begun) return Unreadable(text, what, error);
  }
  try {
    ondemand::document document = parser.iterate(text);
    return ReadItemsAlone(&document, read, what, on_item);
  } catch (const simdjson::simdjson_error& error) {
    return Unreadable(text, what, error);
  }
}

}  // namespace muster
