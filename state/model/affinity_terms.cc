#include "state/model/affinity_terms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/base/archive.h"

namespace muster {

std::string NamespaceKey(absl::string_view key) { return absl::StrCat("\x01", key); }

bool Matches(const PodSelector& selector, absl::string_view name_space, const Labels& labels) {
  const auto met = [&](const SelectorRequirement& each) {
    const auto label = labels.find(each.key);
    return Meets(each, label == labels.end() ? nullptr : &label->second);
  };
  const auto& names = selector.namespaces;
  const auto by_labels = [&] {
    return selector.by_labels && labels.contains(NamespaceKey("")) &&
           std::all_of(selector.namespace_labels.begin(), selector.namespace_labels.end(), met);
  };
  const bool in_namespace =
      selector.all_namespaces || std::find(names.begin(), names.end(), name_space) != names.end() || by_labels();
  return in_namespace && std::all_of(selector.requirements.begin(), selector.requirements.end(), met);
}

std::string KeyOf(const PodSelector& selector) { return archive::BytesOf(selector); }

std::string PackLabels(const Labels& labels) {
  std::string out;
  for (const auto& [key, value] : labels) {
    if (key.find('\0') != std::string::npos || value.find('\0') != std::string::npos) continue;
    out.append(key).push_back('\0');
    out.append(value).push_back('\0');
  }
  return out;
}

void ForEachPacked(absl::string_view packed, absl::FunctionRef<void(absl::string_view, absl::string_view)> visit) {
  while (!packed.empty()) {
    const size_t key_end = packed.find('\0');
    if (key_end == absl::string_view::npos) return;
    const size_t end = packed.find('\0', key_end + 1);
    if (end == absl::string_view::npos) return;
    visit(packed.substr(0, key_end), packed.substr(key_end + 1, end - key_end - 1));
    packed.remove_prefix(end + 1);
  }
}

Labels UnpackLabels(absl::string_view packed) {
  Labels out;
  ForEachPacked(packed, [&](absl::string_view key, absl::string_view value) {
    out.emplace_hint(out.end(), std::string(key), std::string(value));
  });
  return out;
}

}  // namespace muster
