// The room muster_model: pods with equal templates are one class.
#include "state/model/pod.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

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
  return shape;
}

TEST(PodTemplateRoom, EqualTemplatesHaveOneKey) {
  EXPECT_EQ(Full().Key(), Full().Key());
  PodTemplate with_nothing = Full();
  with_nothing.requests["nvidia.com/gpu"] = 0;
  EXPECT_EQ(with_nothing.Key(), Full().Key()) << "nothing of a resource is the same as not naming it";
}

TEST(PodTemplateRoom, WhateverDiffersMakesAnotherKey) {
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
  };
  std::map<std::string, size_t> keys = {{Full().Key(), changes.size()}};
  for (size_t i = 0; i < changes.size(); ++i) {
    PodTemplate changed = Full();
    changes[i](&changed);
    const auto [before, fresh] = keys.emplace(changed.Key(), i);
    EXPECT_TRUE(fresh) << "change " << i << " has the key of change " << before->second;
  }
}

}  // namespace
}  // namespace muster
