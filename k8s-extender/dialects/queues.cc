#include "k8s-extender/dialects/queues.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/metadata.h"
#include "k8s-extender/dialects/pod_affinity.h"
#include "state/base/quantity.h"

namespace muster {
namespace {

constexpr int64_t kMaxWeight = 1'000'000;

class QueueParser {
 public:
  absl::StatusOr<QueueSpec> Parse(const Json& object) {
    QueueSpec queue;
    queue.name = StringOrEmpty(Child(object, "metadata"), "name");
    const Json& spec = Child(object, "spec");
    if (!spec.is_null() && !spec.is_object()) Expected("spec", spec, "a map");
    if (spec.is_object()) {
      for (const auto& [key, value] : spec.items()) Read(key, value, &queue);
    }
    if (!problems_.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems_, "; "));
    return queue;
  }

 private:
  void Read(const std::string& key, const Json& value, QueueSpec* queue) {
    const std::string path = absl::StrCat("spec.", key);
    if (key == "parent") {
      value.is_string() ? void(queue->parent = value.get<std::string>()) : Expected(path, value, "the name of a queue");
    } else if (key == "quota" || key == "limit") {
      absl::StatusOr<ResourceList> amounts = ParseResourceMap(value, path);
      if (!amounts.ok()) return problems_.emplace_back(amounts.status().message()), void();
      for (const auto& [resource, amount] : value.items()) {
        const std::string text = amount.is_string() ? amount.get<std::string>() : amount.dump();
        const absl::StatusOr<int64_t> exact = ParseExactAmount(resource, text);
        if (!exact.ok()) problems_.push_back(absl::StrCat(path, ".", resource, ": ", exact.status().message()));
      }
      (key == "quota" ? queue->quota : queue->limit) = *std::move(amounts);
    } else if (key == "overQuotaWeight") {
      ReadWeights(path, value, queue);
    } else if (key == "priority") {
      ReadNumber(path, value, INT32_MIN, "a whole number of 32 bits", &queue->priority);
    } else if (key == "maxApplications") {
      ReadNumber(path, value, 0, "a whole number of 32 bits, or 0 for any number", &queue->max_applications);
    } else if (key == "sort") {
      const std::optional<QueueSort> sort = ParseQueueSort(value.is_string() ? value.get<std::string>() : "");
      sort.has_value() ? void(queue->sort = *sort) : Expected(path, value, "fifo (or stateaware, the same) or fair");
    } else if (key == "namespaces" || key == "identities") {
      ReadNames(path, value, key == "namespaces" ? &queue->access.namespaces : &queue->access.identities);
    } else if (key == "namespaceSelector") {
      ReadSelector(path, value, &queue->access.namespace_selector.emplace().requirements);
    } else {
      Expected(path, value,
               "parent, quota, limit, overQuotaWeight, priority, maxApplications, sort, namespaces, namespaceSelector "
               "or identities");
    }
  }
  // An empty list is no list: it would look like one that names no gang, and the parent's list would apply.
  void ReadNames(const std::string& path, const Json& value, std::vector<std::string>* names) {
    const auto is_text = [](const Json& entry) { return entry.is_string(); };
    if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_text)) {
      return Expected(path, value, R"(a list of at least one name; ["*"] for all)");
    }
    *names = value.get<std::vector<std::string>>();
  }
  // A part that is not read would leave a selector of every namespace.
  void ReadSelector(const std::string& path, const Json& value, std::vector<SelectorRequirement>* out) {
    if (!value.is_object()) return Expected(path, value, "a map with matchLabels, matchExpressions, or both");
    for (const auto& [part, entry] : value.items()) {
      if (part == "matchLabels" || part == "matchExpressions") continue;
      return Expected(absl::StrCat(path, ".", part), entry, "matchLabels or matchExpressions");
    }
    const Json holder = {{"namespaceSelector", value}};
    Fields fields;
    *out = ParseLabelSelector(holder, "namespaceSelector", "spec", &fields);
    if (!fields.problem().empty()) problems_.push_back(fields.problem());
  }
  void ReadWeights(const std::string& path, const Json& value, QueueSpec* queue) {
    if (!value.is_object()) return Expected(path, value, "weights by resource");
    for (const auto& [resource, weight] : value.items()) {
      if (!weight.is_number_integer() || weight < 0 || weight > kMaxWeight) {
        Expected(absl::StrCat(path, ".", resource), weight, absl::StrCat("a whole number from 0 to ", kMaxWeight));
      } else {
        queue->over_quota_weight[resource] = weight.get<int64_t>();
      }
    }
  }
  void ReadNumber(const std::string& path, const Json& value, int64_t least, absl::string_view expected, int32_t* out) {
    if (!value.is_number_integer() || value < least || value > INT32_MAX) return Expected(path, value, expected);
    *out = value.get<int32_t>();
  }
  void Expected(const std::string& path, const Json& value, absl::string_view expected) {
    problems_.push_back(absl::StrCat(path, ": ", value.dump(), "; expected ", expected));
  }

  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<QueueSpec> ParseQueue(const Json& object) { return QueueParser().Parse(object); }

}  // namespace muster
