// muster_model: the rules of queues and their tree (SPEC ).
#include "state/model/queue.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

// SPEC Q-1: each error is reported, with the name of its queue.
TEST(QueueRulesTest, Problems_NameTheirQueue) {
  const ResourceList one = {{"cpu", 1'000}};
  const ResourceList two = {{"cpu", 2'000}};
  QueueRules rules;
  rules.queues = {
      {"a", "", two, one}, {"b", "a", two, two}, {"c", "", {}, {{"cpu", -1}}, {}, 0, -1}, {"c"}, {"d", "x"}, {"e", "d"},
      {"f", "default"},    {"default"}};
  EXPECT_EQ(absl::StrJoin(ValidateQueues(rules), "\n", [](auto* out, const auto& each) { *out += ToString(each); }),
            "queue a: its quota of cpu: 2 is above the limit of its own, cpu: 1\n"
            "queue c: limit: resource cpu: -1 is out of range; expected 0 to 9007199254740992\n"
            "queue c: maxApplications: -1; expected 1 or more, or 0 for any number\n"
            "queue c: is declared twice\n"
            "queue b: its quota of cpu: 2 is above the limit of queue a, cpu: 1\n"
            "queue d: its parent x does not exist; expected the name of another queue, or none\n"
            "queue f: its parent, queue default, takes the gangs that name no queue, and has no child queues");
}

TEST(QueueTreeTest, Depths_CountFromTop) {
  QueueTree tree;
  EXPECT_TRUE(tree.ResolveQueue("a").refusal.none()) << "without queues, every gang is accepted";
  tree.Set({.queues = {{"c", "b"}, {"b", "a"}, {"a", "", {{"x", 1}}}}});
  std::string depths;
  for (const char* name : {"a", "b", "c", "default"}) absl::StrAppend(&depths, tree.at(tree.Find(name)).depth);
  EXPECT_EQ(depths, "0120");
  EXPECT_EQ(tree.WarningOf("z"), "there is no queue z that accepts gangs; the gang is charged to no queue");
  tree.Set({});
  EXPECT_TRUE(tree.resources().empty());
}

}  // namespace
}  // namespace muster
