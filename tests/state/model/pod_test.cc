// muster_model: pods with equal templates have one key, and so one class.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <type_traits>
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
  EXPECT_TRUE(Full() == Full());
  PodTemplate with_nothing = Full();
  with_nothing.requests["nvidia.com/gpu"] = 0;
  EXPECT_EQ(with_nothing.Key(), Full().Key()) << "nothing of a resource is the same as not naming it";
}

// Changes the number, text or list at position `at` of a value, in the order of its members.
struct Changer {
  static constexpr bool kReads = false;
  int at;
  void Number(uint64_t /*value*/) {}
  void Bytes(absl::string_view /*bytes*/) {}
  template <typename T>
  requires((archive::kIsNumber<T> || archive::Sequence<T>)&&!std::is_const_v<T>) void Special(T& value) {
    const bool here = at-- == 0;
    if constexpr (std::is_same_v<T, bool>) {
      value = value != here;
    } else if constexpr (archive::kIsNumber<T>) {
      value = static_cast<T>(static_cast<int64_t>(value) + (here ? 1 : 0));
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (here) value += 'x';
    } else {
      for (auto& part : value) archive::Pass(*this, part);
      if (here) value.emplace_back();
    }
  }
};

// Each field changes the key, and a key is read back whole: no two templates that differ have one key.
TEST(PodTemplateTest, AnyDifference_ChangesKey) {
  std::map<std::string, size_t> keys = {{Full().Key(), 0}};
  const auto check = [&](const PodTemplate& changed) {
    const auto [before, fresh] = keys.emplace(changed.Key(), keys.size());
    EXPECT_TRUE(fresh) << "change " << keys.size() << " has the key of change " << before->second;
    EXPECT_EQ(ReadBack(changed.Key()).Key(), changed.Key());
    EXPECT_EQ(changed.Family() == Full().Family(), Stripped(changed).Key() == Stripped(Full()).Key()) << keys.size();
  };
  for (int at = 0, left = -1; left < 0; ++at) {  // until there is no such position
    PodTemplate changed = Full();
    Changer changer{at};
    archive::Pass(changer, changed);
    left = changer.at;
    if (left < 0) check(changed);
  }
  EXPECT_GT(keys.size(), 50U) << "every field was changed";
  const std::vector<std::function<void(PodTemplate*)>> changes = {
      [](PodTemplate* p) { p->requests.erase("memory"); },
      [](PodTemplate* p) { p->requests["nvidia.com/gpu"] = 1; },
      [](PodTemplate* p) { p->node_selector["rack"] = "a"; },
      [](PodTemplate* p) { p->node_selector.clear(); },
      [](PodTemplate* p) { p->node_selector.clear(), p->node_selector["row"] = "a"; },
      [](PodTemplate* p) { p->node_selector.clear(), p->node_selector["zon"] = "ea"; },
      [](PodTemplate* p) { p->affinity.clear(); },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values = {"78"}; },
      [](PodTemplate* p) { p->affinity[0].expressions[0].values[0].swap(p->affinity[0].expressions[0].values[1]); },
      [](PodTemplate* p) { std::swap(p->affinity[0].expressions, p->affinity[0].fields); },
      [](PodTemplate* p) { p->tolerations[0].effect.reset(); },
      [](PodTemplate* p) { p->pod_affinity = PodAffinityRules(); },
      [](PodTemplate* p) { std::swap(p->pod_affinity.affinity, p->pod_affinity.anti_affinity); },
      [](PodTemplate* p) { p->preferences = Preferences(); },
      [](PodTemplate* p) { std::swap(p->preferences.nodes[0].term.expressions, p->preferences.nodes[0].term.fields); },
  };
  for (const auto& change : changes) {
    PodTemplate changed = Full();
    change(&changed);
    check(changed);
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
