// A part of the cluster: the nodes in a given domain, or in any domain, of each of some labels (SPEC P-4). Without
// labels, it is the whole cluster. A value that refers to tables of Topology.
#ifndef MUSTER_STATE_CLUSTER_REGION_H_
#define MUSTER_STATE_CLUSTER_REGION_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "state/cluster/cluster.h"

namespace muster {

// Dense for one label: a value of it that some node has.
using DomainId = int32_t;
inline constexpr DomainId kNoDomain = -1;

class Region {
 public:
  [[nodiscard]] bool everywhere() const { return bounds_.empty(); }
  // True if both have the same bounds.
  friend bool operator==(const Region& a, const Region& b) { return a.bounds_ == b.bounds_; }
  [[nodiscard]] bool Has(NodeId node) const {
    return std::all_of(bounds_.begin(), bounds_.end(), [node](const Bound& bound) {
      const DomainId domain = (*bound.domain_of)[static_cast<size_t>(node)];
      return bound.domain == kNoDomain ? domain != kNoDomain : domain == bound.domain;
    });
  }
  // The part of this region in any domain of the label.
  [[nodiscard]] Region InsideAnyDomain(const std::vector<DomainId>* domain_of) const {
    return Inside(domain_of, kNoDomain);
  }
  // The part of this region in the domain. `domain_of`: by NodeId. REQUIRES: it outlives the region.
  [[nodiscard]] Region Inside(const std::vector<DomainId>* domain_of, DomainId domain) const {
    Region out = *this;
    out.bounds_.push_back({domain_of, domain});
    return out;
  }

 private:
  struct Bound {
    const std::vector<DomainId>* domain_of;
    DomainId domain;  // kNoDomain: any
    friend bool operator==(const Bound& a, const Bound& b) {
      return a.domain_of == b.domain_of && a.domain == b.domain;
    }
  };
  absl::InlinedVector<Bound, 2> bounds_;
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_REGION_H_
