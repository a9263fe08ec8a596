// The gRPC server with the C++ client, over a real connection (SPEC S-1, S-5).
#include <google/protobuf/util/time_util.h>

#include <atomic>
#include <limits>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "muster/v1/decision.grpc.pb.h"
#include "muster/v1/gang.grpc.pb.h"
#include "service/rpc/request_log.h"
#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

TEST_F(Rpc, GetListExplain_ReturnGangs) {
  const auto gang = ExpectOk(client_->GetGang("d", "train"));
  EXPECT_EQ(gang.phase(), v1::Gang::PHASE_PENDING);
  EXPECT_EQ(gang.members_size(), 2);
  EXPECT_EQ(gang.reason().code(), v1::REASON_CODE_NOT_ENOUGH_PODS);
  EXPECT_EQ(gang.rules().min_member(), 3);

  EXPECT_EQ(ExpectOk(client_->ListGangs("")).gangs_size(), 2);
  const auto one = ExpectOk(client_->ListGangs("e"));
  ASSERT_EQ(one.gangs_size(), 1);
  EXPECT_EQ(one.gangs(0).name(), "other");

  const auto why = ExpectOk(client_->ExplainGang("d", "train"));
  EXPECT_NE(why.text().find("2 of 3 pods exist"), std::string::npos) << why.text();
  EXPECT_NE(why.text().find("create the missing pods"), std::string::npos) << why.text();

  const auto nodes = ExpectOk(client_->ListNodes());
  ASSERT_EQ(nodes.nodes_size(), 1);
  EXPECT_EQ(nodes.nodes(0).allocatable().at("memory"), "1Gi");
}

// Its pods have waited since their creation; this process and the current reason may be younger.
TEST_F(Rpc, WaitingGang_WaitsSincePodCreation) {
  constexpr int64_t kHour = 3'600'000;
  const int64_t now_ms = absl::ToUnixMillis(absl::Now());
  v1::UpdateFactsRequest update;
  for (int hours : {3, 1, 2}) {
    v1::PodFacts* pod = update.add_pods();
    *pod = MemberOf("old", 5, absl::StrCat("old-", hours));
    pod->set_namespace_("d");
    *pod->mutable_create_time() = google::protobuf::util::TimeUtil::MillisecondsToTimestamp(now_ms - hours * kHour);
  }
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  const auto why = ExpectOk(client_->ExplainGang("d", "old"));
  EXPECT_NE(why.text().find("waits since 3h"), std::string::npos) << why.text();
  EXPECT_NE(why.text().find(", for this reason since 1s: "), std::string::npos) << why.text();
  EXPECT_EQ(google::protobuf::util::TimeUtil::TimestampToMilliseconds(why.wait_start_time()), now_ms - 3 * kHour);
  EXPECT_GE(google::protobuf::util::TimeUtil::TimestampToMilliseconds(why.gang().reason().since_time()), now_ms);

  update.Clear();
  update.add_removed_pods("old-3");
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  EXPECT_EQ(
      google::protobuf::util::TimeUtil::TimestampToMilliseconds(client_->ExplainGang("d", "old")->wait_start_time()),
      now_ms - 2 * kHour);
}

TEST_F(Rpc, FailedGang_ReportsFailure) {
  v1::UpdateFactsRequest update;
  v1::PodFacts* pod = update.add_pods();
  *pod = MemberOf("lost", 1, "lost");
  pod->set_namespace_("d");
  pod->set_node_name("n");
  pod->set_phase(v1::PodFacts::PHASE_FAILED);
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  const auto why = ExpectOk(client_->ExplainGang("d", "lost"));
  EXPECT_NE(why.text().find("(Failed): it has ended: 1 member failed. To start again it waits since "),
            std::string::npos)
      << why.text();
  EXPECT_NE(why.text().find("0 of 1 pods exist"), std::string::npos) << why.text();
  EXPECT_FALSE(why.has_wait_start_time()) << "no pod waits";
}

TEST_F(Rpc, CreationTimeOutOfRange_IsRefused) {
  v1::UpdateFactsRequest update;
  *update.add_pods() = PodOf("late", "0");
  update.mutable_pods(0)->mutable_create_time()->set_seconds(std::numeric_limits<int64_t>::max());
  ExpectInvalid(client_->UpdateFacts(update).status(), {"create_time: 9223372036854775807s 0ns since 1970; expected"});
}

TEST_F(Rpc, InvalidServerPort_IsRefused) {
  for (const char* server : {"127.0.0.1:65536", "muster:0", "dns:///muster:99999999999999999999"}) {
    ClientOptions options;
    options.server = server;
    const auto client = MusterClient::Connect(options);
    ASSERT_FALSE(client.ok()) << server;
    EXPECT_NE(client.status().message().find("expected 1 to 65535"), std::string::npos) << client.status();
  }
}

TEST_F(Rpc, MissingObject_IsNamed) {
  EXPECT_TRUE(absl::IsNotFound(client_->GetGang("d", "unknown").status()));
  ExpectInvalid(client_->GetGang("", "train").status(), {"namespace"});
  ClientOptions impatient;
  impatient.server = absl::StrCat("127.0.0.1:", server_.port());
  impatient.timeout = std::chrono::seconds(1);
  const std::unique_ptr<MusterClient> client = *MusterClient::Connect(impatient);
  engine_.Stop();
  EXPECT_TRUE(absl::IsUnavailable(client->GetGang("d", "train").status()));
  server_.Stop();
  const absl::Status gone = client->ListNodes().status();
  EXPECT_TRUE(absl::IsUnavailable(gone));
  EXPECT_NE(gone.message().find("cannot reach musterd"), absl::string_view::npos) << gone;
}

TEST_F(Rpc, Watch_ReceivesListThenChanges) {
  std::set<std::string> existing;
  std::vector<std::string> changes;
  bool synced = false;
  const absl::Status ended = client_->WatchGangs("d", [&](const v1::GangEvent& event) {
    if (event.synced()) {
      synced = true;
      EXPECT_EQ(existing, std::set<std::string>{"train"});
      AddPod("c", "later", 2);
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-solo"}).ok());  // of another namespace: not reported
      return true;
    }
    if (!synced) {
      existing.insert(event.upserted().name());
      return true;
    }
    if (event.has_upserted()) {
      changes.push_back(event.upserted().name());
      EXPECT_TRUE(engine_.Announce(RemovePod{"u-c"}).ok());
      return true;
    }
    changes.push_back("removed " + event.removed());
    return false;
  });
  EXPECT_TRUE(synced);
  EXPECT_EQ(changes, (std::vector<std::string>{"later", "removed d/later"})) << ended;
}

// Its TTL is that of the fixture.
v1::SubmitGangRequest Submission(const std::string& id, const std::string& name, int pods, const std::string& cpu) {
  v1::SubmitGangRequest request = SubmitOf(name, pods, cpu);
  request.set_request_id(id);
  request.clear_ttl();
  return request;
}

std::string Reserved(MusterClient* client) {
  const auto nodes = client->ListNodes();
  if (!nodes.ok()) return std::string(nodes.status().message());
  std::string out;
  for (const v1::Node& node : nodes->nodes()) {
    const auto cpu = node.reserved().find("cpu");
    if (cpu != node.reserved().end()) out += cpu->second;
  }
  return out;
}

// SPEC S-1: a repeated request has the same reply and reserves nothing twice.
TEST_F(Rpc, RepeatedRequest_ExecutesOnce) {
  v1::CreateGangRequest create = CreateOf("made", 2, "r1");
  const auto first = ExpectOk(client_->CreateGang(create));
  EXPECT_EQ(first.SerializeAsString(), ExpectOk(client_->CreateGang(create)).SerializeAsString());
  create.mutable_gang()->set_min_member(3);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->CreateGang(create).status())) << "the id was another request's";
  create.set_request_id("r2");
  EXPECT_TRUE(absl::IsAlreadyExists(client_->CreateGang(create).status()));

  const auto planned = ExpectOk(client_->SubmitGang(Submission("s1", "whole", 2, "500m")));
  EXPECT_EQ(planned.state(), v1::Submission::STATE_PLANNED);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ExpectOk(client_->SubmitGang(Submission("s1", "whole", 2, "500m"))).plan(), planned.plan());
  }
  EXPECT_EQ(Reserved(client_.get()), "1");
  EXPECT_TRUE(client_->ConfirmGang("s1", planned.plan()).ok());
  EXPECT_EQ(ExpectOk(client_->ConfirmGang("s1", planned.plan())).state(), v1::Submission::STATE_CONFIRMED);
  EXPECT_EQ(Reserved(client_.get()), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->AbandonGang("s1").status()));
}

// Equal facts are an equal request, in any serialisation of their maps.
TEST_F(Rpc, RepeatedRequest_IsIdentifiedByContent) {
  for (int i = 0; i < 20; ++i) {
    v1::UpdateFactsRequest update;
    update.set_request_id("facts-1");
    v1::NodeFacts* node = update.add_nodes();
    node->set_name("m");
    for (int label = 0; label < 8; ++label) {
      const int at = (label + i) % 8;
      (*node->mutable_labels())[absl::StrCat("label-", at)] = absl::StrCat(at);
      (*node->mutable_allocatable())[absl::StrCat("example.com/r", at)] = "4";
    }
    const auto answer = client_->UpdateFacts(update);
    ASSERT_TRUE(answer.ok()) << answer.status();
  }
  // The id of a submission names no other one, before and after its end.
  ASSERT_TRUE(client_->SubmitGang(Submission("s1", "whole", 2, "500m")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(client_->SubmitGang(Submission("s1", "other", 2, "500m")).status()));
  ASSERT_TRUE(client_->AbandonGang("s1").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(client_->SubmitGang(Submission("s1", "other", 2, "500m")).status()));
  // The total request of its members is bounded.
  v1::SubmitGangRequest huge = Submission("s2", "huge", 100'000, "1m");
  for (int i = 0; i < 100; ++i) {
    (*huge.mutable_members(0)->mutable_shape()->mutable_node_selector())[absl::StrCat("key-", i)] = "value";
  }
  EXPECT_TRUE(absl::IsInvalidArgument(client_->SubmitGang(huge).status()));
}

// Eight callers with one id at once: one executes the request, all get its reply.
TEST_F(Rpc, ConcurrentRepetitions_ShareOneReply) {
  const v1::CreateGangRequest create = CreateOf("one", 1, "same");
  std::atomic<int> done{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] { done += client_->CreateGang(create).ok() ? 1 : 0; });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, 8);
}

// The memory for replies is bounded, including ids and errors; an id that is used again becomes the newest.
TEST(RequestLog, LogFull_OldestIsRemoved) {
  RequestLog log;
  const absl::Time now = absl::UnixEpoch();
  const RequestLog::Finish ignore = [](const RequestLog::Answer&) {};
  ASSERT_TRUE(log.Begin("again", 1, now, ignore));
  log.Complete("again", {{grpc::StatusCode::RESOURCE_EXHAUSTED, "later"}, ""});
  ASSERT_TRUE(log.Begin("old", 1, now, ignore));
  log.Complete("old", {{grpc::StatusCode::NOT_FOUND, std::string(40 << 20, 'x')}, ""});
  ASSERT_TRUE(log.Begin("again", 1, now + absl::Seconds(1), ignore));
  log.Complete("again", {grpc::Status::OK, "done"});
  ASSERT_TRUE(log.Begin("large", 1, now + absl::Seconds(1), ignore));
  log.Complete("large", {{grpc::StatusCode::NOT_FOUND, std::string(40 << 20, 'x')}, ""});
  EXPECT_FALSE(log.Begin("again", 1, now + absl::Seconds(2), ignore)) << "it was done a second ago";
  EXPECT_TRUE(log.Begin("old", 1, now + absl::Seconds(2), ignore)) << "80 MiB of errors are stored";
}

TEST(RequestLog, PendingEntry_DoesNotBlockRemoval) {
  RequestLog log;
  const absl::Time now = absl::UnixEpoch();
  const RequestLog::Finish ignore = [](const RequestLog::Answer&) {};
  ASSERT_TRUE(log.Begin("waits", 1, now, ignore));
  for (size_t i = 0; i < RequestLog::kMaxEntries + 100; ++i) {
    ASSERT_TRUE(log.Begin(absl::StrCat("r", i), 1, now, ignore));
    log.Complete(absl::StrCat("r", i), {grpc::Status::OK, ""});
  }
  EXPECT_TRUE(log.Begin("r0", 1, now, ignore)) << "the oldest is forgotten";
  EXPECT_FALSE(log.Begin("waits", 1, now, ignore)) << "what is not answered yet is not";
}

// The caller is gone: after the TTL nothing is left of its submission.
TEST_F(Rpc, SubmissionAfterTtl_LeavesNothing) {
  const auto planned = ExpectOk(client_->SubmitGang(Submission("s1", "whole", 2, "500m")));
  EXPECT_EQ(Reserved(client_.get()), "1");
  std::vector<v1::Submission::State> states;
  const absl::Status watched = client_->WatchSubmission("s1", [&](const v1::Submission& now) {
    states.push_back(now.state());
    return true;
  });
  EXPECT_TRUE(watched.ok()) << watched;
  EXPECT_EQ(states, (std::vector<v1::Submission::State>{v1::Submission::STATE_PLANNED, v1::Submission::STATE_EXPIRED}));
  EXPECT_EQ(Reserved(client_.get()), "");
  EXPECT_TRUE(absl::IsNotFound(client_->GetGang("default", "whole").status()));
  const absl::Status late = client_->ConfirmGang("s1", planned.plan()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
}

TEST_F(Rpc, WatchedWaitingSubmission_StaysAlive) {
  ASSERT_TRUE(client_->SubmitGang(Submission("s1", "first", 2, "1")).ok());
  const auto waiting = ExpectOk(client_->SubmitGang(Submission("s2", "second", 2, "1")));
  EXPECT_EQ(waiting.state(), v1::Submission::STATE_WAITING);
  EXPECT_EQ(waiting.reason().code(), v1::REASON_CODE_NO_ROOM);
  // The first is not confirmed and expires: the second gets its capacity.
  v1::Submission last;
  const absl::Status watched = client_->WatchSubmission("s2", [&](const v1::Submission& now) {
    last = now;
    return now.state() == v1::Submission::STATE_WAITING;
  });
  EXPECT_TRUE(watched.ok()) << watched;
  EXPECT_EQ(last.state(), v1::Submission::STATE_PLANNED);
  EXPECT_TRUE(client_->ConfirmGang("s2", last.plan()).ok());
}

TEST_F(Rpc, InvalidField_IsNamed) {
  v1::CreateGangRequest create = CreateOf("Not A Name", -1);
  create.mutable_gang()->set_mode(static_cast<v1::GangMode>(99));
  (*create.mutable_gang()->mutable_min_resources())["cpu"] = "many";
  create.mutable_gang()->add_group("nowhere");
  grpc::ClientContext context;
  v1::Gang response;
  const auto stub = v1::GangService::NewStub(Channel());
  const grpc::Status status = stub->CreateGang(&context, create, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.details(0).UnpackTo(&bad));
  std::set<std::string> fields;
  for (const auto& violation : bad.field_violations()) fields.insert(violation.field());
  EXPECT_EQ(fields, (std::set<std::string>{"gang.name", "gang.min_member", "gang.mode", "gang.min_resources.cpu",
                                           "gang.group[0]"}));
  EXPECT_TRUE(absl::IsNotFound(client_->GetGang("default", "Not A Name").status()));
}

// SPEC G-4: WAIT now, PERMIT or REJECT later; a caller that goes away releases its place.
TEST_F(Rpc, CancelledPermit_ReleasesPlace) {
  v1::UpdateFactsRequest update;
  for (const char* name : {"v-a", "v-b"}) *update.add_pods() = MemberOf("verbs", 2, name, "1");
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  const auto stub = v1::DecisionService::NewStub(Channel());
  const v1::PermitRequest request = PermitOf("v-a", "n");
  {
    grpc::ClientContext context;
    const auto reader = stub->Permit(&context, request);
    v1::PermitEvent event;
    ASSERT_TRUE(reader->Read(&event));
    EXPECT_EQ(event.verdict(), v1::PermitEvent::VERDICT_WAIT);
    ASSERT_EQ(event.activate_pod_uids_size(), 1);
    EXPECT_EQ(event.activate_pod_uids(0), "v-b");
    EXPECT_GT(event.remaining_wait().seconds(), 500);
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  for (int i = 0; i < 200; ++i) {
    const auto gang = ExpectOk(client_->GetGang("default", "verbs"));
    if (gang.counts().waiting() == 0) break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(client_->GetGang("default", "verbs")->counts().waiting(), 0);
  // Both come: the first waits, the arrival of the second permits both; a repeated call has the same reply.
  std::vector<v1::PermitEvent::Verdict> first;
  std::thread waiting([&] {
    EXPECT_TRUE(client_
                    ->Permit(request,
                             [&](const v1::PermitEvent& event) {
                               first.push_back(event.verdict());
                               return true;
                             })
                    .ok());
  });
  while (client_->GetGang("default", "verbs")->counts().waiting() == 0) absl::SleepFor(absl::Milliseconds(5));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(client_
                    ->Permit(PermitOf("v-b", "n"),
                             [&](const v1::PermitEvent& event) {
                               EXPECT_EQ(event.verdict(), v1::PermitEvent::VERDICT_PERMIT);
                               return true;
                             })
                    .ok());
  }
  waiting.join();
  EXPECT_EQ(first,
            (std::vector<v1::PermitEvent::Verdict>{v1::PermitEvent::VERDICT_WAIT, v1::PermitEvent::VERDICT_PERMIT}));
  EXPECT_EQ(client_->GetGang("default", "verbs")->counts().binding(), 2);
  EXPECT_EQ(Counted("Permit released"), 1);
  EXPECT_EQ(Counted("Permit permitted"), 3);
  EXPECT_FALSE(client_->Permit(v1::PermitRequest(), [](const v1::PermitEvent&) { return true; }).ok());
  EXPECT_EQ(Counted("Permit refused"), 1);
}

// A warning if there is no room.
Effect EventOf(ReasonCode code, const std::string& text, const std::string& name_space = "d") {
  return EmitPodEvent{{name_space, "a", "u-a"}, code == ReasonCode::kNoRoom, {code, text}};
}

// The events of namespace "d" after this number.
v1::WatchEventsRequest EventsAfter(int64_t sequence) {
  v1::WatchEventsRequest request;
  request.set_after_sequence(sequence);
  request.set_namespace_("d");
  return request;
}

// The missed events that the first two of the watch report.
std::vector<int64_t> MissedByTwo(MusterClient* client, int64_t after) {
  std::vector<int64_t> missed;
  const auto two = [&](const v1::Event& event) {
    missed.push_back(event.dropped_events());
    return missed.size() < 2;
  };
  EXPECT_TRUE(client->WatchEvents(EventsAfter(after), two).ok());
  return missed;
}

TEST_F(Rpc, Events_ReportDecisions) {
  const EventLog::Page before = events_.After(0);
  const int64_t after = before.events.empty() ? 0 : before.events.back()->sequence;
  events_.Carry({EventOf(ReasonCode::kNoRoom, "no room"), EvictPod{{"e", "x", "u-x"}, "its gang starts again"}});
  v1::ListEventsRequest list_after;
  list_after.set_after_sequence(after);
  const auto list = ExpectOk(client_->ListEvents(list_after));
  ASSERT_EQ(list.events_size(), 2);
  EXPECT_EQ(list.events(0).type(), v1::Event::TYPE_WARNING);
  EXPECT_EQ(list.events(0).reason().code(), v1::REASON_CODE_NO_ROOM);
  EXPECT_EQ(list.events(1).type(), v1::Event::TYPE_EVICT);
  std::vector<std::string> seen;
  const auto four = [&](const v1::Event& event) {
    seen.push_back(event.reason().text());
    if (seen.size() == 1) events_.Carry(std::vector<Effect>(3, EventOf(ReasonCode::kQueued, "later")));
    return seen.size() < 4;
  };
  EXPECT_TRUE(client_->WatchEvents(EventsAfter(after), four).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"no room", "later", "later", "later"}));
}

// A watch that continues after a gap reports the gap once, in its first event.
TEST_F(Rpc, WatchAfterGap_ReportsMissedEvents) {
  events_.Carry({EventOf(ReasonCode::kNoRoom, "first")});
  const int64_t after = events_.After(0).events.back()->sequence;
  events_.Carry(std::vector<Effect>(EventLog::kCapacity + 7, EventOf(ReasonCode::kQueued, "later")));
  EXPECT_EQ(MissedByTwo(client_.get(), after), (std::vector<int64_t>{7, 0}));
}

// A reader that stops reading loses retained events, but not the stream: it continues with the number of missed events.
TEST_F(Rpc, StalledEventReader_ReceivesMissedCount) {
  const int64_t before = events_.After(0).last;
  constexpr int64_t kMany = 20 * static_cast<int64_t>(EventLog::kCapacity);
  events_.Carry({EventOf(ReasonCode::kNoRoom, "first")});
  v1::WatchEventsRequest watch;
  watch.set_after_sequence(before);
  int64_t seen = 0;
  int64_t missed = 0;
  int64_t last = before;
  const auto all = [&](const v1::Event& event) {
    EXPECT_EQ(event.sequence(), last + 1 + event.dropped_events());
    last = event.sequence();
    missed += event.dropped_events();
    if (++seen == 1) {
      for (int64_t i = 1; i < kMany; ++i) events_.Carry({EventOf(ReasonCode::kQueued, "later")});
    }
    return last < before + kMany;
  };
  const absl::Status ended = client_->WatchEvents(watch, all);
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(seen + missed, kMany);
  EXPECT_GT(missed, 0);
}

// After a restart no earlier event is retained: the loss is reported once, however late the next event comes.
TEST_F(Rpc, MissedEvents_AreCountedOnce) {
  EventLog log(nullptr);
  log.ContinueAt(10'000);
  RpcServer server(&engine_, Options(&log));
  ASSERT_TRUE(server.Start().ok());
  ClientOptions options;
  options.server = absl::StrCat("127.0.0.1:", server.port());
  const std::unique_ptr<MusterClient> client = *MusterClient::Connect(options);
  std::atomic<bool> ended{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the watch has found nothing by then
    while (!ended) {
      for (const char* space : {"other", "other", "d"}) {
        log.Carry({EventOf(ReasonCode::kNoRoom, "now", space)});
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      }
    }
  });
  const std::vector<int64_t> missed = MissedByTwo(client.get(), 9'990);
  ended = true;
  later.join();
  server.Stop();
  EXPECT_EQ(missed, (std::vector<int64_t>{9, 0}));
}

// Without a store, event numbers begin again with each start: a reader with a higher number receives events from now
// on.
TEST_F(Rpc, WatchFromEarlierLife_Continues) {
  v1::WatchEventsRequest watch;
  watch.set_after_sequence(1'000'000);
  std::thread later([&] {
    for (int i = 0; i < 100; ++i) {
      events_.Carry({EventOf(ReasonCode::kNoRoom, "now")});
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  int seen = 0;
  EXPECT_TRUE(client_->WatchEvents(watch, [&](const v1::Event&) { return ++seen < 2; }).ok());
  later.join();
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace muster
