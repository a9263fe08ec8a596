// PodDisruptionBudgets of running gangs at an API server that refuses, and whose objects other writers change and an
// earlier process left behind.
#include "k8s-extender/actuator/disruption_budgets.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/dialects/metadata.h"
#include "tests/support/local_server.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

GangView Gang(const char* name, int32_t min, int32_t bound) {
  GangView gang;
  gang.key = absl::StrCat("d/", name);
  gang.name_space = "d";
  gang.name = name;
  gang.rules.min_member = min;
  gang.satisfied = true;
  gang.bound = gang.running = bound;
  gang.phase = bound >= min ? GangPhase::kRunning : GangPhase::kUnknown;
  return gang;
}

TEST(Required, Gang_FromStartToEnd) {
  GangView gang = Gang("g", 4, 4);
  EXPECT_EQ(DisruptionBudgets::Required(gang, 0), 4);
  gang.bound = 6;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 4), 4) << "surplus members may go";
  gang.bound = gang.succeeded = 2;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 4), 2) << "the other members have ended well";
  gang.succeeded = 3;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 2), 0) << "one pod is no part of a gang any more";
  gang = Gang("g", 4, 3);
  EXPECT_EQ(DisruptionBudgets::Required(gang, 4), 4) << "it lost a member, and no other may go";
  gang.reason.code = ReasonCode::kEvicted;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 4), 0) << "it starts again as a whole: Muster evicts the others";
  gang = Gang("g", 4, 0);
  EXPECT_EQ(DisruptionBudgets::Required(gang, 4), 0);
  gang = Gang("g", 4, 4);
  gang.satisfied = false;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 0), 0) << "it has not started";
  EXPECT_EQ(DisruptionBudgets::Required(Gang("g", 1, 1), 0), 0);
}

TEST(Required, Subgroups_AreProtectedAsTheyRun) {
  GangView gang = Gang("g", 2, 5);
  gang.rules.tree.nodes.emplace_back();
  EXPECT_EQ(DisruptionBudgets::Required(gang, 0), 5);
  gang.bound = 4;
  gang.phase = GangPhase::kUnknown;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 5), 5);
  gang.phase = GangPhase::kRunning;  // more pods than its minimum of subgroups
  gang.reason.code = ReasonCode::kEvicted;
  EXPECT_EQ(DisruptionBudgets::Required(gang, 5), 0) << "or its own eviction would be refused for ever";
}

TEST(GangLabel, AnyName_IsLabelAndPartOfName) {
  EXPECT_EQ(GangLabel("train-7"), "train-7");
  for (const std::string& name : {std::string("v1.2"), std::string("Train"), std::string(200, 'a'), std::string("-a"),
                                  std::string("a-"), std::string(56, 'a') + "-b"}) {
    const std::string label = GangLabel(name);
    EXPECT_LE(label.size(), 56U) << name;
    EXPECT_NE(label, name);
    EXPECT_EQ(label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << label;
    EXPECT_NE(label.front(), '-');
    EXPECT_NE(label.back(), '-');
  }
  EXPECT_NE(GangLabel(std::string(100, 'a')), GangLabel(std::string(101, 'a')));
}

class Budgets : public testing::Test {
 protected:
  Budgets() {
    server_->set_keep_alive_timeout(1);
    const std::string all = "/apis/policy/v1/poddisruptionbudgets";
    const std::string in_d = R"(/apis/policy/v1/namespaces/d/poddisruptionbudgets)";
    server_->Get(all, [this](const httplib::Request& request, httplib::Response& response) {
      if (request.has_param("watch")) return Stream(&response);
      MutexLock lock(&mutex_);
      Json items = Json::array();
      for (const auto& [name, object] : objects_) items.push_back(object);
      const Json list = {{"kind", "PodDisruptionBudgetList"},
                         {"apiVersion", "policy/v1"},
                         {"metadata", {{"resourceVersion", "1"}}},
                         {"items", items}};
      response.set_content(list.dump(), "application/json");
    });
    server_->Post(in_d, [this](const httplib::Request& request, httplib::Response& response) {
      Json object = Json::parse(request.body);
      const std::string name = object["metadata"]["name"];
      object["metadata"]["namespace"] = "d";
      response.status = Refuses(Has(name) ? 409 : 201);
      if (response.status == 201) Put(object);
      response.set_content("{}", "application/json");
    });
    server_->Patch(in_d + "/(.*)", [this](const httplib::Request& request, httplib::Response& response) {
      MutexLock lock(&mutex_);
      const auto object = objects_.find(request.matches[1]);
      response.status = Refuses(object == objects_.end() ? 404 : 200);
      response.set_content("{}", "application/json");
      if (response.status != 200) return;
      object->second.merge_patch(Json::parse(request.body));
      Send("MODIFIED", object->second);
    });
    server_->Delete(in_d + "/(.*)", [this](const httplib::Request& request, httplib::Response& response) {
      response.status = Refuses(200);
      if (response.status == 200) response.status = Delete(request.matches[1]) ? 200 : 404;
      response.set_content("{}", "application/json");
    });
    EXPECT_TRUE(WarmLibraries());
    client_ = std::make_unique<KubeClient>(ServerAt(server_.Start()));
    DisruptionBudgetOptions options;
    options.min_pause = absl::Milliseconds(20);
    options.max_pause = absl::Milliseconds(50);
    options.grace = absl::Seconds(2);
    budgets_ = std::make_unique<DisruptionBudgets>(client_.get(), options);
  }
  ~Budgets() override {
    ends_ = true;
    client_->Stop();
    budgets_->Stop();
  }

  // The next requests that change budgets are refused so.
  void RefuseWith(int status) { refusal_ = status; }
  void Put(Json object) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    object["metadata"]["uid"] = absl::StrCat("uid-", ++created_);
    objects_[object["metadata"]["name"]] = object;
    Send("ADDED", object);
  }
  bool Has(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return objects_.contains(name);
  }
  bool Delete(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const auto object = objects_.find(name);
    if (object == objects_.end()) return false;
    Send("DELETED", object->second);
    objects_.erase(object);
    return true;
  }
  // "name: minAvailable of selected label", of every budget.
  std::string All() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    std::string out;
    for (const auto& [name, object] : objects_) {
      absl::StrAppend(&out, name, ": ", object["spec"]["minAvailable"].dump(), " of ",
                      object["spec"]["selector"]["matchLabels"].dump(), "\n");
    }
    return out;
  }
  void ExpectSoon(const std::string& all) {
    for (int i = 0; i < 500 && All() != all; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(All(), all);
  }
  static Json Object(const std::string& name, int minimum, const char* managed_by) {
    return {
        {"metadata", {{"name", name}, {"namespace", "d"}, {"labels", {{"app.kubernetes.io/managed-by", managed_by}}}}},
        {"spec", {{"minAvailable", minimum}, {"selector", {{"matchLabels", {{"muster.dev/gang-name", "x"}}}}}}}};
  }

  std::atomic<int> requests_{0};
  std::unique_ptr<DisruptionBudgets> budgets_;

 private:
  int Refuses(int otherwise) {
    ++requests_;
    return refusal_ != 0 ? refusal_.load() : otherwise;
  }
  void Send(const char* type, const Json& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    events_.push_back(Json{{"type", type}, {"object", object}}.dump() + "\n");
  }
  void Stream(httplib::Response* response) {
    response->set_chunked_content_provider("application/json", [this](size_t, httplib::DataSink& sink) {
      std::string line;
      for (int i = 0; i < 100 && line.empty() && !ends_; ++i) {
        {
          MutexLock lock(&mutex_);
          if (!events_.empty()) {
            line = std::move(events_.front());
            events_.pop_front();
          }
        }
        if (line.empty()) absl::SleepFor(absl::Milliseconds(10));
      }
      if (line.empty()) {
        sink.done();
        return false;
      }
      return sink.write(line.data(), line.size());
    });
  }

  std::atomic<int> refusal_{0};
  std::atomic<bool> ends_{false};
  Mutex mutex_;
  int created_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Json> objects_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> events_ ABSL_GUARDED_BY(mutex_);
  LocalServer<> server_;
  std::unique_ptr<KubeClient> client_;
};

constexpr char kFourOfG[] = "muster-g: 4 of {\"muster.dev/gang-name\":\"g\"}\n";

TEST_F(Budgets, Gangs_AreFollowed) {
  budgets_->Start();
  budgets_->Update(Gang("g", 4, 4));
  budgets_->Update(Gang("lone", 1, 1));
  ExpectSoon(kFourOfG);
  budgets_->Update(Gang("g", 3, 4));
  ExpectSoon("muster-g: 3 of {\"muster.dev/gang-name\":\"g\"}\n");
  budgets_->Remove("d/g");
  ExpectSoon("");
  const int requests = requests_;
  for (int i = 0; i < 10; ++i) {
    budgets_->Remove("d/g");
    budgets_->Update(Gang("g", 4, 0));
  }
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_LE(requests_, requests + 1) << "without news no request, but one if an older event came during the last";
}

TEST_F(Budgets, RefusedWrite_IsTriedAgain) {
  RefuseWith(503);
  budgets_->Start();
  budgets_->Update(Gang("g", 4, 4));
  for (int i = 0; i < 500 && requests_ < 3; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(All(), "");
  RefuseWith(0);
  ExpectSoon(kFourOfG);
  RefuseWith(403);
  budgets_->Remove("d/g");
  const int before = requests_;
  for (int i = 0; i < 500 && requests_ < before + 2; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(All(), kFourOfG);
  RefuseWith(0);
  ExpectSoon("");
}

TEST_F(Budgets, ChangedByAnotherWriter_IsRestored) {
  budgets_->Start();
  budgets_->Update(Gang("g", 4, 4));
  ExpectSoon(kFourOfG);
  EXPECT_TRUE(Delete("muster-g"));
  ExpectSoon(kFourOfG);
}

// An earlier process left a budget of a gang that runs on, and one of a gang that has ended meanwhile.
TEST_F(Budgets, OfEarlierProcess_AreKeptOrRemoved) {
  Json kept = Object("muster-g", 4, "muster");
  kept["spec"]["selector"]["matchLabels"]["muster.dev/gang-name"] = "g";
  Put(kept);
  Put(Object("muster-gone", 2, "muster"));
  Put(Object("muster-theirs", 2, "helm"));
  Put(Object("own", 2, "muster"));
  budgets_->Start();
  absl::SleepFor(absl::Milliseconds(100));
  budgets_->Update(Gang("g", 4, 4));
  ExpectSoon(absl::StrCat(kFourOfG, "muster-theirs: 2 of {\"muster.dev/gang-name\":\"x\"}\n",
                          "own: 2 of {\"muster.dev/gang-name\":\"x\"}\n"));
  EXPECT_EQ(requests_, 1) << "one deletion";
}

// A budget of the name that Muster did not write stays as it is; once it is gone, the gang gets its own.
TEST_F(Budgets, NameTaken_OtherObjectStays) {
  Put(Object("muster-g", 1, "helm"));
  budgets_->Start();
  budgets_->Update(Gang("g", 4, 4));
  for (int i = 0; i < 500 && requests_ < 2; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(All(), "muster-g: 1 of {\"muster.dev/gang-name\":\"x\"}\n");
  EXPECT_TRUE(Delete("muster-g"));
  ExpectSoon(kFourOfG);
}

}  // namespace
}  // namespace muster
