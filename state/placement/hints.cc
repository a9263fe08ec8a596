#include "state/placement/hints.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// A name as far away as this is taken for a slip of the pen.
constexpr size_t kLikely = 2;

// Levenshtein's distance: how many letters must be put in, left out or changed.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

// What some node offers under much the same name; empty: nothing.
std::string Meant(const Cluster& cluster, absl::string_view name) {
  absl::btree_set<std::string> offered;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present) continue;
    for (const auto& [resource, amount] : cluster.names().ToList(node.allocatable)) offered.insert(resource);
  }
  std::string best;
  size_t least = kLikely + 1;
  for (const std::string& resource : offered) {
    if (const size_t distance = Distance(name, resource); distance < least) {
      least = distance;
      best = resource;
    }
  }
  return best;
}

}  // namespace

std::string ExplainImpossible(const Cluster& cluster, ClassId cls, ResourceId resource) {
  const int64_t needed = cluster.pod_class(cls).request.Get(resource);
  int64_t most = 0;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (node.present) most = std::max(most, node.allocatable.Get(resource));
  }
  if (needed <= most) return "";
  const std::string& name = cluster.names().Name(resource);
  if (most > 0) {
    return absl::StrCat("a pod needs ", FormatResources({{name, needed}}), ", no node has more than ",
                        FormatResources({{name, most}}));
  }
  const std::string meant = Meant(cluster, name);
  return absl::StrCat("no node offers ", name, meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?"));
}

}  // namespace muster
