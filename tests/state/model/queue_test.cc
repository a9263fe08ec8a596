// muster_model: the rules of queues and their tree (SPEC ).
#include "state/model/queue.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

// SPEC Q-1: each error is reported, with the name of its queue.
TEST(QueueRulesTest, Problems_NameTheirQueue) {
  const auto problems = [](const std::vector<QueueSpec>& queues) {
    std::string out;
    for (const QueueProblem& problem : ValidateQueues({.queues = queues})) out += ToString(problem) + "\n";
    return out;
  };
  const ResourceList two = {{"cpu", 2'000}};
  const ResourceList one = {{"cpu", 1'000}};
  EXPECT_EQ(problems({{.name = "a", .quota = two, .limit = two}, {.name = "b", .parent = "a", .quota = two}}), "");
  EXPECT_EQ(problems({{.name = "a", .quota = two, .limit = one}, {.name = "b", .parent = "a", .quota = two}}),
            "queue a: its quota of cpu: 2 is above the limit of its own, cpu: 1\n"
            "queue b: its quota of cpu: 2 is above the limit of queue a, cpu: 1\n");
  EXPECT_EQ(problems({{.name = "a", .limit = {{"cpu", -1}}, .max_applications = -1}, {.name = "a"}}),
            "queue a: limit: resource cpu: -1 is out of range; expected 0 to 9007199254740992\n"
            "queue a: maxApplications: -1; expected 1 or more, or 0 for any number\n"
            "queue a: is declared twice\n");
  EXPECT_EQ(problems({{.name = "a", .parent = "x"},
                      {.name = "b", .parent = "a"},
                      {.name = "c", .parent = "default"},
                      {.name = "default"}}),
            "queue a: its parent x does not exist; expected the name of another queue, or none\n"
            "queue c: its parent, queue default, takes the gangs that name no queue, and has no child queues\n");
}

TEST(QueueTreeTest, Depths_CountFromTop) {
  QueueTree tree;
  EXPECT_EQ(tree.ResolveQueue("a").refusal, Reason()) << "without queues, every gang is accepted";
  tree.Set(
      {.queues = {{.name = "c", .parent = "b"}, {.name = "b", .parent = "a"}, {.name = "a", .limit = {{"x", 1}}}}});
  for (const auto& [name, depth] : {std::pair("a", 0), {"b", 1}, {"c", 2}, {"default", 0}}) {
    EXPECT_EQ(tree.at(tree.Find(name)).depth, depth) << name;
  }
  EXPECT_EQ(tree.resources(), std::vector<std::string>{"x"});
  tree.Set({.queues = {{.name = "a"}}});
  EXPECT_TRUE(tree.resources().empty());
}

}  // namespace
}  // namespace muster
