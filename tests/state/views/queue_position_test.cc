// SPEC S-5, G-9: the position of a gang in its queue, and the gangs before it.
#include "tests/state/machine/machine_fixture.h"

namespace muster {
namespace {

class QueuePositionTest : public WholeMachine {
 protected:
  void Declare() {
    QueueRules rules;
    for (const auto& [name, parent] : {std::pair("org", ""), {"a", "org"}, {"b", "org"}, {"none", "org"}}) {
      rules.queues.emplace_back();
      rules.queues.back().name = name;
      rules.queues.back().parent = parent;
      if (rules.queues.back().name == "none") rules.queues.back().limit = {{"cpu", 0}};
    }
    Apply(SetQueues{rules});
  }
  // A gang of one pod that waits: there is no node.
  void Put(const std::string& gang, const std::string& queue, int32_t priority = 0, int32_t min = 1) {
    PodDescription pod = Member(gang + "-1", gang, min);
    pod.gang.declaration.Mutable().queue = queue;
    pod.priority = priority;
    pod.created_ms = now_ms_++;
    Apply(UpsertPod{pod});
  }
  // "place/places queue: gangs before it, in order"; read in steps of `limit` gangs.
  std::string Before(const std::string& gang, int32_t limit = 1) { return Format(&GangAt(gang), kNoQueue, limit); }
  std::string Of(const std::string& queue) { return Format(nullptr, machine_.reader().queues.tree().Find(queue), 2); }

 private:
  std::string Format(const Gang* gang, QueueId queue, int32_t limit) {
    QueuePositionCursor read;
    QueuePositionView view;
    while (!machine_.reader().queues.ViewPosition(gang, queue, limit, &read, &view)) {
    }
    std::string out = absl::StrCat(view.place, "/", view.places, " ", view.queue, ":");
    for (const QueuedGangView& each : view.first) {
      absl::StrAppend(&out, " ", each.name);
      EXPECT_EQ(each.name_space, "d");
      EXPECT_FALSE(each.reason.none()) << each.name << " was tried";
    }
    return out;
  }
};

TEST_F(QueuePositionTest, NoQueuesDeclared_AllGangsShareOneQueue) {
  Put("first", "");
  Put("second", "somewhere");
  Put("short", "", 0, 2);
  Put("urgent", "", 7);
  EXPECT_EQ(Before("urgent"), "1/3 :");
  EXPECT_EQ(Before("first"), "2/3 : urgent");
  EXPECT_EQ(Before("second"), "3/3 : urgent first");
  EXPECT_EQ(Before("second", 100), Before("second"));
  EXPECT_EQ(Before("short"), "0/0 :") << "it lacks pods: it does not wait for its turn";
  Apply(UpsertNode{SmallNode("n", 1)});
  EXPECT_EQ(Before("urgent"), "0/0 :") << "it has a plan";
  EXPECT_EQ(Before("second"), "2/2 : first");
}

TEST_F(QueuePositionTest, QueuesDeclared_EachHasItsOwnOrder) {
  Declare();
  Put("a1", "a");
  Put("b1", "b");
  Put("a2", "a");
  Put("d1", "");
  Put("never-1", "none");
  Put("never-2", "none");
  EXPECT_EQ(Before("never-2"), "1/1 none:") << "gangs that can never run delay no other gang";
  EXPECT_EQ(Before("a2"), "2/2 a: a1");
  EXPECT_EQ(Before("b1"), "1/1 b:");
  EXPECT_EQ(Before("d1"), "1/1 default:");
  EXPECT_EQ(Of("a"), "0/2 : a1 a2");
  EXPECT_EQ(Of("org"), "0/3 : a1 b1 a2") << "those below it, too";
}

TEST_F(QueuePositionTest, Group_HasOnePositionAndFirstTenAreListed) {
  for (const char* gang : {"x", "y"}) {
    PodDescription pod = Member(absl::StrCat(gang, "-1"), gang, 1);
    pod.gang.declaration.Mutable().groups = {"d/x", "d/y"};
    Apply(UpsertPod{pod});
  }
  for (int i = 10; i < 24; ++i) Put(absl::StrCat("g", i), "");
  EXPECT_EQ(Before("x"), "1/15 :");
  EXPECT_EQ(Before("y"), Before("x"));
  EXPECT_EQ(Before("g23"), "15/15 : x g10 g11 g12 g13 g14 g15 g16 g17 g18");
}

}  // namespace
}  // namespace muster
