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

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/actuator/actuator.h"
#include "support/sync.h"
#include "tests/support/local_server.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

// Ignores the outcomes of bindings.
class NoOutcomes : public DecisionPort {
 public:
  absl::StatusOr<Reply> Ask(Command, absl::Duration) override { return absl::UnimplementedError("not asked"); }
  absl::StatusOr<HoldToken> Hold(Bind, HoldCallback) override { return absl::UnimplementedError("not asked"); }
  absl::Status Announce(Command) override { return absl::OkStatus(); }
};

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
                    while (hold_events) absl::SleepFor(absl::Milliseconds(1));
                    const Json event = Json::parse(request.body);
                    const std::string pod = event["regarding"]["name"];
                    MutexLock lock(&mutex_);
                    const auto own = event_answers_.find(pod);
                    response.status = own == event_answers_.end() ? 201 : own->second;
                    events_.push_back(absl::StrCat("POST ", pod, " ", response.status));
                    const Json& about = event["regarding"];
                    const std::string of_other = about["kind"] == "Pod" ? "" : about.dump() + " ";
                    notes_.push_back(absl::StrCat(of_other, pod, ": ", event["note"].get<std::string>()));
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
    StartActuator(/*background_per_s=*/1'000);
  }
  void StartActuator(double background_per_s) {
    ActuatorOptions options;
    options.min_pause = absl::Milliseconds(1);
    options.max_pause = absl::Milliseconds(4);
    options.background_per_s = background_per_s;
    options.max_background = 100;
    options.event_tries = 20;
    actuator_ = std::make_unique<Actuator>(client_.get(), options);
    actuator_->Start(&port_);
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
  static Effect Event(const std::string& pod, const std::string& text, bool urgent, bool warning = false) {
    return EmitPodEvent{{"d", pod, absl::StrCat("u-", pod)}, warning, {ReasonCode::kNoRoom, text}, urgent};
  }
  // Sends an event from each connection for events; the API server answers when `hold_events` is false.
  void HoldEvents() {
    hold_events = true;
    for (int i = 0; i < ActuatorOptions().background_workers; ++i)
      actuator_->Carry({Event(absl::StrCat("held", i), "", /*urgent=*/true)});
    while (event_posts < ActuatorOptions().background_workers) absl::SleepFor(absl::Milliseconds(1));
  }
  // Lets the API server answer, waits for all events and returns pod and note of those that were sent since.
  std::vector<std::string> NotesAfterHold() {
    hold_events = false;
    while (actuator_->stats().waiting > 0) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(50));
    MutexLock lock(&mutex_);
    std::vector<std::string> notes = notes_;
    std::erase_if(notes, [](const std::string& note) { return absl::StartsWith(note, "held"); });
    return notes;
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
  std::atomic<bool> hold_events{false};
  std::atomic<int> most_at_once{0};
  absl::Duration delay = absl::ZeroDuration();
  std::unique_ptr<Actuator> actuator_;
  Mutex mutex_;
  std::vector<std::pair<int, Json>> patches_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> event_answers_ ABSL_GUARDED_BY(mutex_);  // by pod; else 201
  int series_answer_ ABSL_GUARDED_BY(mutex_) = 200;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);  // of all events that were created

 private:
  std::atomic<int> at_once_{0};
  LocalServer<> server_;
  std::unique_ptr<KubeClient> client_;
  NoOutcomes port_;
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
    events.emplace_back(Event(absl::StrCat("p", i), "no room", /*urgent=*/true));
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
  for (int i = 0; i < 5'000 && Events(1).back() != "POST p0 409"; ++i) absl::SleepFor(absl::Milliseconds(2));
  absl::SleepFor(absl::Milliseconds(50));
  const std::vector<std::string> events = Events(2);
  EXPECT_EQ(events.front(), "POST p0 503");
  EXPECT_EQ(events.back(), "POST p0 409") << "it exists, and is no series";
  EXPECT_EQ(std::count(events.begin(), events.end(), "POST p0 409"), 1);
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

// K-11: one pod of each gang first. The others wait for their turns, which come at a low rate.
TEST_F(PodGroupStatus, UrgentEvents_DoNotWaitForOthers) {
  actuator_->Stop();
  StartActuator(/*background_per_s=*/20);
  HoldEvents();
  std::vector<Effect> events;
  for (int i = 0; i < 20; ++i) events.push_back(Event(absl::StrCat("other", i), "x", /*urgent=*/false));
  for (int i = 0; i < 40; ++i) events.push_back(Event(absl::StrCat("first", i), "x", /*urgent=*/true));
  actuator_->Carry(std::move(events));
  const std::vector<std::string> notes = NotesAfterHold();
  ASSERT_EQ(notes.size(), 60U) << "none is lost";
  const auto at = [&](const std::string& note) { return std::find(notes.begin(), notes.end(), note) - notes.begin(); };
  EXPECT_LT(at("first39: x"), at("other10: x"));
  EXPECT_LT(at("other0: x"), at("first39: x")) << "urgent events do not hold up others for good";
}

TEST_F(PodGroupStatus, NewerEvent_ReplacesOneThatWaits) {
  HoldEvents();
  actuator_->Carry({Event("a", "1 of 4", /*urgent=*/false), Event("b", "1 of 2", /*urgent=*/true),
                    Event("a", "no room", /*urgent=*/true), Event("b", "no room", /*urgent=*/false),
                    Event("a", "refused", /*urgent=*/true, /*warning=*/true)});
  std::vector<std::string> notes = NotesAfterHold();
  std::sort(notes.begin(), notes.end());
  EXPECT_EQ(notes, (std::vector<std::string>{"a: no room", "a: refused", "b: no room"}));
}

// A pod whose reason changes again and again is not sent to the end of the queue each time.
TEST_F(PodGroupStatus, NewerEvent_KeepsThePlace) {
  HoldEvents();
  actuator_->Carry({Event("a", "1 of 4", /*urgent=*/true)});
  for (int i = 0; i < 30; ++i) actuator_->Carry({Event(absl::StrCat("b", i), "x", /*urgent=*/true)});
  actuator_->Carry({Event("a", "no room", /*urgent=*/true)});
  const std::vector<std::string> notes = NotesAfterHold();
  ASSERT_EQ(notes.size(), 31U);
  EXPECT_LT(std::find(notes.begin(), notes.end(), "a: no room") - notes.begin(), 10);
}

TEST_F(PodGroupStatus, PodIsBound_ItsReasonIsNotSent) {
  HoldEvents();
  actuator_->Carry({Event("a", "no room", /*urgent=*/true), Event("b", "no room", /*urgent=*/true),
                    Event("a", "refused once", /*urgent=*/true, /*warning=*/true)});
  actuator_->Carry({BindPod{{"d", "a", "u-a"}, "n", 0}});
  std::vector<std::string> notes = NotesAfterHold();
  std::sort(notes.begin(), notes.end());
  EXPECT_EQ(notes, (std::vector<std::string>{"a: refused once", "b: no room"}));
}

// D-7: users of a Job look at the Job.
TEST_F(PodGroupStatus, GangOfJob_JobHasItsReason) {
  EmitPodEvent event{{"d", "train-0", "u-0"}, false, {ReasonCode::kNoRoom, "no room"}};
  event.owner_gang = "job-train";
  event.owner_uid = "u-job";
  actuator_->Carry({event});
  event.owner_gang = "other-train";  // no owner of ours
  event.pod = {"d", "train-1", "u-1"};
  actuator_->Carry({event});
  std::vector<std::string> notes = NotesAfterHold();
  std::sort(notes.begin(), notes.end());
  const Json job = {
      {"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "train"}, {"namespace", "d"}, {"uid", "u-job"}};
  EXPECT_EQ(notes, (std::vector<std::string>{"train-0: no room", "train-1: no room", job.dump() + " train: no room"}));
}

TEST_F(PodGroupStatus, TooManyEvents_UrgentOnesStay) {
  HoldEvents();
  for (int i = 0; i < 99; ++i) actuator_->Carry({Event(absl::StrCat("first", i), "x", /*urgent=*/true)});
  for (int i = 0; i < 5; ++i) actuator_->Carry({Event(absl::StrCat("other", i), "x", /*urgent=*/false)});
  actuator_->Carry({Event("first99", "x", /*urgent=*/true), Event("first100", "x", /*urgent=*/true)});
  EXPECT_EQ(actuator_->stats().dropped_events, 6U);
  const std::vector<std::string> notes = NotesAfterHold();
  EXPECT_EQ(notes.size(), 100U);
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "first0: x"), 0) << "of urgent ones, the oldest goes";
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "first1: x"), 1);
}

// The API server deletes events after an hour.
TEST_F(PodGroupStatus, ExpiredEvent_IsCreatedAgain) {
  AnswerEvents("p0", 409, /*series=*/404);
  SendEvent("p0");
  EXPECT_EQ(Events(3), (std::vector<std::string>{"POST p0 409", "PATCH 2 404", "POST p0 201"}));
}

}  // namespace
}  // namespace muster
