// The status of PodGroups at an API server that refuses, is slow, or stores conditions of other writers (SPEC K-11).
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "k8s-extender/actuator/actuator.h"
#include "support/sync.h"
#include "tests/support/local_server.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

// One PodGroup, d/g.
class PodGroupStatus : public testing::Test {
 protected:
  PodGroupStatus() {
    server_->set_keep_alive_timeout(1);
    const char* path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/d/podgroups/g";
    server_->Get(path, [this](const httplib::Request&, httplib::Response& response) {
      ++gets;
      response.set_content(
          R"({"metadata":{"resourceVersion":"7"},"status":{"conditions":[{"type":"Ready","status":"True"},)"
          R"({"type":"TimedOut","status":"False"}]}})",
          "application/json");
    });
    server_->Patch(std::string(path) + "/status", [this](const httplib::Request& request, httplib::Response& response) {
      most_at_once = std::max(most_at_once.load(), ++at_once_);
      absl::SleepFor(delay);
      response.status = answer;  // read once: the recorded status is the one in the response
      {
        MutexLock lock(&mutex_);
        patches_.emplace_back(response.status, Json::parse(request.body));
      }
      response.set_content("{}", "application/json");
      --at_once_;
    });
    server_->Post("/apis/events.k8s.io/v1/namespaces/d/events",
                  [this](const httplib::Request& request, httplib::Response& response) {
                    ++event_posts;
                    const Json event = Json::parse(request.body);
                    const std::string pod = event["regarding"]["name"];
                    MutexLock lock(&mutex_);
                    const auto own = event_answers_.find(pod);
                    response.status = own == event_answers_.end() ? 201 : own->second;
                    events_.push_back(absl::StrCat("POST ", pod, " ", response.status));
                    response.set_content("{}", "application/json");
                  });
    server_->Patch("/apis/events.k8s.io/v1/namespaces/d/events/.*",
                   [this](const httplib::Request& request, httplib::Response& response) {
                     MutexLock lock(&mutex_);
                     response.status = series_answer_;
                     const int count = Json::parse(request.body)["series"]["count"];
                     events_.push_back(absl::StrCat("PATCH ", count, " ", response.status));
                     if (series_answer_ == 404) event_answers_.clear();  // an expired event can be created again
                     response.set_content("{}", "application/json");
                   });
    EXPECT_TRUE(WarmLibraries());
    client_ = std::make_unique<KubeClient>(ServerAt(server_.Start()));
    ActuatorOptions options;
    options.min_pause = absl::Milliseconds(1);
    options.max_pause = absl::Milliseconds(4);
    options.events_per_s = 1'000;
    options.event_tries = 20;
    actuator_ = std::make_unique<Actuator>(client_.get(), options);
    actuator_->Start(nullptr);
  }
  ~PodGroupStatus() override {
    actuator_->Stop();
    server_.Stop();
  }
  static GangView Gang(int32_t running, bool timed_out = false) {
    GangView view;
    view.key = "d/g";
    view.name_space = "d";
    view.name = "g";
    view.has_object = true;
    view.running = running;
    view.timed_out = timed_out;
    return view;
  }
  // Waits for `times` successful patches and a moment longer; returns all successful patches.
  std::vector<Json> Written(size_t times) {
    std::vector<Json> out;
    for (int i = 0; i < 2'000; ++i) {
      out.clear();
      {
        MutexLock lock(&mutex_);
        for (const auto& [status, patch] : patches_) {
          if (status == 200) out.push_back(patch);
        }
      }
      if (out.size() >= times && actuator_->stats().waiting == 0) break;
      absl::SleepFor(absl::Milliseconds(2));
    }
    absl::SleepFor(absl::Milliseconds(50));
    return out;
  }
  void AnswerEvents(const std::string& pod, int status, int series = 200) {
    MutexLock lock(&mutex_);
    event_answers_[pod] = status;
    series_answer_ = series;
  }
  void SendEvent(const std::string& pod) {
    actuator_->Carry({EmitPodEvent{{"d", pod, absl::StrCat("u-", pod)}, true, {ReasonCode::kNoRoom, "no room"}}});
  }
  // Waits for `times` requests about events; returns all of them with their responses.
  std::vector<std::string> Events(size_t times) {
    for (int i = 0; i < 5'000; ++i) {
      {
        MutexLock lock(&mutex_);
        if (events_.size() >= times) return events_;
      }
      absl::SleepFor(absl::Milliseconds(2));
    }
    ADD_FAILURE() << "fewer than " << times << " requests about events";
    MutexLock lock(&mutex_);
    return events_;
  }
  size_t asked() {
    MutexLock lock(&mutex_);
    return patches_.size();
  }

  std::atomic<int> answer{200};
  std::atomic<int> gets{0};
  std::atomic<int> event_posts{0};
  std::atomic<int> most_at_once{0};
  absl::Duration delay = absl::ZeroDuration();
  std::unique_ptr<Actuator> actuator_;
  Mutex mutex_;
  std::vector<std::pair<int, Json>> patches_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> event_answers_ ABSL_GUARDED_BY(mutex_);  // by pod; else 201
  int series_answer_ ABSL_GUARDED_BY(mutex_) = 200;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);

 private:
  std::atomic<int> at_once_{0};
  LocalServer<> server_;
  std::unique_ptr<KubeClient> client_;
};

TEST_F(PodGroupStatus, RefusedStatus_IsRetried) {
  for (const int status : {429, 500, 503, 409, 403}) {
    answer = status;
    const size_t before = asked();
    actuator_->UpdateStatus(Gang(status));
    while (asked() < before + 5) absl::SleepFor(absl::Milliseconds(1));
    answer = 200;
    const size_t written = Written(1).size();
    EXPECT_EQ(Written(written).back()["status"]["running"], status);
    EXPECT_EQ(actuator_->stats().waiting, 0U);
  }
}

TEST_F(PodGroupStatus, QuickUpdates_LatestIsWritten) {
  delay = absl::Milliseconds(20);
  for (int i = 1; i <= 20; ++i) {
    actuator_->UpdateStatus(Gang(i));
    absl::SleepFor(absl::Milliseconds(3));
  }
  EXPECT_EQ(Written(2).back()["status"]["running"], 20);
  EXPECT_EQ(most_at_once, 1) << "two writers of one gang change the order";
}

TEST_F(PodGroupStatus, SameStatus_WrittenOncePerObject) {
  GangView view = Gang(1);
  view.object_uid = "first";
  actuator_->UpdateStatus(view);
  ASSERT_EQ(Written(1).size(), 1U);
  actuator_->UpdateStatus(view);
  EXPECT_EQ(Written(1).size(), 1U) << "nothing changed";
  view.object_uid = "second";
  actuator_->UpdateStatus(view);
  EXPECT_EQ(Written(2).size(), 2U) << "another object under the same name";
  GangView gone = view;
  gone.has_object = false;
  actuator_->UpdateStatus(gone);
  actuator_->UpdateStatus(view);
  EXPECT_EQ(Written(3).size(), 3U) << "it was deleted between";
}

TEST_F(PodGroupStatus, OtherConditions_Stay) {
  actuator_->UpdateStatus(Gang(1));
  actuator_->UpdateStatus(Gang(2));
  std::vector<Json> written = Written(1);
  const Json others = {{"type", "Ready"}, {"status", "True"}};
  const Json in_time = {{"type", "TimedOut"}, {"status", "False"}};
  EXPECT_EQ(written.front()["status"]["conditions"], Json({others, in_time}));
  EXPECT_EQ(written.front()["metadata"]["resourceVersion"], "7") << "changes of other writers are not lost";
  const int read = gets;
  actuator_->UpdateStatus(Gang(3));
  written = Written(written.size() + 1);
  EXPECT_FALSE(written.back()["status"].contains("conditions")) << "it says the same";
  EXPECT_EQ(gets, read);
  actuator_->UpdateStatus(Gang(3, /*timed_out=*/true));
  written = Written(written.size() + 1);
  EXPECT_EQ(written.back()["status"]["conditions"], Json({others, {{"type", "TimedOut"}, {"status", "True"}}}));
}

// Refused statuses, however many, delay neither events nor other statuses.
TEST_F(PodGroupStatus, RefusedStatuses_DoNotDelayEvents) {
  answer = 403;
  for (int i = 0; i < 40; ++i) {
    GangView view = Gang(1);
    view.key = absl::StrCat("d/a", i);  // all are written to d/g; only the key differs
    actuator_->UpdateStatus(view);
  }
  std::vector<Effect> events;
  for (int i = 0; i < 20; ++i) {
    events.emplace_back(EmitPodEvent{{"d", absl::StrCat("p", i), "u"}, true, {ReasonCode::kNoRoom, "no room"}});
  }
  actuator_->Carry(std::move(events));
  for (int i = 0; i < 5'000 && event_posts < 20; ++i) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(event_posts, 20);
  const size_t before = asked();
  GangView last = Gang(77);
  last.key = "d/z";
  actuator_->UpdateStatus(last);
  const auto seen = [&] {
    MutexLock lock(&mutex_);
    for (size_t i = before; i < patches_.size(); ++i) {
      if (patches_[i].second["status"]["running"] == 77) return true;
    }
    return false;
  };
  for (int i = 0; i < 5'000 && !seen(); ++i) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_TRUE(seen()) << "it is the last by name";
}

TEST_F(PodGroupStatus, InvalidStatus_NotRetried) {
  answer = 422;
  actuator_->UpdateStatus(Gang(1));
  while (actuator_->stats().failed == 0) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(asked(), 1U);
}

// A server that was unreachable or overloaded gets every event once after it is back.
TEST_F(PodGroupStatus, EventsDuringOutage_SentOnceAfterwards) {
  AnswerEvents("p0", 503);
  SendEvent("p0");
  SendEvent("p1");
  while (actuator_->stats().retries < 3) absl::SleepFor(absl::Milliseconds(1));
  AnswerEvents("p0", 201);
  const auto count = [&](const char* what) {
    const std::vector<std::string> events = Events(1);
    return std::count(events.begin(), events.end(), what);
  };
  for (int i = 0; i < 5'000 && count("POST p0 201") + count("POST p1 201") < 2; ++i)
    absl::SleepFor(absl::Milliseconds(2));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_GE(count("POST p0 503"), 3);
  EXPECT_EQ(count("POST p0 201"), 1);
  EXPECT_EQ(count("POST p1 201"), 1);
  EXPECT_EQ(actuator_->stats().dropped_events, 0U);
}

TEST_F(PodGroupStatus, RefusedEvent_IsDropped) {
  AnswerEvents("p0", 403);
  AnswerEvents("p1", 500);
  for (const char* pod : {"p0", "p1", "p2"}) SendEvent(pod);
  const std::vector<std::string> events = Events(5);
  EXPECT_EQ(std::count(events.begin(), events.end(), "POST p0 403"), 1);
  EXPECT_EQ(std::count(events.begin(), events.end(), "POST p1 500"), 3);
  EXPECT_EQ(std::count(events.begin(), events.end(), "POST p2 201"), 1);
  EXPECT_NE(events.back(), "POST p2 201") << "no event waits for one that cannot be created";
  while (actuator_->stats().dropped_events < 2) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(PodGroupStatus, LostResponse_EventIsNoSeries) {
  AnswerEvents("p0", 503);
  SendEvent("p0");
  Events(1);
  AnswerEvents("p0", 409);
  EXPECT_EQ(Events(2).front(), "POST p0 503");
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(Events(2).back(), "POST p0 409") << "it exists, and was sent once";
}

TEST_F(PodGroupStatus, LongOutage_EventIsDropped) {
  AnswerEvents("p0", 503);
  SendEvent("p0");
  while (actuator_->stats().dropped_events < 1) absl::SleepFor(absl::Milliseconds(1));
  SendEvent("p1");
  const std::vector<std::string> events = Events(21);
  EXPECT_EQ(std::count(events.begin(), events.end(), "POST p0 503"), 20);
  EXPECT_EQ(std::count(events.begin(), events.end(), "POST p1 201"), 1);
}

TEST_F(PodGroupStatus, ExistingEvent_BecomesSeries) {
  AnswerEvents("p0", 409);
  SendEvent("p0");
  EXPECT_EQ(Events(2).back(), "PATCH 2 200");
  SendEvent("p0");
  EXPECT_EQ(Events(4).back(), "PATCH 2 200");
  SendEvent("p0");
  EXPECT_EQ(Events(6).back(), "PATCH 3 200");
}

// The API server deletes events after an hour.
TEST_F(PodGroupStatus, ExpiredEvent_IsCreatedAgain) {
  AnswerEvents("p0", 409, /*series=*/404);
  SendEvent("p0");
  EXPECT_EQ(Events(3), (std::vector<std::string>{"POST p0 409", "PATCH 2 404", "POST p0 201"}));
}

}  // namespace
}  // namespace muster
