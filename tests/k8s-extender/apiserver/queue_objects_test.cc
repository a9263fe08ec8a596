// Queue objects form one tree. While that tree is invalid, the last valid one stays in force and a condition gives the
// reason (SPEC Q-1).
#include "k8s-extender/apiserver/queue_objects.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/dialects/queues.h"
#include "tests/support/expect_ok.h"
#include "tests/support/local_server.h"

namespace muster {
namespace {

class Port : public DecisionPort {
 public:
  absl::StatusOr<Reply> Ask(Command, absl::Duration) override { return absl::UnimplementedError("unexpected Ask"); }
  absl::StatusOr<HoldToken> Hold(Bind, HoldCallback) override { return absl::UnimplementedError("unexpected Hold"); }
  absl::Status Announce(Command command) override {
    MutexLock lock(&mutex_);
    if (auto* set = std::get_if<SetQueues>(&command)) trees_.push_back(std::move(set->rules));
    return absl::OkStatus();
  }
  [[nodiscard]] std::vector<QueueRules> trees() const {
    MutexLock lock(&mutex_);
    return trees_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<QueueRules> trees_ ABSL_GUARDED_BY(mutex_);
};

// An API server that stores conditions, or refuses a number of them first.
class StatusServer {
 public:
  StatusServer() {
    server_->Patch(R"(/apis/muster.dev/v1alpha1/queues/([^/]+)/status)",
                   [this](const httplib::Request& request, httplib::Response& response) {
                     MutexLock lock(&mutex_);
                     if (refuse_-- > 0) {
                       response.status = 500;
                       return;
                     }
                     const absl::StatusOr<Json> body = ParseJson(request.body, "patch");
                     conditions_[request.matches[1]] = Child(Child(*body, "status"), "conditions").at(0);
                     response.set_content("{}", "application/json");
                   });
    port_ = server_.Start();
  }
  [[nodiscard]] KubeConfig config() const { return ServerAt(port_); }
  void Refuse(int times) {
    MutexLock lock(&mutex_);
    refuse_ = times;
  }
  // The condition of the queue as text, such as "Accepted=True Accepted: it is in force", as soon as it contains
  // `part`; after ten seconds in any case.
  std::string AwaitCondition(const std::string& queue, const std::string& part) {
    std::string text;
    for (int i = 0; i < 1000; ++i) {
      {
        MutexLock lock(&mutex_);
        const Json& of = conditions_[queue];
        text = absl::StrCat(StringOrEmpty(of, "type"), "=", StringOrEmpty(of, "status"), " ",
                            StringOrEmpty(of, "reason"), ": ", StringOrEmpty(of, "message"), " of generation ",
                            IntAt(of, "observedGeneration").value_or(-1));
      }
      if (absl::StrContains(text, part)) break;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return text;
  }

 private:
  int port_ = 0;
  Mutex mutex_;
  int refuse_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Json> conditions_ ABSL_GUARDED_BY(mutex_);
  LocalServer<> server_;
};

Json Object(const std::string& name, const std::string& created, const Json& spec, int64_t generation = 1) {
  return {{"metadata", {{"name", name}, {"creationTimestamp", created}, {"generation", generation}}}, {"spec", spec}};
}

class QueueObjectsTest : public testing::Test {
 protected:
  static QueueRules Rules() {
    QueueRules rules;
    rules.head = HeadPolicy::kHold;
    return rules;
  }
  void ExpectCondition(const std::string& queue, const std::string& part) {
    const std::string condition = server_.AwaitCondition(queue, part);
    EXPECT_TRUE(absl::StrContains(condition, part)) << queue << " says " << condition;
  }

  StatusServer server_;
  KubeClient client_{server_.config()};
  Port port_;
  QueueObjects objects_{&client_, &port_, Rules()};
  bool synced_ = false;
  Informer::Handlers handlers_ = objects_.Handlers([this] { synced_ = true; });
};

TEST_F(QueueObjectsTest, Tree_AnnouncedWholeOldestFirst) {
  handlers_.read(Object("young", "2026-01-02T00:00:00Z", {{"parent", "old"}}))();
  handlers_.read(Object("old", "2026-01-01T00:00:00Z", {{"limit", {{"cpu", "4"}, {"nvidia.com/gpu", 8}}}}))();
  EXPECT_TRUE(port_.trees().empty()) << "a part of a list is no tree";
  handlers_.synced();
  EXPECT_TRUE(synced_);
  ASSERT_EQ(port_.trees().size(), 1U);
  const QueueRules tree = port_.trees()[0];
  ASSERT_EQ(tree.queues.size(), 2U);
  EXPECT_EQ(tree.queues[0].name, "old");
  EXPECT_EQ(tree.queues[0].limit, (ResourceList{{"cpu", 4000}, {"nvidia.com/gpu", 8}}));
  EXPECT_EQ(tree.queues[1].parent, "old");
  EXPECT_EQ(tree.head, HeadPolicy::kHold) << "what operators say stays";
  ExpectCondition("old", "Accepted=True Accepted: it is in effect of generation 1");
  ExpectCondition("young", "Accepted=True");
  handlers_.remove("young", "young");
  EXPECT_EQ(port_.trees().back().queues.size(), 1U);
}

TEST_F(QueueObjectsTest, InvalidTree_KeepsLastAndReportsWhy) {
  handlers_.read(Object("top", "2026-01-01T00:00:00Z", {{"limit", {{"cpu", 4}}}}))();
  handlers_.read(Object("leaf", "2026-01-02T00:00:00Z", {{"parent", "top"}}))();
  handlers_.read(Object("other", "2026-01-03T00:00:00Z", Json::object()))();
  handlers_.synced();
  ExpectCondition("leaf", "Accepted=True");
  // The tree would be invalid; another object changes at the same time and has to wait.
  handlers_.read(Object("leaf", "2026-01-02T00:00:00Z", {{"parent", "top"}, {"quota", {{"cpu", 5}}}}, 2))();
  handlers_.read(Object("other", "2026-01-03T00:00:00Z", {{"priority", 3}}, 2))();
  EXPECT_EQ(port_.trees().size(), 1U) << "the tree that was right last stays in force";
  EXPECT_EQ(objects_.not_accepted(), 2);
  ExpectCondition(
      "leaf", "Accepted=False Invalid: its quota of cpu: 5 is above the limit of queue top, cpu: 4 of generation 2");
  ExpectCondition("other", "Accepted=False TreeInvalid: queue leaf is invalid");
  ExpectCondition("top", "Accepted=True");
  // An unreadable object also leaves the tree as it is.
  handlers_.read(Object("leaf", "2026-01-02T00:00:00Z", {{"parent", "top"}, {"quota", {{"cpu", "much"}}}}, 3))();
  ExpectCondition("leaf", "spec.quota.cpu");
  EXPECT_EQ(port_.trees().size(), 1U);
  handlers_.read(Object("leaf", "2026-01-02T00:00:00Z", {{"parent", "top"}, {"quota", {{"cpu", 3}}}}, 4))();
  ASSERT_EQ(port_.trees().size(), 2U);
  EXPECT_EQ(port_.trees()[1].queues[2].priority, 3) << "changes that had to wait are included";
  ExpectCondition("other", "Accepted=True");
  ExpectCondition("leaf", "of generation 4");
  EXPECT_EQ(objects_.not_accepted(), 0);
}

TEST_F(QueueObjectsTest, RefusedCondition_IsRetried) {
  server_.Refuse(2);
  handlers_.read(Object("q", "2026-01-01T00:00:00Z", Json::object()))();
  handlers_.synced();
  ExpectCondition("q", "Accepted=True");
}

// Q-12: the selector has the meaning of Kubernetes' own; an empty one selects every namespace.
TEST(ParseQueue, AccessList_IsRead) {
  const auto access = [](const Json& spec) { return ExpectOk(ParseQueue(Object("q", "", spec))).access; };
  const Json expression = {{"key", "tier"}, {"operator", "NotIn"}, {"values", {"dev"}}};
  EXPECT_EQ(access({{"namespaces", {"a", "*"}},
                    {"identities", {"token:s"}},
                    {"namespaceSelector", {{"matchLabels", {{"team", "v"}}}, {"matchExpressions", {expression}}}}}),
            (AccessList{{"a", "*"},
                        NamespaceSelector{
                            {{"team", SelectorOperator::kIn, {"v"}}, {"tier", SelectorOperator::kNotIn, {"dev"}}}},
                        {"token:s"}}));
  EXPECT_EQ(access({{"namespaceSelector", Json::object()}}), (AccessList{{}, NamespaceSelector(), {}}));
  EXPECT_TRUE(access(Json::object()).empty());
  const auto problem = [](const Json& selector) {
    return std::string(ParseQueue(Object("q", "", {{"namespaceSelector", selector}})).status().message());
  };
  EXPECT_EQ(problem("all"),
            "spec.namespaceSelector: \"all\"; expected a map with matchLabels, matchExpressions, or both");
  EXPECT_EQ(problem({{"matchExpressions", {{{"key", "k"}, {"operator", "Above"}}}}}),
            "spec.namespaceSelector: an operator is not one of In, NotIn, Exists, DoesNotExist");
}

TEST(ParseQueue, UnreadableFields_AllNamed) {
  const QueueSpec queue = ExpectOk(ParseQueue(Object("q", "",
                                                     {{"parent", "p"},
                                                      {"quota", {{"cpu", "500m"}}},
                                                      {"limit", {{"memory", "1Gi"}}},
                                                      {"overQuotaWeight", {{"cpu", 3}}},
                                                      {"priority", -2},
                                                      {"maxApplications", 4},
                                                      {"sort", "fair"}})));
  EXPECT_EQ(queue, (QueueSpec{"q", "p", {{"cpu", 500}}, {{"memory", 1 << 30}}, {{"cpu", 3}}, -2, 4, QueueSort::kFair}));
  const std::string wrong(ParseQueue(Object("q", "",
                                            {{"parent", 1},
                                             {"limit", {{"cpu", "x"}}},
                                             {"overQuotaWeight", {{"cpu", -1}}},
                                             {"priority", "high"},
                                             {"maxApplications", -1},
                                             {"sort", "lifo"},
                                             {"namespaces", Json::array()},
                                             {"identities", {"token:s", 3}},
                                             {"namespaceSelector", {{"matchLabel", Json::object()}}},
                                             {"size", 3}}))
                              .status()
                              .message());
  for (const char* part :
       {"spec.parent: 1; expected the name", "spec.limit.cpu", "spec.overQuotaWeight.cpu: -1; expected a whole number",
        "spec.priority: \"high\"", "spec.maxApplications: -1", "spec.sort: \"lifo\"; expected fifo", "spec.size: 3",
        "spec.namespaces: []; expected a list of at least one name",
        "spec.identities: [\"token:s\",3]; expected a list",
        "spec.namespaceSelector.matchLabel: {}; expected matchLabels or matchExpressions"}) {
    EXPECT_TRUE(absl::StrContains(wrong, part)) << part << " in " << wrong;
  }
}

}  // namespace
}  // namespace muster
