// SPEC P-1: a statement allocates, releases and evicts, and rolls back exactly.
#include "state/cluster/statement.h"

#include <random>
#include <utility>
#include <vector>

#include "tests/support/small_cluster.h"

namespace muster {
namespace {

class StatementTest : public ClusterTest {};

TEST_F(StatementTest, EvictAndRelease_MakeRoomUntilRollback) {
  const NodeId a = Put("a", 4);
  const ClassId cls = Acquire(2);
  Use(a, cls);
  Reserve(a, cls);
  const uint64_t before = HashOf(cluster_);
  const int64_t log = cluster_.log_end();
  {
    Statement outer(&cluster_);
    EXPECT_EQ(cluster_.Room(a, cls, 5), 0);
    outer.Evict(a, cls, 1);
    EXPECT_EQ(cluster_.Room(a, cls, 5), 1);
    outer.Release(a, cls, ChargeKind::kReserved, 1);
    EXPECT_EQ(cluster_.Room(a, cls, 5), 2);
    Statement inner(&cluster_);
    inner.Allocate(a, cls, 2);
    EXPECT_EQ(cluster_.Room(a, cls, 5), 0);
  }
  EXPECT_EQ(HashOf(cluster_), before);
  for (const std::string& line : LogSince(log)) EXPECT_EQ(line, "a") << "a trial gains nothing";
}

// Random statements over nodes with plain pods, host ports and pods that repel each other: after each rollback the
// cluster is as it was at the checkpoint.
TEST_F(StatementTest, RandomOperations_RollBackToEveryCheckpoint) {
  std::vector<NodeId> nodes;
  for (const char* name : {"a", "b", "c"}) nodes.push_back(Put(name, 20));
  PodTemplate port = Wants({{"cpu", 1}});
  port.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
  const std::vector<ClassId> classes = {Acquire(1), Acquire(3), Acquire(port)};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 engine(seed);
    const auto below = [&](uint64_t limit) { return static_cast<size_t>(engine() % limit); };
    std::vector<std::pair<NodeId, ClassId>> running;
    for (const NodeId node : nodes) {
      for (const ClassId cls : classes) {
        if (cluster_.Room(node, cls, 1) == 0 || below(2) == 0) continue;
        Use(node, cls);
        running.emplace_back(node, cls);
      }
    }
    const std::vector<std::pair<NodeId, ClassId>> charged = running;
    Statement statement(&cluster_);
    std::vector<std::pair<Statement::Checkpoint, uint64_t>> marks;
    std::vector<std::vector<std::pair<NodeId, ClassId>>> left;
    for (int step = 0; step < 30; ++step) {
      marks.emplace_back(statement.Mark(), HashOf(cluster_));
      left.push_back(running);
      const NodeId node = nodes[below(3)];
      const ClassId cls = classes[below(3)];
      if (below(3) == 0 && !running.empty()) {
        const auto [on, of] = running.back();
        running.pop_back();
        statement.Evict(on, of, 1);
      } else if (cluster_.Room(node, cls, 1) > 0) {
        statement.Allocate(node, cls, 1);
      }
      if (below(4) != 0) continue;
      const size_t back = below(marks.size());
      statement.Rollback(marks[back].first);
      ASSERT_EQ(HashOf(cluster_), marks[back].second) << "step " << step;
      running = left[back];
      marks.resize(back);
      left.resize(back);
    }
    statement.Rollback(0);
    for (const auto& [node, cls] : charged) Discharge(node, cls);
  }
}

}  // namespace
}  // namespace muster
