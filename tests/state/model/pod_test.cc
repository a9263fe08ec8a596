// muster_model: pods with equal templates have one key, and so one class.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "state/base/archive.h"
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

// The template that a key was made of.
PodTemplate ReadBack(const std::string& key) {
  PodTemplate p;
  archive::Reader reader(key);
  const auto read = [&](auto&... fields) { (archive::Pass(reader, fields), ...); };
  read(p.requests, p.node_selector, p.has_affinity, p.affinity, p.tolerations, p.host_ports, p.pod_affinity,
       p.preferences);
  EXPECT_TRUE(reader.ok() && reader.done());
  return p;
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

// Each field changes the key, and a key is read back whole: no two templates that differ have one key.
TEST(PodTemplateTest, AnyDifference_ChangesKey) {
  const std::vector<std::function<void(PodTemplate*)>> changes = {
      [](PodTemplate* p) { p->requests["cpu"] = 1'001; },
      [](PodTemplate* p) { p->requests.erase("memory"); },
      [](PodTemplate* p) { p->requests["nvidia.com/gpu"] = 1; },
      [](PodTemplate* p) { p->node_selector["zone"] = "b"; },
      [](PodTemplate* p) { p->node_selector["rack"] = "a"; },
      [](PodTemplate* p) { p->node_selector.clear(); },
      [](PodTemplate* p) { p->node_selector.clear(), p->node_selector["row"] = "a"; },
      [](PodTemplate* p) { p->node_selector.clear(), p->node_selector["zon"] = "ea"; },
      [](PodTemplate* p) { p->has_affinity = false; },
      [](PodTemplate* p) { p->affinity.clear(); },
      [](PodTemplate* p) { p->affinity.push_back(p->affinity[0]); },
      [](PodTemplate* p) { p->affinity.push_back({}); },
      [](PodTemplate* p) { p->affinity[0].expressions[0].key = "generation"; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].op = SelectorOperator::kNotIn; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values = {"7"}; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values = {"78"}; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values[0].swap(p->affinity[0].expressions[0].values[1]); },
      [](PodTemplate* p) { p->affinity[0].expressions.emplace_back().key = "zone"; },
      [](PodTemplate* p) { p->affinity[0].fields.emplace_back().values = {"n"}; },
      [](PodTemplate* p) { p->affinity[0].fields.emplace_back().values = {"m"}; },
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
      [](PodTemplate* p) { p->host_ports.emplace_back().port = 81; },
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
    EXPECT_EQ(ReadBack(changed.Key()).Key(), changed.Key()) << i;
    EXPECT_EQ(changed.Family() == Full().Family(), Stripped(changed).Key() == Stripped(Full()).Key()) << i;
  }
  PodTemplate more = Full();
  more.requests["cpu"] += 1;
  more.host_ports.clear();
  more.pod_affinity = PodAffinityRules();
  more.preferences = Preferences();
  EXPECT_EQ(more.Family(), Full().Family());
}

}  // namespace
}  // namespace muster
