// The contract: enums, pages and field masks (SPEC S-10).
#include <google/protobuf/util/time_util.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "clients/cpp/enum_text.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "muster/v1/gang.grpc.pb.h"
#include "muster/v1/node.grpc.pb.h"
#include "muster/v1/placement.grpc.pb.h"
#include "service/rpc/enums.h"
#include "service/rpc/mapping.h"
#include "service/rpc/times.h"
#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

// The core's codes and the contract's have the same numbers and the same names.
TEST(Contract, ReasonCodes_HaveTheirNames) {
  for (int i = 1; i < v1::ReasonCode_ARRAYSIZE; ++i) {
    const auto code = static_cast<ReasonCode>(i);
    EXPECT_EQ(EnumText(ToMessage(code)), ReasonName(code));
  }
  EXPECT_EQ(v1::ReasonCode_ARRAYSIZE, static_cast<int>(ReasonCode::kEvicted) + 1) << "a new code is the last one";
}

// No value of the core is shown as UNSPECIFIED, and no two are shown as one.
template <typename Core>
void ExpectDistinct(int count) {
  std::set<int> seen;
  for (int i = 0; i < count; ++i) {
    const int shown = static_cast<int>(ToMessage(static_cast<Core>(i)));
    EXPECT_NE(shown, 0) << i;
    seen.insert(shown);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(count));
}

TEST(Contract, CoreEnums_AreAllShown) {
  ExpectDistinct<GangPhase>(static_cast<int>(kGangPhases));
  ExpectDistinct<MemberState>(static_cast<int>(kMemberStates));
  ExpectDistinct<GangDialect>(static_cast<int>(GangDialect::kOwner) + 1);
  ExpectDistinct<MatchPolicy>(static_cast<int>(MatchPolicy::kWaitingRunningSucceed) + 1);
  ExpectDistinct<GangMode>(2);
  ExpectDistinct<OnTimeout>(2);
  ExpectDistinct<OnMemberFailure>(2);
  ExpectDistinct<QueueSort>(2);
}

TEST(Contract, EnumText_IsReadable) {
  EXPECT_EQ(EnumText(v1::Gang::PHASE_PRE_SCHEDULING), "PreScheduling");
  EXPECT_EQ(EnumText(v1::Gang::PHASE_UNSPECIFIED), "");
  EXPECT_EQ(EnumText(static_cast<v1::Gang::Phase>(99)), "?");
  EXPECT_EQ(PolicyText(v1::MATCH_POLICY_ONCE_SATISFIED), "once-satisfied");
  EXPECT_EQ(PolicyText(v1::MEMBER_FAILURE_ACTION_EVICT_ALL), "evict-all");
}

TEST(Contract, Durations_AreRoundedUpAndBounded) {
  Violations violations;
  google::protobuf::Duration duration;
  duration.set_nanos(1);
  EXPECT_EQ(ReadDuration(duration, 1'000, "d", "none", &violations), 1);
  duration.set_seconds(1);
  duration.set_nanos(0);
  EXPECT_EQ(ReadDuration(duration, 1'000, "d", "none", &violations), 1'000);
  EXPECT_TRUE(violations.none());
  const auto refused = [&](int64_t seconds, int32_t nanos) {
    Violations found;
    duration.set_seconds(seconds);
    duration.set_nanos(nanos);
    EXPECT_EQ(ReadDuration(duration, 1'000, "d", "none", &found), 0);
    return !found.none();
  };
  EXPECT_TRUE(refused(1, 1));
  EXPECT_TRUE(refused(-1, 0));
  EXPECT_TRUE(refused(0, -1));
  EXPECT_TRUE(refused(0, 2'000'000'000));
  EXPECT_TRUE(refused(std::numeric_limits<int64_t>::max(), 0));
}

TEST(Contract, Times_KeepFractionsOfASecond) {
  EXPECT_EQ(google::protobuf::util::TimeUtil::ToString(TimestampOfMs(1'700'000'000'123)), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(google::protobuf::util::TimeUtil::ToString(TimestampOfMs(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(google::protobuf::util::TimeUtil::ToString(DurationOfUs(1'500'001)), "1.500001s");
}

TEST_F(Rpc, List_ReturnsPages) {
  for (int i = 0; i < 5; ++i) {
    NodeDescription node;
    node.name = absl::StrCat("page-", i);
    ASSERT_TRUE(engine_.Announce(UpsertNode{node}).ok());
  }
  ASSERT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  const auto stub = v1::NodeService::NewStub(Channel());
  std::vector<std::string> names;
  v1::ListNodesRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListNodesResponse page;
    ASSERT_TRUE(stub->ListNodes(&context, request, &page).ok());
    EXPECT_LE(page.nodes_size(), 2);
    for (const v1::Node& node : page.nodes()) names.push_back(node.name());
    request.set_page_token(page.next_page_token());
    // An object that is deleted between two pages does not disturb the next one.
    if (++pages > 1) continue;
    ASSERT_TRUE(engine_.Announce(RemoveNode{names.back()}).ok());
  } while (!request.page_token().empty() && pages < 10);
  EXPECT_EQ(names, (std::vector<std::string>{"n", "page-0", "page-1", "page-2", "page-3", "page-4"}));
  EXPECT_EQ(pages, 3) << "the last page is full, and no empty one follows";
  for (const auto& [size, token] : {std::pair{-1, ""}, {1, "no token!"}}) {
    grpc::ClientContext context;
    v1::ListNodesResponse page;
    request.set_page_size(size);
    request.set_page_token(token);
    EXPECT_EQ(stub->ListNodes(&context, request, &page).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(Rpc, ListGangsOfNamespace_ReturnsPagesOfThatNamespace) {
  for (const char* name : {"x", "y", "z"}) AddPod(name, absl::StrCat("gang-", name), 2);
  ASSERT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  const auto stub = v1::GangService::NewStub(Channel());
  v1::ListGangsRequest request;
  request.set_namespace_("d");
  request.set_page_size(1);
  std::vector<std::string> names;
  do {
    grpc::ClientContext context;
    v1::ListGangsResponse page;
    ASSERT_TRUE(stub->ListGangs(&context, request, &page).ok());
    for (const v1::Gang& gang : page.gangs()) names.push_back(absl::StrCat(gang.namespace_(), "/", gang.name()));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names, (std::vector<std::string>{"d/gang-x", "d/gang-y", "d/gang-z", "d/train"}));
}

TEST_F(Rpc, ListEvents_ReturnsPages) {
  for (int i = 0; i < 3; ++i) {
    for (const char* space : {"d", "e"}) {
      events_.Carry({EmitPodEvent{{space, "a", "u-a"}, true, {ReasonCode::kNoRoom, absl::StrCat(i)}}});
    }
  }
  v1::ListEventsRequest request;
  request.set_namespace_("d");
  request.set_after_sequence(events_.After(0).last - 6);
  request.set_page_size(1);
  const auto list = ExpectOk(client_->ListEvents(request));
  ASSERT_EQ(list.events_size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(list.events(i).reason().text(), absl::StrCat(i));
}

// AIP-134: the mask names the fields to replace; the others stay.
TEST_F(Rpc, UpdateMask_ReplacesNamedFields) {
  v1::CreateGangRequest create = CreateOf("made", 2);
  create.mutable_gang()->set_total_number(4);
  create.mutable_gang()->set_on_timeout(v1::TIMEOUT_ACTION_FAIL);
  create.mutable_gang()->mutable_wait_timeout()->set_seconds(30);
  ASSERT_TRUE(client_->CreateGang(create).ok());
  v1::UpdateGangRequest update;
  update.mutable_gang()->set_name("made");
  update.mutable_gang()->set_min_member(3);
  update.mutable_gang()->set_mode(static_cast<v1::GangMode>(99));  // not in the mask: ignored
  update.mutable_update_mask()->add_paths("min_member");
  update.mutable_update_mask()->add_paths("wait_timeout");  // back to its default
  auto gang = client_->UpdateGang(update);
  ASSERT_TRUE(gang.ok()) << gang.status();
  EXPECT_EQ(gang->rules().min_member(), 3);
  EXPECT_EQ(gang->rules().total_number(), 4);
  EXPECT_EQ(gang->rules().on_timeout(), v1::TIMEOUT_ACTION_FAIL);
  EXPECT_EQ(gang->rules().wait_timeout().seconds(), 600);

  const auto refused = [&](const std::string& text) {
    update.clear_request_id();
    ExpectInvalid(client_->UpdateGang(update).status(), {text});
  };
  update.mutable_gang()->set_min_member(5);
  refused("gang.total_number: 4; expected at least min_member (5)");
  grpc::ClientContext context;
  v1::Gang unchanged;
  const grpc::Status status = v1::GangService::NewStub(Channel())->UpdateGang(&context, update, &unchanged);
  google::rpc::Status details;
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_TRUE(details.details(0).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "gang.total_number");
  update.mutable_update_mask()->set_paths(0, "minMember");
  refused("update_mask.paths[0]: \"minMember\"; expected a field of GangSpec");
  update.mutable_update_mask()->clear_paths();
  update.mutable_update_mask()->add_paths("name");
  refused("update_mask: names no field to replace");
  EXPECT_EQ(client_->GetGang("default", "made")->rules().min_member(), 3) << "nothing was changed";

  update.mutable_update_mask()->set_paths(0, "*");
  update.mutable_gang()->clear_mode();
  gang = client_->UpdateGang(update);
  ASSERT_TRUE(gang.ok()) << gang.status();
  EXPECT_EQ(gang->rules().total_number(), 5) << "its default: the minimum";
  EXPECT_EQ(gang->rules().on_timeout(), v1::TIMEOUT_ACTION_REQUEUE);
}

TEST(Contract, BindingToBeTriedAgain_ShowsNextTry) {
  MemberView member;
  member.binding.phase = BindingPhase::kFailed;
  EXPECT_FALSE(ToMessage(member).binding().has_next_try_time());
  member.binding.next_try_ms = 1'700'000'000'500;
  const v1::Binding binding = ToMessage(member).binding();
  EXPECT_EQ(google::protobuf::util::TimeUtil::TimestampToMilliseconds(binding.next_try_time()), 1'700'000'000'500);
  EXPECT_EQ(binding.phase(), v1::Binding::PHASE_FAILED);
}

TEST_F(Rpc, GetVersion_ReturnsServerAndApi) {
  const auto version = ExpectOk(client_->GetVersion());
  EXPECT_EQ(version.api_version(), "muster.v1");
  EXPECT_GT(version.start_time().seconds(), 1'600'000'000);
}

// A snapshot is everything that exists: PodGroups that it does not contain are gone, gangs created here stay.
TEST_F(Rpc, Snapshot_ReplacesPodGroups) {
  const auto pod_group = [](const std::string& name, int min) {
    return absl::StrCat(R"({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": ")",
                        name, R"("}, "spec": {"minMember": )", min, "}}");
  };
  ASSERT_TRUE(client_->CreateGang(CreateOf("created", 1)).ok());
  v1::UpdateFactsRequest update;
  for (const char* name : {"stays", "goes"}) update.add_manifests(pod_group(name, 2));
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  v1::SendSnapshotRequest part;
  part.set_source("test");
  part.set_version(1);
  part.add_manifests(pod_group("stays", 3));
  part.add_manifests(pod_group("new", 4));
  part.add_manifests(
      R"({"kind": "Pod", "metadata": {"name": "odd", "annotations": {"gang.scheduling.koordinator.sh/min-available": "2"}},
          "spec": {"containers": [{"name": "c"}]}})");
  const auto status = ExpectOk(client_->SendSnapshot({part}));
  EXPECT_EQ(status.warnings_size(), 1) << status.ShortDebugString();
  std::vector<std::string> gangs;
  const auto list = ExpectOk(client_->ListGangs(""));
  for (const v1::Gang& gang : list.gangs()) {
    gangs.push_back(absl::StrCat(gang.name(), " ", gang.rules().min_member()));
  }
  EXPECT_EQ(gangs, (std::vector<std::string>{"created 1", "new 4", "stays 3"}));
}

TEST_F(Rpc, ListSubmissions_ShowsOpenAndEnded) {
  ASSERT_TRUE(client_->SubmitGang(SubmitOf("b", 2, "1")).ok());
  ASSERT_TRUE(client_->SubmitGang(SubmitOf("a", 2, "1")).ok());
  ASSERT_TRUE(client_->AbandonGang("a").ok());
  const auto list = ExpectOk(client_->ListSubmissions(""));
  ASSERT_EQ(list.submissions_size(), 2);
  EXPECT_EQ(list.submissions(0).id(), "a");
  EXPECT_EQ(list.submissions(0).state(), v1::Submission::STATE_ABANDONED);
  EXPECT_EQ(list.submissions(1).gang(), "default/b");
  EXPECT_EQ(list.submissions(1).state(), v1::Submission::STATE_PLANNED);
  EXPECT_EQ(client_->ListSubmissions("other")->submissions_size(), 0);
  const auto stub = v1::PlacementService::NewStub(Channel());
  grpc::ClientContext context;
  v1::ListSubmissionsRequest request;
  request.set_page_size(1);
  v1::ListSubmissionsResponse page;
  ASSERT_TRUE(stub->ListSubmissions(&context, request, &page).ok());
  EXPECT_EQ(page.submissions_size(), 1);
  EXPECT_FALSE(page.next_page_token().empty());
}

TEST_F(Rpc, WatchSubmissions_ReceivesOpenOnesThenChanges) {
  ASSERT_TRUE(client_->SubmitGang(SubmitOf("first", 2, "1")).ok());
  ASSERT_TRUE(client_->SubmitGang(SubmitOf("second", 2, "1")).ok());
  ASSERT_TRUE(client_->SubmitGang(SubmitOf("ended", 2, "1")).ok());
  ASSERT_TRUE(client_->AbandonGang("ended").ok());
  std::set<std::string> open;
  std::vector<std::string> changes;
  bool synced = false;
  const absl::Status watched = client_->WatchSubmissions("default", [&](const v1::SubmissionEvent& event) {
    if (event.synced()) {
      synced = true;
      EXPECT_TRUE(client_->AbandonGang("first").ok());  // the second gets its capacity
      return true;
    }
    const v1::Submission& now = event.upserted();
    const std::string text = absl::StrCat(now.id(), " ", EnumText(now.state()));
    if (!synced) {
      open.insert(text);
      return true;
    }
    changes.push_back(text);
    return text != "second Planned";
  });
  EXPECT_TRUE(watched.ok()) << watched;
  EXPECT_EQ(open, (std::set<std::string>{"first Planned", "second Waiting"}));
  ASSERT_GE(changes.size(), 2U);
  EXPECT_EQ(changes.front(), "first Abandoned");
  EXPECT_EQ(changes.back(), "second Planned");
}

}  // namespace
}  // namespace muster
