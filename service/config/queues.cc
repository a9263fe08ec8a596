#include "service/config/queues.h"

#include <yaml-cpp/yaml.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "state/base/quantity.h"

namespace muster {
namespace {

std::string Scalar(const YAML::Node& node) { return node.IsScalar() ? node.Scalar() : ""; }

class QueueReader {
 public:
  QueueReader(std::string where, std::vector<std::string>* problems) : where_(std::move(where)), problems_(problems) {}

  QueueSpec Read(const YAML::Node& map) {
    QueueSpec queue;
    for (const auto& entry : map) Read(Scalar(entry.first), entry.second, &queue);
    if (queue.name.empty()) Expected("name", "", "the name of the queue");
    return queue;
  }

 private:
  void Read(const std::string& key, const YAML::Node& value, QueueSpec* queue) {
    if (key == "name" || key == "parent") {
      if (!value.IsScalar()) return Expected(key, Scalar(value), "the name of a queue");
      (key == "name" ? queue->name : queue->parent) = value.Scalar();
    } else if (key == "quota" || key == "limit") {
      ReadAmounts(key, value, key == "quota" ? &queue->quota : &queue->limit);
    } else if (key == "overQuotaWeight") {
      ReadWeights(value, &queue->over_quota_weight);
    } else if (key == "priority") {
      if (!absl::SimpleAtoi(Scalar(value), &queue->priority)) Expected(key, Scalar(value), "a whole number of 32 bits");
    } else if (key == "maxApplications") {
      const bool reads = absl::SimpleAtoi(Scalar(value), &queue->max_applications);
      if (!reads || queue->max_applications < 0)
        Expected(key, Scalar(value), "a whole number of 32 bits, or 0 for any number");
    } else if (key == "sort") {
      const std::optional<QueueSort> sort = ParseQueueSort(Scalar(value));
      if (!sort.has_value()) return Expected(key, Scalar(value), "fifo (or stateaware, the same) or fair");
      queue->sort = *sort;
    } else if (key == "namespaces" || key == "identities") {
      ReadNames(key, value, key == "namespaces" ? &queue->access.namespaces : &queue->access.identities);
    } else if (key == "namespaceSelector") {
      ReadSelector(key, value, &queue->access.namespace_selector.emplace().requirements);
    } else {
      problems_->push_back(absl::StrCat(
          where_, key, ": there is no such field of a queue; expected name, parent, quota, limit, overQuotaWeight, ",
          "priority, maxApplications, sort, namespaces, namespaceSelector or identities"));
    }
  }
  // An empty list is no list: it would look like one that names no gang, and the parent's list would apply.
  void ReadNames(const std::string& key, const YAML::Node& value, std::vector<std::string>* names) {
    if (!value.IsSequence() || value.size() == 0) {
      return Expected(key, Scalar(value), R"(a list of at least one name, like [ml], or ["*"] for all)");
    }
    for (const YAML::Node& entry : value) {
      if (!entry.IsScalar()) return Expected(key, "", "a list of names");
      names->push_back(entry.Scalar());
    }
  }
  // A selector of labels in Kubernetes' notation.
  void ReadSelector(const std::string& key, const YAML::Node& value, std::vector<SelectorRequirement>* out) {
    if (!value.IsMap()) return Expected(key, Scalar(value), "a map, like {matchLabels: {team: vision}}");
    for (const auto& entry : value) {
      const std::string part = Scalar(entry.first);
      const std::string path = absl::StrCat(key, ".", part);
      if (part == "matchLabels" && entry.second.IsMap()) {
        for (const auto& label : entry.second) {
          if (!label.second.IsScalar()) Expected(absl::StrCat(path, ".", Scalar(label.first)), "", "the label's value");
          out->push_back({Scalar(label.first), SelectorOperator::kIn, {Scalar(label.second)}});
        }
      } else if (part == "matchExpressions" && entry.second.IsSequence()) {
        for (size_t i = 0; i < entry.second.size(); ++i) {
          ReadExpression(absl::StrCat(path, "[", i, "]"), entry.second[i], &out->emplace_back());
        }
      } else {
        Expected(path, Scalar(entry.second),
                 "matchLabels, a map, or matchExpressions, a list of {key, operator, values}");
      }
    }
  }
  void ReadExpression(const std::string& path, const YAML::Node& value, SelectorRequirement* out) {
    if (!value.IsMap()) return Expected(path, Scalar(value), "a map with key, operator and values");
    std::string op_text;
    for (const auto& entry : value) {
      const std::string field = Scalar(entry.first);
      if (field == "key" && entry.second.IsScalar()) {
        out->key = entry.second.Scalar();
      } else if (field == "operator") {
        op_text = Scalar(entry.second);
      } else if (field == "values" && entry.second.IsSequence()) {
        for (const YAML::Node& each : entry.second) out->values.push_back(Scalar(each));
      } else {
        Expected(absl::StrCat(path, ".", field), Scalar(entry.second), "key, operator, or values, a list");
      }
    }
    const std::optional<SelectorOperator> op = ParseSelectorOperator(op_text);
    if (!op.has_value()) Expected(absl::StrCat(path, ".operator"), op_text, "In, NotIn, Exists or DoesNotExist");
    out->op = op.value_or(SelectorOperator::kIn);
  }
  void ReadAmounts(const std::string& key, const YAML::Node& value, ResourceList* list) {
    if (!value.IsMap()) return Expected(key, Scalar(value), "amounts by resource, like {nvidia.com/gpu: 8}");
    for (const auto& entry : value) {
      const std::string resource = Scalar(entry.first);
      const absl::StatusOr<int64_t> amount = ParseExactAmount(resource, Scalar(entry.second));
      if (amount.ok()) {
        (*list)[resource] = *amount;
      } else {
        problems_->push_back(absl::StrCat(where_, key, ".", resource, ": ", amount.status().message()));
      }
    }
  }
  void ReadWeights(const YAML::Node& value, ResourceList* list) {
    constexpr int64_t kMost = 1'000'000;
    if (!value.IsMap()) {
      return Expected("overQuotaWeight", Scalar(value), "weights by resource, like {nvidia.com/gpu: 2}");
    }
    for (const auto& entry : value) {
      int64_t weight = 0;
      if (!absl::SimpleAtoi(Scalar(entry.second), &weight) || weight < 0 || weight > kMost) {
        Expected(absl::StrCat("overQuotaWeight.", Scalar(entry.first)), Scalar(entry.second),
                 absl::StrCat("a whole number from 0 to ", kMost));
      } else {
        (*list)[Scalar(entry.first)] = weight;
      }
    }
  }
  void Expected(const std::string& key, const std::string& value, const std::string& expected) {
    problems_->push_back(absl::StrCat(where_, key, ": \"", value, "\"; expected ", expected));
  }

  std::string where_;
  std::vector<std::string>* problems_;
};

}  // namespace

void ReadQueueTree(const YAML::Node& list, std::vector<QueueSpec>* queues, std::vector<std::string>* problems) {
  if (!list.IsSequence()) {
    problems->push_back("queues.tree: expected a list of queues, like [{name: research, quota: {nvidia.com/gpu: 8}}]");
    return;
  }
  queues->clear();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = absl::StrCat("queues.tree[", i, "].");
    if (list[i].IsMap()) {
      queues->push_back(QueueReader(where, problems).Read(list[i]));
    } else {
      problems->push_back(absl::StrCat("queues.tree[", i, "]: expected a map with a name"));
    }
  }
}

}  // namespace muster
