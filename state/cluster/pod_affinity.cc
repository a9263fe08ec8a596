#include "state/cluster/pod_affinity.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/by_id.h"
#include "state/base/check.h"
#include "state/cluster/cluster.h"

namespace muster {
namespace {

std::string Pair(absl::string_view key, absl::string_view value) {
  return absl::StrCat(key, absl::string_view("\0", 1), value);
}

// A key and value that every selected pod must have; empty: there is no such pair.
std::string IndexOf(const std::vector<PodSelector>& selectors) {
  for (const PodSelector& selector : selectors) {
    for (const SelectorRequirement& each : selector.requirements) {
      if (each.op == SelectorOperator::kIn && each.values.size() == 1) return Pair(each.key, each.values[0]);
    }
  }
  return "";
}

bool SelectsUnlabelled(const PodSelector& selector) {
  return absl::c_all_of(selector.requirements, [](const SelectorRequirement& each) { return Meets(each, nullptr); });
}

// The filter of `spread`. REQUIRES: it is one of the constraints of `shape`.
NodeFilter FilterOf(const SpreadConstraint& spread, const PodTemplate& shape) {
  NodeFilter out;
  for (const SpreadConstraint& other : shape.pod_affinity.spread) {
    if (other.topology_key != spread.topology_key) out.labels.push_back(other.topology_key);
  }
  absl::c_sort(out.labels);
  out.labels.erase(std::unique(out.labels.begin(), out.labels.end()), out.labels.end());
  if (spread.honor_affinity) {
    out.shape.node_selector = shape.node_selector;
    out.shape.has_affinity = shape.has_affinity;
    out.shape.affinity = shape.affinity;
  }
  out.taints = spread.honor_taints;
  if (out.taints) out.shape.tolerations = shape.tolerations;
  return out;
}

}  // namespace

const std::string* LabelOf(const NodeDescription& node, const std::string& name) {
  const auto own = node.labels.find(name);
  if (own != node.labels.end()) return &own->second;
  return name == kHostnameLabel ? &node.name : nullptr;
}

std::string NodeFilter::Key() const {
  if (labels.empty() && shape.node_selector.empty() && !shape.has_affinity && !taints) return "";
  std::string out = absl::StrCat(labels.size(), taints ? "T" : "-");
  for (const std::string& label : labels) AppendText(label, &out);
  absl::StrAppend(&out, shape.Family());
  return out;
}

bool NodeFilter::Has(const NodeDescription& node) const {
  return absl::c_all_of(labels, [&](const std::string& label) { return LabelOf(node, label) != nullptr; }) &&
         PodSideObstacle(node, shape) == Obstacle::kNone &&
         (!taints || FirstUntolerated(node.taints, shape.tolerations) == nullptr);
}

// --- labels ---

bool PodAffinity::Learn(const PodAffinityRules& rules) {
  bool more = false;
  const auto learn = [&](const PodSelector& selector) {
    if (!selector.all_namespaces && !selector.by_labels && selector.namespaces.empty()) return;  // it selects no pod
    if (SelectsUnlabelled(selector)) more = !std::exchange(selects_unlabelled_, true) || more;
    for (const SelectorRequirement& each : selector.requirements) more = keys_.insert(each.key).second || more;
    if (!selector.by_labels) return;
    more = keys_.insert(NamespaceKey("")).second || more;
    for (const SelectorRequirement& each : selector.namespace_labels) more = keys_.insert(each.key).second || more;
  };
  for (const PodAffinityTerm& term : rules.affinity) learn(term.selector);
  for (const PodAffinityTerm& term : rules.anti_affinity) learn(term.selector);
  for (const SpreadConstraint& each : rules.spread) learn(each.selector);
  return more;
}

bool PodAffinity::Distinguishes(const Labels* a, const Labels* b) const {
  if (!by_namespaces() || (a == nullptr && b == nullptr)) return false;
  if (a == nullptr || b == nullptr) return true;
  const auto named_in_one = [this](const Labels& one, const Labels& other) {
    return absl::c_any_of(one, [&](const auto& label) {
      const auto same = other.find(label.first);
      return (same == other.end() || same->second != label.second) && keys_.contains(NamespaceKey(label.first));
    });
  };
  return named_in_one(*a, *b) || named_in_one(*b, *a);
}

std::string PodAffinity::LabelIdentityOf(absl::string_view name_space, absl::string_view labels,
                                         const Labels* of_namespace) const {
  if (!any_learned()) return "";
  std::string identity;
  const auto append = [&](absl::string_view key, absl::string_view value) {
    if (!keys_.contains(key)) return;
    absl::StrAppend(&identity, key, absl::string_view("\0", 1), value, absl::string_view("\0", 1));
  };
  ForEachPacked(labels, append);
  if (identity.empty() && !selects_unlabelled_) return "";  // short cut: fewer classes
  if (of_namespace != nullptr && by_namespaces()) {
    append(NamespaceKey(""), "");
    for (const auto& [key, value] : *of_namespace) append(NamespaceKey(key), value);
  }
  return absl::StrCat(name_space, absl::string_view("\0", 1), identity);
}

const absl::btree_map<NodeId, int64_t>& PodAffinity::ChargedOf(ClassId cls, bool future) const {
  static const absl::btree_map<NodeId, int64_t> kNothing;
  const auto charged = ChargesOf(future).find(cls);
  return charged == ChargesOf(future).end() ? kNothing : charged->second;
}

// --- terms ---

bool PodAffinity::Selects(const Term& term, const Known& known) {
  return absl::c_all_of(term.selectors,
                        [&](const PodSelector& selector) { return Matches(selector, known.name_space, known.labels); });
}

const PodAffinity::Label* PodAffinity::AddLabel(const std::string& id, const std::string& name, NodeFilter nodes) {
  std::unique_ptr<Label>& known = labels_[id];
  if (known == nullptr) known = std::make_unique<Label>();
  Label& label = *known;
  if (label.users++ > 0) return known.get();
  label.name = name;
  label.filters = !nodes.Key().empty();
  label.filter = std::move(nodes);
  label.domain_of.assign(static_cast<size_t>(cluster_->node_limit()), kNoDomain);
  for (NodeId node = 0; node < cluster_->node_limit(); ++node) {
    label.domain_of[static_cast<size_t>(node)] = DomainOfLabel(node, &label);
  }
  return known.get();
}

DomainId PodAffinity::DomainOfLabel(NodeId node, Label* label) const {
  const Node& of = cluster_->node(node);
  if (!of.present) return kNoDomain;
  const std::string* value = LabelOf(of.facts, label->name);
  if (value == nullptr || (label->filters && !label->filter.Has(of.facts))) return kNoDomain;
  return label->ids.try_emplace(*value, static_cast<DomainId>(label->ids.size())).first->second;
}

DomainId PodAffinity::DomainOf(NodeId node, const Term& term) const {
  const std::vector<DomainId>& of = term.at->domain_of;
  return static_cast<size_t>(node) < of.size() ? of[static_cast<size_t>(node)] : kNoDomain;
}

PodAffinity::TermId PodAffinity::AcquireTerm(const std::string& label, NodeFilter nodes,
                                             std::vector<PodSelector> selectors, bool opens) {
  std::string where;
  AppendText(label, &where);
  AppendText(nodes.Key(), &where);
  std::string text = where;
  for (const PodSelector& selector : selectors) absl::StrAppend(&text, KeyOf(selector));
  const auto [found, fresh] = ids_.try_emplace(text, 0);
  if (!fresh) {
    Term& known = *terms_[static_cast<size_t>(found->second)];
    ++known.users;
    known.openers += opens ? 1 : 0;
    return found->second;
  }
  const TermId id = TakeId(&unused_, &terms_);
  found->second = id;
  terms_[static_cast<size_t>(id)] = std::make_unique<Term>();
  Term& term = *terms_[static_cast<size_t>(id)];
  term.at = AddLabel(where, label, std::move(nodes));
  term.at_id = std::move(where);
  term.id = std::move(text);
  term.indexed = IndexOf(selectors);
  term.by_labels = absl::c_any_of(selectors, [](const PodSelector& each) { return each.by_labels; });
  term.selectors = std::move(selectors);
  term.users = 1;
  term.openers = opens ? 1 : 0;
  if (term.indexed.empty()) {
    not_indexed_.insert(id);
    for (ClassId cls = 0; cls < static_cast<ClassId>(known_.size()); ++cls) {
      if (known_[static_cast<size_t>(cls)] != nullptr) Connect(id, cls);
    }
    return id;
  }
  by_pair_[term.indexed].insert(id);
  if (const auto some = classes_by_pair_.find(term.indexed); some != classes_by_pair_.end()) {
    for (const ClassId cls : some->second) Connect(id, cls);
  }
  return id;
}

// Connects the term with the class if it selects it, and counts the class's pods.
void PodAffinity::Connect(TermId id, ClassId cls) {
  Term& term = *terms_[static_cast<size_t>(id)];
  Known& known = *known_[static_cast<size_t>(cls)];
  if (!Selects(term, known) || !term.selected_classes.insert(cls).second) return;
  known.selected_by.insert(id);
  for (const bool future : {false, true}) {
    for (const auto& [node, pods] : ChargedOf(cls, future)) {
      const DomainId domain = DomainOf(node, term);
      if (domain == kNoDomain) continue;
      (future ? term.future_pods : term.pods).Add(domain, pods);
      if (!future) ++term.version;
    }
  }
}

void PodAffinity::ReleaseTerm(TermId id, bool opens) {
  Term& term = *terms_[static_cast<size_t>(id)];
  term.openers -= opens ? 1 : 0;
  if (--term.users > 0) return;
  for (const ClassId cls : term.selected_classes) known_[static_cast<size_t>(cls)]->selected_by.erase(id);
  if (term.indexed.empty()) {
    not_indexed_.erase(id);
  } else if (const auto pair = by_pair_.find(term.indexed); pair->second.erase(id) > 0 && pair->second.empty()) {
    by_pair_.erase(pair);
  }
  const auto label = labels_.find(term.at_id);
  if (--label->second->users == 0) labels_.erase(label);
  ids_.erase(term.id);
  terms_[static_cast<size_t>(id)].reset();
  unused_.push_back(id);
}

// --- classes ---

bool PodAffinity::AddClass(ClassId cls, const PodClass& added) {
  const PodTemplate& shape = added.shape;
  const PodAffinityRules rules = preferred_ ? PreferredTerms(shape.preferences) : shape.pod_affinity;
  const absl::string_view label_identity = preferred_ ? added.label_identity.preferred : added.label_identity.required;
  if (rules.empty() && label_identity.empty()) return false;
  if (static_cast<size_t>(cls) >= known_.size()) known_.resize(static_cast<size_t>(cls) + 1);
  known_[static_cast<size_t>(cls)] = std::make_unique<Known>();
  Known& known = *known_[static_cast<size_t>(cls)];
  const size_t end = label_identity.find('\0');
  if (end != absl::string_view::npos) {
    known.name_space = std::string(label_identity.substr(0, end));
    known.labels = UnpackLabels(label_identity.substr(end + 1));
    for (const TermId id : std::vector<TermId>(not_indexed_.begin(), not_indexed_.end())) Connect(id, cls);
    for (const auto& [key, value] : known.labels) {
      const std::string pair = Pair(key, value);
      classes_by_pair_[pair].insert(cls);
      if (const auto terms = by_pair_.find(pair); terms != by_pair_.end()) {
        for (const TermId id : terms->second) Connect(id, cls);
      }
    }
  }
  // A pod counts for an affinity only if all of its terms select it.
  std::vector<PodSelector> wanted;
  for (const PodAffinityTerm& term : rules.affinity) wanted.push_back(term.selector);
  for (const PodAffinityTerm& term : rules.affinity) {
    known.affinity.push_back(AcquireTerm(term.topology_key, {}, wanted, /*opens=*/true));
  }
  for (const PodAffinityTerm& term : rules.anti_affinity) {
    known.anti.push_back(AcquireTerm(term.topology_key, {}, {term.selector}, /*opens=*/false));
  }
  for (const SpreadConstraint& each : rules.spread) {
    known.spread.emplace_back();
    known.spread.back().term = AcquireTerm(each.topology_key, FilterOf(each, shape), {each.selector}, /*opens=*/true);
    known.spread.back().max_skew = each.max_skew;
    known.spread.back().min_domains = each.min_domains;
  }
  return true;
}

void PodAffinity::RemoveClass(ClassId cls) {
  Known& known = *known_[static_cast<size_t>(cls)];
  MUSTER_CHECK(!charged_.contains(cls) && !future_.contains(cls));
  for (const TermId id : known.affinity) ReleaseTerm(id, /*opens=*/true);
  for (const TermId id : known.anti) ReleaseTerm(id, /*opens=*/false);
  for (const Spread& each : known.spread) ReleaseTerm(each.term, /*opens=*/true);
  for (const TermId id : known.selected_by) terms_[static_cast<size_t>(id)]->selected_classes.erase(cls);
  for (const auto& [key, value] : known.labels) {
    const auto pair = classes_by_pair_.find(Pair(key, value));
    pair->second.erase(cls);
    if (pair->second.empty()) classes_by_pair_.erase(pair);
  }
  known_[static_cast<size_t>(cls)].reset();
}

// --- nodes and charges ---

void PodAffinity::OnNodeChanged(NodeId node) {
  ++epoch_;
  for (const auto& known : labels_) {
    Label& label = *known.second;
    if (static_cast<size_t>(node) >= label.domain_of.size()) {
      label.domain_of.resize(static_cast<size_t>(node) + 1, kNoDomain);
    }
    const DomainId now = DomainOfLabel(node, &label);
    DomainId& domain = label.domain_of[static_cast<size_t>(node)];
    if (domain == now) continue;
    const auto count = [&](int64_t sign) {
      for (const bool future : {false, true}) {
        for (const auto& [cls, nodes] : ChargesOf(future)) {
          const auto here = nodes.find(node);
          if (here != nodes.end()) Count(node, Of(cls), sign * here->second, future, &label);
        }
      }
    };
    const Node& of = cluster_->node(node);
    const bool any = of.used_pods + of.reserved_pods + of.future_reserved_pods > 0;
    if (any) count(-1);
    domain = now;
    if (any) count(1);
  }
}

void PodAffinity::Count(NodeId node, const Known& known, int64_t times, bool future, const Label* only) {
  const auto add = [&](TermId id, DomainCounts Term::*counts) {
    Term& term = *terms_[static_cast<size_t>(id)];
    if (only != nullptr && term.at != only) return;
    const DomainId domain = DomainOf(node, term);
    if (domain == kNoDomain) return;
    (term.*counts).Add(domain, times);
    if (!future) ++term.version;
  };
  for (const TermId id : known.selected_by) add(id, future ? &Term::future_pods : &Term::pods);
  for (const TermId id : known.anti) add(id, future ? &Term::future_holders : &Term::holders);
}

bool PodAffinity::Charge(NodeId node, ClassId cls, int64_t times, bool future) {
  Charges& charges = future ? future_ : charged_;
  auto& nodes = charges[cls];
  const auto here = nodes.try_emplace(node, 0).first;
  here->second += times;
  MUSTER_CHECK(here->second >= 0);
  if (here->second == 0) nodes.erase(here);
  if (nodes.empty()) charges.erase(cls);
  const Known& known = Of(cls);
  Count(node, known, times, future, nullptr);
  return times > 0 && !future && absl::c_any_of(known.selected_by, [&](TermId id) { return TermAt(id).openers > 0; });
}

int64_t PodAffinity::CountSelected(NodeId node, ClassId cls, size_t term) const {
  const Term& of = TermAt(Of(cls).anti[term]);
  const DomainId domain = DomainOf(node, of);
  return domain == kNoDomain ? 0 : of.pods.In(domain) + of.future_pods.In(domain);
}

bool PodAffinity::SelectsItself(ClassId cls, size_t term) const {
  return TermAt(Of(cls).anti[term]).selected_classes.contains(cls);
}

void PodAffinity::Rebuild() {
  const Charges charged = std::exchange(charged_, {});
  const Charges of_future = std::exchange(future_, {});
  for (ClassId cls = 0; cls < cluster_->class_limit(); ++cls) {
    if (cluster_->has_class(cls)) AddClass(cls, cluster_->pod_class(cls));
  }
  for (const bool future : {false, true}) {
    for (const auto& [cls, nodes] : future ? of_future : charged) {
      for (const auto& [node, pods] : nodes) Charge(node, cls, pods, future);
    }
  }
}

}  // namespace muster
