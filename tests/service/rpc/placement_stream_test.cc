// PlaceGangs: many calls on one stream, answered in order (SPEC S-1, S-6).
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "muster/v1/placement.grpc.pb.h"
#include "service/security/access.h"
#include "tests/service/rpc/rpc_fixture.h"
#include "tests/support/test_folder.h"

namespace muster {
namespace {

using Results = std::vector<v1::PlacementResult>;

v1::PlacementCall Submit(const std::string& id, int32_t members, const std::string& cpu, bool confirm) {
  v1::PlacementCall call;
  *call.mutable_submit() = SubmitOf(id, members, cpu);
  call.mutable_submit()->set_confirm(confirm);
  return call;
}

v1::PlacementCall Get(const std::string& id) {
  v1::PlacementCall call;
  call.mutable_get()->set_id(id);
  return call;
}

// "a Confirmed", or the code and the text of an error.
std::string Text(const v1::PlacementResult& result) {
  if (result.has_error()) return absl::StrCat(result.error().code(), ": ", result.error().message());
  return absl::StrCat(result.submission().id(), " ", v1::Submission::State_Name(result.submission().state()).substr(6));
}

std::vector<std::string> Texts(const Results& results) {
  std::vector<std::string> texts;
  for (const v1::PlacementResult& result : results) texts.push_back(Text(result));
  return texts;
}

class PlaceGangs : public Rpc {
 protected:
  // Sends the messages, then no more; returns all answers.
  Results Place(const std::vector<std::vector<v1::PlacementCall>>& messages) {
    const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
    std::thread writer([&] {
      for (const std::vector<v1::PlacementCall>& calls : messages) EXPECT_TRUE(stream->Write(MessageOf(calls)));
      stream->WritesDone();
    });
    Results results;
    v1::PlaceGangsResponse response;
    while (stream->Read(&response)) results.insert(results.end(), response.results().begin(), response.results().end());
    writer.join();
    const absl::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status;
    return results;
  }
  static v1::PlaceGangsRequest MessageOf(const std::vector<v1::PlacementCall>& calls) {
    v1::PlaceGangsRequest request;
    request.mutable_calls()->Assign(calls.begin(), calls.end());
    return request;
  }
  // Waits until the number of calls that were refused has reached `least` and no longer grows; returns it.
  int AwaitRefusals(int least) {
    int before = -1;
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    for (int now = 0; (now < least || now != before) && absl::Now() < deadline; now = Counted("PlaceGangs refused")) {
      before = now;
      absl::SleepFor(absl::Milliseconds(300));
    }
    return before;
  }
};

TEST_F(PlaceGangs, Calls_AreAnsweredInTheirOrder) {
  v1::PlacementCall nameless = Submit("", 1, "1", true);
  v1::PlacementCall invalid = Submit("x", 1, "many", true);
  EXPECT_EQ(Texts(Place({{Submit("a", 1, "1", true), Get("a"), Get("unknown")},
                         {nameless, v1::PlacementCall(), invalid, Submit("b", 1, "1", false)},
                         {},
                         {Submit("c", 1, "1", true), Get("b")}})),
            (std::vector<std::string>{
                "a CONFIRMED", "a CONFIRMED", "5: no submission unknown is known, or it ended too long ago",
                "3: submit.request_id: is empty; expected an id, by which the call can be repeated",
                "3: call: is not set; expected submit, confirm, abandon or get",
                "3: submit.members[0].shape.requests.cpu: \"many\" is not a quantity (no digits); expected a number "
                "like 500m, "
                "2, 1.5Gi or 2e3",
                "b PLANNED", "c WAITING", "b PLANNED"}));
  EXPECT_EQ(Counted("PlaceGangs ok"), 5);
  EXPECT_EQ(Counted("PlaceGangs refused"), 4);
}

TEST_F(PlaceGangs, ErrorOfACall_HasItsFields) {
  const Results results = Place({{Submit("", 1, "1", true)}});
  ASSERT_EQ(results.size(), 1U);
  ASSERT_EQ(results[0].error().details_size(), 1);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(results[0].error().details(0).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "submit.request_id");
}

TEST_F(PlaceGangs, PlansOnTheStream_AreConfirmedAndAbandoned) {
  const Results planned = Place({{Submit("a", 1, "1", false), Submit("b", 1, "1", false)}});
  v1::PlacementCall confirm;
  confirm.mutable_confirm()->set_id("a");
  confirm.mutable_confirm()->set_plan(planned.at(0).submission().plan());
  v1::PlacementCall abandon;
  abandon.mutable_abandon()->set_id("b");
  EXPECT_EQ(Texts(Place({{confirm, abandon}})), (std::vector<std::string>{"a CONFIRMED", "b ABANDONED"}));
}

// The stream breaks after the call was served: the same call has the same result and no second effect.
TEST_F(PlaceGangs, CallRepeatedAfterABrokenStream_GetsTheSameAnswer) {
  const v1::PlacementCall call = Submit("a", 2, "1", true);
  {
    const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
    ASSERT_TRUE(stream->Write(MessageOf({call})));
    for (int i = 0; i < 2'000 && !client_->GetSubmission("a").ok(); ++i) absl::SleepFor(absl::Milliseconds(5));
    stream->Cancel();
    v1::PlaceGangsResponse response;
    while (stream->Read(&response)) {
    }
    EXPECT_TRUE(absl::IsCancelled(stream->Finish()));
  }
  const Results again = Place({{call}});
  ASSERT_EQ(Texts(again), std::vector<std::string>{"a CONFIRMED"});
  EXPECT_EQ(again[0].submission().placements_size(), 2);
}

TEST_F(PlaceGangs, ConfirmAddedToARepeatedSubmission_ConfirmsItsPlan) {
  EXPECT_EQ(Texts(Place({{Submit("a", 1, "1", false), Submit("a", 1, "1", true), Submit("a", 1, "1", false)}})),
            (std::vector<std::string>{"a PLANNED", "a CONFIRMED", "a CONFIRMED"}));
}

TEST_F(PlaceGangs, ErrorOfTheCore_NamesTheFieldOfTheCall) {
  v1::PlacementCall other = Submit("a", 2, "1", true);
  const Results results = Place({{Submit("a", 1, "1", true), other}});
  google::rpc::BadRequest bad;
  ASSERT_TRUE(results.at(1).error().details(0).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "submit.request_id");
}

// More calls in one message than may wait at once.
TEST_F(PlaceGangs, LargeMessage_IsServedInPieces) {
  EXPECT_EQ(Place({std::vector<v1::PlacementCall>(10'000, Get("unknown"))}).size(), 10'000U);
}

// A message that cannot be parsed ends the stream; that is no success.
TEST_F(PlaceGangs, MessageThatIsNoUtf8_IsAnError) {
  const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
  v1::PlaceGangsRequest request = MessageOf({Submit("a", 1, "1", true)});
  request.mutable_calls(0)->mutable_submit()->mutable_gang()->set_name("\xff");
  stream->Write(request);
  stream->WritesDone();
  v1::PlaceGangsResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(absl::IsInternal(stream->Finish()));
}

// A caller that reads no answer is not served either: the memory that its calls take is bounded.
TEST_F(PlaceGangs, UnreadAnswers_StopTheService) {
  constexpr int kMessages = 200;
  constexpr int kCalls = 100;
  const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
  std::atomic<int> sent{0};
  std::thread writer([&] {
    for (int i = 0; i < kMessages; ++i) {
      std::vector<v1::PlacementCall> calls;
      for (int j = 0; j < kCalls; ++j)
        calls.push_back(Get(absl::StrCat("unknown-", i * kCalls + j, std::string(1'000, 'x'))));
      EXPECT_TRUE(stream->Write(MessageOf(calls)));
      ++sent;
    }
    stream->WritesDone();
  });
  const int served = AwaitRefusals(1'000);
  EXPECT_GE(served, 1'000);
  EXPECT_LE(served, kMessages * kCalls * 3 / 4) << "those that are open, and what both ends of the connection buffer";
  EXPECT_LT(sent, kMessages);
  int answers = 0;
  v1::PlaceGangsResponse response;
  while (stream->Read(&response)) {
    for (const v1::PlacementResult& result : response.results()) {
      EXPECT_TRUE(absl::StrContains(result.error().message(), absl::StrCat("unknown-", answers, "x")));
      ++answers;
    }
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, kMessages * kCalls);
}

// A caller that exceeds its rate is read more slowly; nothing is refused.
TEST_F(PlaceGangs, CallsAboveTheRate_AreServedLater) {
  RpcOptions options = Options(nullptr);
  options.limits.calls_per_second = 100;
  RpcServer slow(&engine_, options);
  ASSERT_TRUE(slow.Start().ok());
  ClientOptions to;
  to.server = absl::StrCat("127.0.0.1:", slow.port());
  client_ = *MusterClient::Connect(to);
  const absl::Time start = absl::Now();
  const Results results =
      Place({std::vector<v1::PlacementCall>(120, Get("a")), std::vector<v1::PlacementCall>(20, Get("a")), {Get("a")}});
  EXPECT_GT(absl::Now() - start, absl::Milliseconds(300)) << "141 calls at 100 a second, 100 of them at once";
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_EQ(results.size(), 141U);
  for (const std::string& text : Texts(results)) EXPECT_EQ(text.substr(0, 2), "5:");
  // A part of the rate is left for the caller's other calls, also while a stream waits for its turn.
  const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
  ASSERT_TRUE(stream->Write(MessageOf(std::vector<v1::PlacementCall>(1'000, Get("a")))));
  absl::SleepFor(absl::Milliseconds(100));
  const auto stub = v1::PlacementService::NewStub(grpc::CreateChannel(to.server, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 3; ++i) {  // the client would repeat them
    grpc::ClientContext context;
    v1::GetSubmissionRequest request;
    request.set_id("a");
    v1::Submission submission;
    EXPECT_EQ(stub->GetSubmission(&context, request, &submission).error_code(), grpc::StatusCode::NOT_FOUND);
  }
  stream->Cancel();
  v1::PlaceGangsResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(absl::IsCancelled(stream->Finish()));
  client_.reset();
  slow.Stop();
}

TEST_F(PlaceGangs, CallsWhileFactsComeFromKubernetes_AreRefused) {
  RpcOptions options = Options(nullptr);
  options.facts_from_kubernetes = true;
  RpcServer server(&engine_, options);
  ASSERT_TRUE(server.Start().ok());
  ClientOptions to;
  to.server = absl::StrCat("127.0.0.1:", server.port());
  client_ = *MusterClient::Connect(to);
  EXPECT_TRUE(absl::StrContains(Texts(Place({{Submit("a", 1, "1", true)}})).at(0), "create the pods there"));
  client_.reset();
  server.Stop();
}

// The caller's token is removed while its stream is open.
TEST_F(PlaceGangs, CallerWithoutRightsAnyMore_IsServedNoLonger) {
  const TestFolder folder;
  AccessOptions who;
  who.tokens_file = folder.Write("tokens", "alice read-write a-token-of-some-length\n");
  Access access(who, nullptr);
  ASSERT_TRUE(access.Start().ok());
  RpcOptions options = Options(nullptr);
  options.access = &access;
  options.stream_rights_checked = absl::ZeroDuration();
  RpcServer server(&engine_, options);
  ASSERT_TRUE(server.Start().ok());
  ClientOptions to;
  to.server = absl::StrCat("127.0.0.1:", server.port());
  to.token = "a-token-of-some-length";
  client_ = *MusterClient::Connect(to);
  const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
  v1::PlaceGangsResponse response;
  ASSERT_TRUE(stream->Write(MessageOf({Get("a")})));
  ASSERT_TRUE(stream->Read(&response));
  folder.Write("tokens", "bob read-write b-token-of-some-length\n");
  int served = 0;
  while (served < 1'000 && stream->Write(MessageOf({Get("a")})) && stream->Read(&response)) {
    ++served;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_LT(served, 1'000);
  stream->WritesDone();
  EXPECT_TRUE(absl::IsUnauthenticated(stream->Finish()));
  client_.reset();
  server.Stop();
}

// Callers that leave with calls on their way, while the engine stops: nothing is used after its end.
TEST_F(PlaceGangs, ManyStreamsThatBreak_LeaveNothing) {
  const auto stub = v1::PlacementService::NewStub(Channel());
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        grpc::ClientContext context;
        const auto stream = stub->PlaceGangs(&context);
        v1::PlaceGangsRequest request;
        for (int j = 0; j < 50; ++j) *request.add_calls() = Get(absl::StrCat("s", i, "-", j));
        for (int j = 0; j < 5; ++j) stream->Write(request);
        v1::PlaceGangsResponse response;
        if (round % 2 == 0) stream->Read(&response);
        context.TryCancel();
        static_cast<void>(stream->Finish());
      }
    });
  }
  absl::SleepFor(absl::Milliseconds(100));
  engine_.Stop();
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace muster
