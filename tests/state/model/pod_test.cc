// muster_model: pods with equal templates have one key, and so one class.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/model/pod_template.h"

namespace muster {
namespace {

PodTemplate Full() {
  PodTemplate shape;
  shape.requests = {{"cpu", 1'000}, {"memory", 5}};
  shape.node_selector = {{"zone", "a"}};
  shape.has_affinity = true;
  shape.affinity = {{{{"gen", SelectorOperator::kIn, {"7", "8"}}}, {}}};
  shape.tolerations = {{"gpu", true, "", TaintEffect::kNoSchedule}};
  shape.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
  const PodSelector web = {false, {"d", "e"}, {{"app", SelectorOperator::kIn, {"web"}}}};
  shape.pod_affinity = {{{"zone", web}}, {{"rack", web}}, {{"row", 1, 2, web}}};
  shape.preferences = {{{{{{"gen", SelectorOperator::kIn, {"7", "8"}}}, {}}, 10}}, {{{"zone", web}, -5}}};
  return shape;
}

// The template reduced to what distinguishes families.
PodTemplate Stripped(PodTemplate shape) {
  shape.host_ports.clear();
  shape.pod_affinity = PodAffinityRules();
  shape.preferences = Preferences();
  for (auto& [name, amount] : shape.requests) amount = std::min<int64_t>(amount, 1);
  return shape;
}

TEST(PodTemplateTest, EqualTemplates_ShareKey) {
  EXPECT_EQ(Full().Key(), Full().Key());
  PodTemplate with_nothing = Full();
  with_nothing.requests["nvidia.com/gpu"] = 0;
  EXPECT_EQ(with_nothing.Key(), Full().Key()) << "nothing of a resource is the same as not naming it";
}

TEST(PodTemplateTest, AnyDifference_ChangesKey) {
  const std::vector<std::function<void(PodTemplate*)>> changes = {
      [](PodTemplate* p) { p->requests["cpu"] = 1'001; },
      [](PodTemplate* p) { p->requests.erase("memory"); },
      [](PodTemplate* p) { p->requests["nvidia.com/gpu"] = 1; },
      [](PodTemplate* p) { p->node_selector["zone"] = "b"; },
      [](PodTemplate* p) { p->node_selector["rack"] = "a"; },
      [](PodTemplate* p) { p->node_selector.clear(); },
      [](PodTemplate* p) {
        p->node_selector = {{"row", "a"}};
      },
      [](PodTemplate* p) {
        p->node_selector = {{"zon", "ea"}};
      },
      [](PodTemplate* p) { p->has_affinity = false; },
      [](PodTemplate* p) { p->affinity.clear(); },
      [](PodTemplate* p) { p->affinity.push_back(p->affinity[0]); },
      [](PodTemplate* p) { p->affinity.push_back({}); },
      [](PodTemplate* p) { p->affinity[0].expressions[0].key = "generation"; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].op = SelectorOperator::kNotIn; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values = {"7"}; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values = {"78"}; },
      [](PodTemplate* p) {
        p->affinity[0].expressions[0].values = {"8", "7"};
      },
      [](PodTemplate* p) {
        p->affinity[0].expressions.push_back({"zone", SelectorOperator::kExists, {}});
      },
      [](PodTemplate* p) {
        p->affinity[0].fields = {{"metadata.name", SelectorOperator::kIn, {"n"}}};
      },
      [](PodTemplate* p) {
        p->affinity[0].fields = {{"metadata.name", SelectorOperator::kIn, {"m"}}};
      },
      [](PodTemplate* p) { std::swap(p->affinity[0].expressions, p->affinity[0].fields); },
      [](PodTemplate* p) { p->tolerations.clear(); },
      [](PodTemplate* p) { p->tolerations.push_back(p->tolerations[0]); },
      [](PodTemplate* p) { p->tolerations[0].key = "cpu"; },
      [](PodTemplate* p) { p->tolerations[0].value = "yes"; },
      [](PodTemplate* p) { p->tolerations[0].exists = false; },
      [](PodTemplate* p) { p->tolerations[0].effect = TaintEffect::kPreferNoSchedule; },
      [](PodTemplate* p) { p->tolerations[0].effect = TaintEffect::kNoExecute; },
      [](PodTemplate* p) { p->tolerations[0].effect.reset(); },
      [](PodTemplate* p) { p->host_ports.clear(); },
      [](PodTemplate* p) {
        p->host_ports.push_back({Protocol::kTcp, 81, "0.0.0.0"});
      },
      [](PodTemplate* p) { p->host_ports[0].protocol = Protocol::kUdp; },
      [](PodTemplate* p) { p->host_ports[0].port = 8'080; },
      [](PodTemplate* p) { p->host_ports[0].ip = "10.0.0.1"; },
      [](PodTemplate* p) { p->pod_affinity = PodAffinityRules(); },
      [](PodTemplate* p) { std::swap(p->pod_affinity.affinity, p->pod_affinity.anti_affinity); },
      [](PodTemplate* p) { p->pod_affinity.affinity.clear(); },
      [](PodTemplate* p) { p->pod_affinity.anti_affinity.clear(); },
      [](PodTemplate* p) { p->pod_affinity.spread.clear(); },
      [](PodTemplate* p) { p->pod_affinity.affinity[0].topology_key = "host"; },
      [](PodTemplate* p) { p->pod_affinity.affinity[0].selector.all_namespaces = true; },
      [](PodTemplate* p) { p->pod_affinity.affinity[0].selector.namespaces = {"de"}; },
      [](PodTemplate* p) { p->pod_affinity.affinity[0].selector.requirements.clear(); },
      [](PodTemplate* p) { p->pod_affinity.anti_affinity[0].selector.requirements[0].op = SelectorOperator::kNotIn; },
      [](PodTemplate* p) { p->pod_affinity.spread[0].max_skew = 2; },
      [](PodTemplate* p) { p->pod_affinity.spread[0].min_domains = 1; },
      [](PodTemplate* p) { p->pod_affinity.spread[0].selector.namespaces.clear(); },
      [](PodTemplate* p) { p->pod_affinity.affinity[0].selector.by_labels = true; },
      [](PodTemplate* p) {
        p->pod_affinity.affinity[0].selector.by_labels = true;
        p->pod_affinity.affinity[0].selector.namespace_labels = {{NamespaceKey("team"), SelectorOperator::kExists, {}}};
      },
      [](PodTemplate* p) { p->pod_affinity.spread[0].honor_affinity = false; },
      [](PodTemplate* p) { p->pod_affinity.spread[0].honor_taints = true; },
      [](PodTemplate* p) { p->preferences = Preferences(); },
      [](PodTemplate* p) { p->preferences.nodes.clear(); },
      [](PodTemplate* p) { p->preferences.pod_affinity.clear(); },
      [](PodTemplate* p) { p->preferences.nodes[0].weight = 11; },
      [](PodTemplate* p) { p->preferences.nodes[0].term.expressions[0].values = {"7"}; },
      [](PodTemplate* p) { std::swap(p->preferences.nodes[0].term.expressions, p->preferences.nodes[0].term.fields); },
      [](PodTemplate* p) { p->preferences.pod_affinity[0].weight = 5; },
      [](PodTemplate* p) { p->preferences.pod_affinity[0].term.topology_key = "rack"; },
      [](PodTemplate* p) { p->preferences.pod_affinity[0].term.selector.namespaces = {"d"}; },
  };
  std::map<std::string, size_t> keys = {{Full().Key(), changes.size()}};
  for (size_t i = 0; i < changes.size(); ++i) {
    PodTemplate changed = Full();
    changes[i](&changed);
    const auto [before, fresh] = keys.emplace(changed.Key(), i);
    EXPECT_TRUE(fresh) << "change " << i << " has the key of change " << before->second;
    EXPECT_EQ(changed.Family() == Full().Family(), Stripped(changed).Key() == Stripped(Full()).Key()) << i;
  }
  PodTemplate more = Full();
  more.requests["cpu"] += 1;
  more.host_ports.clear();
  more.pod_affinity = PodAffinityRules();
  more.preferences = Preferences();
  EXPECT_EQ(more.Family(), Full().Family());
}

// All fields of a template as one comparable value.
auto ComparableFields(const PodTemplate& p) {
  ResourceList requests;
  for (const auto& [name, amount] : p.requests) {
    if (amount != 0) requests.emplace(name, amount);
  }
  using Requirements = std::vector<std::tuple<std::string, SelectorOperator, std::vector<std::string>>>;
  const auto requirements = [](const std::vector<SelectorRequirement>& list) {
    Requirements out;
    for (const SelectorRequirement& each : list) out.emplace_back(each.key, each.op, each.values);
    return out;
  };
  std::vector<std::pair<Requirements, Requirements>> affinity;
  for (const NodeSelectorTerm& term : p.affinity) {
    affinity.emplace_back(requirements(term.expressions), requirements(term.fields));
  }
  std::vector<std::tuple<std::string, bool, std::string, int>> tolerations;
  for (const Toleration& each : p.tolerations) {
    tolerations.emplace_back(each.key, each.exists, each.value, each.effect ? static_cast<int>(*each.effect) : -1);
  }
  std::vector<std::tuple<Protocol, int32_t, std::string>> ports;
  for (const HostPort& each : p.host_ports) ports.emplace_back(each.protocol, each.port, each.ip);
  return std::make_tuple(std::move(requests), p.node_selector, p.has_affinity, std::move(affinity),
                         std::move(tolerations), std::move(ports));
}

// One port with an address that looks like the rest of a list, against two ports.
TEST(PodTemplateTest, AdjacentNumbers_StaySeparateInKey) {
  PodTemplate one;
  PodTemplate other;
  one.host_ports = {{Protocol::kTcp, 8, "0/75:abcde"}};
  other.host_ports = {{Protocol::kTcp, 81, ""}, {Protocol::kTcp, 7, "abcde"}};
  EXPECT_NE(one.Key(), other.Key());
}

// Random templates with strings that look like parts of a key: different templates have different keys.
TEST(PodTemplateTest, HostileStrings_KeysDoNotCollide) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<std::string> nasty = {"",    "0",    "1",   ":",          "0:",  "1:",        "1:0", "|s",
                                          "|t",  "|p",   ";",   "=1;",        "0/1", "0/10:",     "r1",  "o0v1",
                                          "E-1", "Q-1;", "0/8", "0/75:abcde", "1;",  "0;0;-0;0;", "a0;", "\n"};
  const auto text = [&] {
    return below(2) == 0 ? nasty[below(nasty.size())] : nasty[below(nasty.size())] + nasty[below(nasty.size())];
  };
  const auto requirements = [&] {
    std::vector<SelectorRequirement> out(below(3));
    for (SelectorRequirement& each : out) {
      each = {text(), static_cast<SelectorOperator>(below(3)), {}};
      for (size_t n = below(3); n > 0; --n) each.values.push_back(text());
    }
    return out;
  };
  std::map<std::string, PodTemplate> seen;
  for (int i = 0; i < 20'000; ++i) {
    PodTemplate p;
    for (size_t n = below(2); n > 0; --n) p.requests[text()] = static_cast<int64_t>(below(12));
    for (size_t n = below(3); n > 0; --n) p.node_selector[text()] = text();
    p.has_affinity = below(2) == 0;
    for (size_t n = p.has_affinity ? below(3) : 0; n > 0; --n) p.affinity.push_back({requirements(), requirements()});
    for (size_t n = below(2); n > 0; --n) p.tolerations.push_back({text(), below(2) == 0, text(), std::nullopt});
    const std::vector<int32_t> ports = {0, 1, 8, 81, 810};
    for (size_t n = below(3); n > 0; --n) p.host_ports.push_back({Protocol::kTcp, ports[below(ports.size())], text()});
    const auto [at, fresh] = seen.emplace(p.Key(), p);
    ASSERT_TRUE(fresh || ComparableFields(at->second) == ComparableFields(p))
        << "seed " << kSeed << ", template " << i << ": " << p.Key();
  }
}

}  // namespace
}  // namespace muster
