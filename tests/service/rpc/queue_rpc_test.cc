// Queues over gRPC: a gang names its queue, and queues report their state (SPEC ).
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "service/security/access.h"
#include "tests/service/rpc/rpc_fixture.h"
#include "tests/support/test_folder.h"

namespace muster {
namespace {

class QueueRpc : public Rpc {
 protected:
  // "team" has a limit of 1,500m CPU and a quota of 500m; "lone" is a top-level queue beside it.
  void Declare() {
    QueueSpec team;
    team.name = "team";
    team.parent = "all";
    team.limit = {{"cpu", 1'500}};
    team.quota = {{"cpu", 500}};
    team.max_applications = 7;
    QueueSpec all;
    all.name = "all";
    all.over_quota_weight = {{"cpu", 3}};
    EXPECT_TRUE(engine_.Ask(SetQueues{{{team, all}, UnknownQueue::kWait}}).ok());
  }
  static v1::SubmitGangRequest Gang(const std::string& name, const std::string& queue, const std::string& cpu) {
    v1::SubmitGangRequest request = SubmitOf(name, 1, cpu);
    request.mutable_gang()->set_queue(queue);
    return request;
  }
  // Its state after it was tried.
  v1::Submission Submit(const v1::SubmitGangRequest& request) {
    EXPECT_TRUE(client_->SubmitGang(request).ok());
    EXPECT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
    for (int i = 0; i < 1'000; ++i) {
      const auto now = client_->GetSubmission(request.request_id());
      EXPECT_TRUE(now.ok()) << now.status();
      if (now->state() != v1::Submission::STATE_WAITING || now->reason().code() != v1::REASON_CODE_QUEUED) return *now;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return {};
  }
};

TEST_F(QueueRpc, NoQueuesDeclared_NameIsWarning) {
  EXPECT_EQ(client_->ListQueues()->queues_size(), 0);
  const auto none = client_->GetQueue("team");
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_TRUE(absl::StrContains(none.status().message(), "none is declared")) << none.status();
  EXPECT_TRUE(absl::IsInvalidArgument(client_->GetQueue("").status()));
  EXPECT_EQ(Submit(Gang("g", "team", "100m")).state(), v1::Submission::STATE_PLANNED);
  const auto gang = client_->GetGang("default", "g");
  ASSERT_EQ(gang->warnings_size(), 1);
  EXPECT_TRUE(absl::StrContains(gang->warnings(0), "team")) << gang->warnings(0);
}

TEST_F(QueueRpc, QueueLimit_HoldsBackItsGang) {
  Declare();
  EXPECT_EQ(Submit(Gang("first", "team", "1")).state(), v1::Submission::STATE_PLANNED);
  const v1::Submission second = Submit(Gang("second", "team", "1"));
  EXPECT_EQ(second.reason().code(), v1::REASON_CODE_QUEUE_LIMIT) << second.ShortDebugString();
  EXPECT_TRUE(absl::StrContains(second.reason().text(), "limit of queue team, cpu: 1500m, 1 is used"))
      << second.reason().text();
  EXPECT_EQ(Submit(Gang("elsewhere", "", "1")).state(), v1::Submission::STATE_PLANNED) << "room there is";
  EXPECT_EQ(client_->GetGang("default", "second")->rules().queue(), "team");
  EXPECT_EQ(client_->GetGang("default", "elsewhere")->rules().queue(), "default");
  EXPECT_EQ(Submit(Gang("nowhere", "unknown", "1m")).reason().code(), v1::REASON_CODE_UNKNOWN_QUEUE);
}

TEST_F(QueueRpc, NonPreemptibleGang_MustFitQuota) {
  Declare();
  v1::SubmitGangRequest fixed = Gang("fixed", "team", "1");
  fixed.mutable_gang()->set_preemptible(false);
  const v1::Submission refused = Submit(fixed);
  EXPECT_EQ(refused.reason().code(), v1::REASON_CODE_QUEUE_REJECTED) << refused.ShortDebugString();
  EXPECT_FALSE(client_->GetGang("default", "fixed")->rules().preemptible());
  v1::SubmitGangRequest free = Gang("free", "team", "1");
  free.mutable_gang()->set_preemptible(true);
  EXPECT_EQ(Submit(free).state(), v1::Submission::STATE_PLANNED);
  EXPECT_TRUE(client_->GetGang("default", "free")->rules().preemptible());
}

TEST_F(QueueRpc, WhatIf_ChecksQueue) {
  Declare();
  v1::PlanGangRequest request;
  *request.mutable_job() = Gang("job", "team", "1600m");
  const auto plan = ExpectOk(client_->PlanGang(request));
  EXPECT_FALSE(plan.starts());
  EXPECT_EQ(plan.reason().code(), v1::REASON_CODE_QUEUE_REJECTED) << plan.reason().text();
}

TEST_F(QueueRpc, InvalidQueueName_IsRefused) {
  ExpectInvalid(client_->SubmitGang(Gang("g", "no such name", "1")).status(), {"gang.queue"});
}

v1::QueueSpec Spec(const std::string& name, const std::string& parent, const std::string& cpu_limit = "") {
  v1::QueueSpec spec;
  spec.set_name(name);
  spec.set_parent(parent);
  if (!cpu_limit.empty()) (*spec.mutable_limit())["cpu"] = cpu_limit;
  return spec;
}

TEST_F(QueueRpc, ApplyQueues_IsAtomic) {  // SPEC Q-1
  v1::ApplyQueuesRequest request;
  *request.add_queues() = Spec("leaf", "top");
  *request.add_queues() = Spec("top", "", "1500m");
  ASSERT_TRUE(client_->ApplyQueues(request).ok());
  EXPECT_EQ(client_->GetQueue("leaf")->parent(), "top");
  EXPECT_EQ(Submit(Gang("first", "leaf", "1")).state(), v1::Submission::STATE_PLANNED);
  EXPECT_EQ(Submit(Gang("second", "leaf", "1")).reason().code(), v1::REASON_CODE_QUEUE_LIMIT);
  // A larger limit: the gang starts.
  v1::ApplyQueuesRequest more;
  *more.add_queues() = Spec("top", "", "2");
  ASSERT_TRUE(client_->ApplyQueues(more).ok());
  EXPECT_EQ(client_->GetQueue("leaf")->parent(), "top") << "what is not named stays";
  v1::Submission second = *client_->GetSubmission("second");
  for (int i = 0; i < 1'000 && second.state() == v1::Submission::STATE_WAITING; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
    second = *client_->GetSubmission("second");
  }
  EXPECT_EQ(second.state(), v1::Submission::STATE_PLANNED) << second.reason().text();
  // Partly invalid: nothing is applied, and every reason is reported.
  v1::ApplyQueuesRequest wrong;
  *wrong.add_queues() = Spec("new", "");
  *wrong.add_queues() = Spec("lost", "nowhere");
  (*wrong.mutable_queues(0)->mutable_quota())["cpu"] = "much";
  wrong.mutable_queues(1)->set_sort(static_cast<v1::QueueSort>(7));
  ExpectInvalid(client_->ApplyQueues(wrong),
                {"queues[0].quota.cpu", "queues[1].sort: 7; expected QUEUE_SORT_FIFO or QUEUE_SORT_FAIR"});
  wrong.mutable_queues(0)->clear_quota();
  wrong.mutable_queues(1)->clear_sort();
  const absl::Status no_tree = client_->ApplyQueues(wrong);
  EXPECT_TRUE(absl::StrContains(no_tree.message(), "queue lost: its parent nowhere does not exist")) << no_tree;
  EXPECT_TRUE(absl::IsNotFound(client_->GetQueue("new").status()));
  // A queue with children stays; one without is deleted, and its gangs wait.
  EXPECT_TRUE(absl::IsInvalidArgument(client_->DeleteQueue("top")));
  EXPECT_TRUE(absl::IsNotFound(client_->DeleteQueue("unknown")));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->DeleteQueue("")));
  v1::ApplyQueuesRequest only;
  *only.add_queues() = Spec("lone", "");
  only.set_prune(true);
  ASSERT_TRUE(client_->ApplyQueues(only).ok());
  EXPECT_EQ(client_->ListQueues()->queues_size(), 2) << "lone and default";
  EXPECT_EQ(Submit(Gang("third", "leaf", "1m")).reason().code(), v1::REASON_CODE_UNKNOWN_QUEUE);
  EXPECT_TRUE(client_->DeleteQueue("lone").ok());
  EXPECT_EQ(client_->ListQueues()->queues_size(), 0);
}

TEST_F(QueueRpc, AccessList_IsAppliedAndShown) {  // SPEC Q-12
  QueueRules rules;
  rules.access = AccessPolicy::kListed;
  ASSERT_TRUE(engine_.Ask(SetQueues{rules}).ok());
  v1::ApplyQueuesRequest request;
  v1::QueueSpec* top = request.add_queues();
  top->set_name("top");
  top->add_namespaces("e");
  top->add_identities("token:spark");
  v1::SelectorRequirement* requirement = top->mutable_namespace_selector()->add_requirements();
  requirement->set_key("team");
  requirement->set_operator_(v1::SelectorRequirement::OPERATOR_IN);
  requirement->add_values("v");
  *request.add_queues() = Spec("leaf", "top");
  ASSERT_TRUE(client_->ApplyQueues(request).ok());
  const v1::Queue shown = ExpectOk(client_->GetQueue("top"));
  ASSERT_EQ(shown.namespaces_size() + shown.identities_size(), 2);
  EXPECT_EQ(shown.namespaces(0), "e");
  EXPECT_EQ(shown.identities(0), "token:spark");
  ASSERT_EQ(shown.namespace_selector().requirements_size(), 1);
  EXPECT_EQ(shown.namespace_selector().requirements(0).ShortDebugString(), requirement->ShortDebugString());
  EXPECT_FALSE(client_->GetQueue("leaf")->has_namespace_selector()) << "its own list only";
  EXPECT_TRUE(absl::StrContains(client_->ExplainQueue("leaf")->text(),
                                "\nAccess: queue leaf serves what queue top lists, namespace e and namespaces with "
                                "labels team=v and caller token:spark."))
      << client_->ExplainQueue("leaf")->text();
  const v1::Submission refused = Submit(Gang("g", "leaf", "1"));
  EXPECT_EQ(refused.reason().code(), v1::REASON_CODE_QUEUE_REJECTED) << refused.ShortDebugString();
  EXPECT_TRUE(absl::StrContains(client_->ExplainGang("default", "g")->text(), "this gang is of namespace default"));
  v1::SubmitGangRequest served = Gang("h", "leaf", "1");
  served.mutable_gang()->set_namespace_("e");
  EXPECT_EQ(Submit(served).state(), v1::Submission::STATE_PLANNED);
  top->add_namespaces("A B");
  requirement->set_operator_(v1::SelectorRequirement::OPERATOR_GT);
  ExpectInvalid(client_->ApplyQueues(request), {"queues[0].namespace_selector.requirements[0].operator"});
  requirement->set_operator_(v1::SelectorRequirement::OPERATOR_EXISTS);
  requirement->clear_values();
  ExpectInvalid(client_->ApplyQueues(request),
                {"queues[0]: queue top: namespaces: \"A B\"; expected the name of a namespace, or * for all"});
}

// A second server with tokens; queue "team" serves namespace "default" and caller "token:spark".
class QueueAccessRpc : public QueueRpc {
 protected:
  QueueAccessRpc() {
    AccessOptions tokens;
    tokens.tokens_file =
        folder_.Write("tokens", "spark read-write the-token-of-spark\nguest read-write the-token-of-guest\n");
    access_ = std::make_unique<Access>(tokens, nullptr);
    EXPECT_TRUE(access_->Start().ok());
    RpcOptions options = Options(nullptr);
    options.access = access_.get();
    with_tokens_ = std::make_unique<RpcServer>(&engine_, options);
    EXPECT_TRUE(with_tokens_->Start().ok());
    QueueRules rules;
    rules.access = AccessPolicy::kListed;
    rules.queues = {{.name = "team"}};
    rules.queues[0].access.namespaces = {"default"};
    rules.queues[0].access.identities = {"token:spark"};
    EXPECT_TRUE(engine_.Ask(SetQueues{rules}).ok());
  }
  ~QueueAccessRpc() override {
    client_.reset();
    with_tokens_->Stop();
  }
  // Later calls are made with the caller's token.
  void CallAs(const std::string& caller) {
    ClientOptions options;
    options.server = absl::StrCat("127.0.0.1:", with_tokens_->port());
    options.token = "the-token-of-" + caller;
    client_ = *MusterClient::Connect(options);
  }
  [[nodiscard]] v1::ReasonCode ReasonOf(const std::string& gang) {
    return ExpectOk(client_->GetGang("default", gang)).reason().code();
  }
  // The reason of a gang that is declared by each kind of call; its name begins with `caller`.
  std::vector<v1::ReasonCode> DeclareByEachCall(const std::string& caller) {
    std::vector<v1::ReasonCode> out = {Submit(Gang(caller + "-submitted", "team", "10m")).reason().code()};
    v1::PlaceGangsRequest message;
    *message.add_calls()->mutable_submit() = Gang(caller + "-streamed", "team", "10m");
    v1::PlaceGangsResponse answer;
    const std::unique_ptr<PlacementStream> stream = client_->PlaceGangs();
    EXPECT_TRUE(stream->Write(message) && stream->Read(&answer));
    stream->WritesDone();
    v1::PlaceGangsResponse no_more;
    EXPECT_FALSE(stream->Read(&no_more));
    EXPECT_TRUE(stream->Finish().ok());
    out.push_back(answer.results(0).submission().reason().code());
    v1::CreateGangRequest create = CreateOf(caller + "-created", 1);
    create.mutable_gang()->set_queue("team");
    out.push_back(ExpectOk(client_->CreateGang(create)).reason().code());
    v1::PlanGangRequest plan;
    *plan.mutable_job() = Gang(caller + "-asked", "team", "10m");
    out.push_back(ExpectOk(client_->PlanGang(plan)).reason().code());
    v1::UpdateFactsRequest update;
    *update.add_pods() = MemberOf(caller + "-announced", 1, caller + "-pod", "10m");
    update.mutable_pods(0)->mutable_declaration()->set_queue("team");
    EXPECT_TRUE(client_->UpdateFacts(update).ok());
    out.push_back(ReasonOf(caller + "-announced"));
    return out;
  }

  const TestFolder folder_;
  std::unique_ptr<Access> access_;
  std::unique_ptr<RpcServer> with_tokens_;
};

// SPEC Q-12: for an authenticated caller its identity counts, and not the namespace, whichever call declares the gang.
TEST_F(QueueAccessRpc, AuthenticatedCaller_IsServedByIdentity) {
  EXPECT_EQ(Submit(Gang("anonymous", "team", "10m")).state(), v1::Submission::STATE_PLANNED) << "the namespace counts";
  CallAs("guest");
  EXPECT_EQ(DeclareByEachCall("guest"), std::vector<v1::ReasonCode>(5, v1::REASON_CODE_QUEUE_REJECTED));
  EXPECT_TRUE(absl::StrContains(client_->ExplainGang("default", "guest-created")->text(), "of caller token:guest"));
  CallAs("spark");
  for (const v1::ReasonCode code : DeclareByEachCall("spark")) EXPECT_NE(code, v1::REASON_CODE_QUEUE_REJECTED);
  // The caller of an update counts if the update names the queue.
  v1::UpdateGangRequest update;
  update.mutable_gang()->set_name("spark-created");
  update.mutable_gang()->set_min_member(2);
  update.mutable_gang()->set_queue("team");
  update.mutable_update_mask()->add_paths("min_member");
  CallAs("guest");
  EXPECT_NE(ExpectOk(client_->UpdateGang(update)).reason().code(), v1::REASON_CODE_QUEUE_REJECTED);
  update.mutable_update_mask()->add_paths("queue");
  EXPECT_EQ(ExpectOk(client_->UpdateGang(update)).reason().code(), v1::REASON_CODE_QUEUE_REJECTED);
  // A snapshot replaces every fact.
  for (const char* caller : {"guest", "spark"}) {
    CallAs(caller);
    v1::SendSnapshotRequest part;
    part.set_source(caller);
    part.set_version(1);
    *part.add_pods() = MemberOf("listed", 1, "listed-0", "10m");
    part.mutable_pods(0)->mutable_declaration()->set_queue("team");
    EXPECT_TRUE(client_->SendSnapshot({part}).ok());
    EXPECT_EQ(ReasonOf("listed") == v1::REASON_CODE_QUEUE_REJECTED, part.source() == "guest");
  }
}

TEST_F(QueueRpc, ExplainQueue_ReportsGangPositions) {  // SPEC S-5
  EXPECT_TRUE(absl::IsNotFound(client_->ExplainQueue("team").status()));
  Declare();
  EXPECT_TRUE(absl::IsInvalidArgument(client_->ExplainQueue("").status()));
  EXPECT_TRUE(absl::IsNotFound(client_->ExplainQueue("unknown").status()));
  EXPECT_EQ(client_->ExplainQueue("team")->text(),
            "Queue team, below all: 0 gangs run of at most 7, 0 wait.\n"
            "cpu: 0 used of at most 1500m, quota 500m, fair share now 0.");
  Submit(Gang("first", "team", "1"));
  Submit(Gang("second", "team", "1"));
  Submit(Gang("third", "team", "1"));
  const auto third = client_->ExplainGang("default", "third");
  EXPECT_EQ(third->queue_position(), 2);
  EXPECT_EQ(third->queue_length(), 2);
  ASSERT_EQ(third->ahead_size(), 1);
  EXPECT_EQ(third->ahead(0).name(), "second");
  EXPECT_EQ(third->ahead(0).queue(), "team");
  EXPECT_EQ(third->ahead(0).reason().code(), v1::REASON_CODE_QUEUE_LIMIT);
  EXPECT_TRUE(
      absl::StrContains(third->text(), "It is number 2 of 2 waiting gangs in queue team, behind default/second."))
      << third->text();
  const auto second = client_->ExplainGang("default", "second");
  EXPECT_EQ(second->queue_position(), 1);
  EXPECT_TRUE(absl::StrContains(second->text(), "It is the head of 2 waiting gangs in queue team.")) << second->text();
  EXPECT_EQ(client_->ExplainGang("default", "first")->queue_position(), 0);
  for (const char* name : {"team", "all"}) {
    const auto queue = ExpectOk(client_->ExplainQueue(name));
    EXPECT_EQ(queue.queue_length(), 2);
    ASSERT_EQ(queue.waiting_gangs_size(), 2);
    EXPECT_EQ(queue.waiting_gangs(0).name(), "second");
    EXPECT_EQ(queue.queue().name(), name);
    EXPECT_TRUE(absl::StrContains(queue.text(), "The head of the queue is default/second")) << queue.text();
    EXPECT_TRUE(absl::StrContains(queue.text(), "[QueueLimit].\nBehind it: default/third.")) << queue.text();
  }
}

TEST_F(QueueRpc, WhatIfLargerLimit_ReportsEffect) {
  Declare();
  Submit(Gang("first", "team", "1"));
  Submit(Gang("second", "team", "1"));
  v1::PlanGangRequest request;
  request.set_name("second");
  v1::QueueCapacityChange* more = request.add_queue_capacity_changes();
  more->set_queue("team");
  (*more->mutable_amounts())["cpu"] = "499m";
  EXPECT_FALSE(client_->PlanGang(request)->starts());
  (*more->mutable_amounts())["cpu"] = "500m";
  EXPECT_TRUE(client_->PlanGang(request)->starts()) << client_->PlanGang(request)->reason().text();
  EXPECT_EQ(client_->GetQueue("team")->limit().at("cpu"), "1500m") << "nothing of the query remains";
  more->set_queue("unknown");
  EXPECT_TRUE(absl::IsNotFound(client_->PlanGang(request).status()));
  more->set_queue("all");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->PlanGang(request).status())) << "it has no limit";
  more->clear_queue();
  more->clear_amounts();
  ExpectInvalid(client_->PlanGang(request).status(),
                {"queue_capacity_changes[0].queue", "queue_capacity_changes[0].amounts"});
}

TEST_F(QueueRpc, GetQueue_ReportsState) {
  Declare();
  EXPECT_EQ(Submit(Gang("first", "team", "1")).state(), v1::Submission::STATE_PLANNED);
  EXPECT_EQ(Submit(Gang("second", "team", "750m")).reason().code(), v1::REASON_CODE_QUEUE_LIMIT);
  const auto list = ExpectOk(client_->ListQueues());
  ASSERT_EQ(list.queues_size(), 3);
  EXPECT_EQ(list.queues(0).name(), "all") << "parents are first";
  const auto team = ExpectOk(client_->GetQueue("team"));
  EXPECT_EQ(team.parent(), "all");
  EXPECT_TRUE(team.leaf());
  EXPECT_EQ(team.quota().at("cpu"), "500m");
  EXPECT_EQ(team.limit().at("cpu"), "1500m");
  EXPECT_EQ(team.max_applications(), 7);
  EXPECT_EQ(team.sort(), v1::QUEUE_SORT_FIFO);
  const auto all = client_->GetQueue("all");
  EXPECT_FALSE(all->leaf());
  EXPECT_EQ(all->over_quota_weight().at("cpu"), 3);
  for (const v1::Queue* queue : {&team, &*all}) {
    EXPECT_EQ(queue->used().at("cpu"), "1");
    EXPECT_EQ(queue->waiting().at("cpu"), "750m");
    EXPECT_EQ(queue->running_gangs(), 1);
    EXPECT_EQ(queue->waiting_gangs(), 1);
  }
  EXPECT_EQ(team.fair_share().at("cpu"), "1500m") << "what it asks for, up to its limit";
  EXPECT_TRUE(client_->AbandonGang("second").ok());
  EXPECT_TRUE(client_->AbandonGang("first").ok());
  const auto empty = client_->GetQueue("team");
  EXPECT_EQ(empty->running_gangs() + empty->waiting_gangs(), 0) << empty->ShortDebugString();
  EXPECT_EQ(empty->used().count("cpu"), 0U);
  EXPECT_EQ(empty->waiting().count("cpu"), 0U);
}

TEST_F(QueueRpc, WatchQueues_ReceivesQueuesThenChanges) {
  Declare();
  std::vector<std::string> names;
  bool synced = false;
  bool runs = false;
  const absl::Status watched = client_->WatchQueues([&](const v1::QueueEvent& event) {
    if (event.synced()) {
      synced = true;
      EXPECT_TRUE(client_->SubmitGang(Gang("g", "team", "1")).ok());
    } else if (!synced) {
      names.push_back(event.upserted().name());
    } else if (event.upserted().name() == "team" && event.upserted().running_gangs() == 1 && !runs) {
      runs = true;
      v1::ApplyQueuesRequest only;
      *only.add_queues() = Spec("all", "");
      only.set_prune(true);
      EXPECT_TRUE(client_->ApplyQueues(only).ok());
    }
    return event.removed() != "team";
  });
  EXPECT_TRUE(watched.ok()) << watched;
  EXPECT_EQ(names, (std::vector<std::string>{"all", "team", "default"})) << "parents first";
  EXPECT_TRUE(runs);
}

}  // namespace
}  // namespace muster
