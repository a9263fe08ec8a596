// SPEC S-2: without an API server, the facts announced to one process are present in the next.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/state/machine/restart_fixture.h"

namespace muster {
namespace {

// A machine that persists facts, and its successors.
class PersistedFactsTest : public Restarts {
 protected:
  PersistedFactsTest() {
    settings_ = {.persist_facts = true, .stale_after_ms = 60'000};
    now_ms_ = 1'000;
    Begin();
  }
  void Apply(const Command& command) { EXPECT_EQ(Try(command), absl::OkStatus()); }
  absl::Status Try(const Command& command) {
    const Outcome out = ApplyOnly(command);
    reply_ = out.reply;
    return out.status;
  }
  void Begin() {
    Restarts::Begin();
    Apply(RestoreFacts{});
  }
  static PodDescription Declares(const std::string& uid, int64_t created_ms, int32_t min) {
    PodDescription pod = Member(uid, "g", min);
    pod.scheduler_name.clear();
    pod.created_ms = created_ms;
    return pod;
  }
  [[nodiscard]] std::string Stale() const {
    std::string out;
    for (const char* name : {"m", "n"}) {
      const std::optional<NodeView> view = machine_->reader().facts.ViewNode(std::string(name));
      if (view.has_value() && view->stale_since_ms != kNever) out += view->expired ? absl::StrCat(name, "!") : name;
    }
    EXPECT_EQ(machine_->rooms().sources.stale_since_ms() == kNever, out.empty());
    EXPECT_EQ(machine_->rooms().cluster.stale_nodes(),
              std::count_if(out.begin(), out.end(), [](char c) { return c != '!'; }));
    return out;
  }
  [[nodiscard]] SubmissionReply QuerySubmission() {
    Apply(AskGang{"s"});
    return std::get<SubmissionReply>(reply_);
  }

  Reply reply_;
};

// D-9: the member created first declares the gang, whatever the names of the members.
TEST_F(PersistedFactsTest, FirstMember_StillDeclaresTheGang) {
  Apply(UpsertPod{Declares("z", 1, 4)});
  Apply(UpsertPod{Declares("a", 2, 2)});
  ASSERT_EQ(machine_->reader().FindGang("d/g")->rules.min_member, 4);
  Begin();
  EXPECT_EQ(machine_->reader().FindGang("d/g")->rules.min_member, 4);
  EXPECT_EQ(machine_->reader().FindGang("d/g")->declared_by, "z");
}

// A PodGroup that was created again with the same spec is another PodGroup.
TEST_F(PersistedFactsTest, RecreatedPodGroup_KeepsItsNewUid) {
  GangObject object{GangDialect::kPodGroupSigs, "d", "g", "first", 1, {}};
  object.declaration.Mutable().min_member = 3;
  Apply(UpsertGangObject{object});
  object.uid = "second";
  Apply(UpsertGangObject{object});
  Begin();
  EXPECT_EQ(machine_->reader().FindGang("d/g")->objects.at(GangDialect::kPodGroupSigs).uid, "second");
}

// D-8, D-12: a gang whose declaration is gone has the rules of a gang that was never declared, also after a restart.
TEST_F(PersistedFactsTest, DeclarationRemoved_RulesAreTheSameAfterRestart) {
  const auto rules = [this](const std::string& gang) {
    const GangRules& of = machine_->reader().FindGang("d/" + gang)->rules;
    return absl::StrCat("min ", of.min_member, ", total ", of.total_number, ", wait ", of.wait_time_ms, ", queue ",
                        of.queue, ", ", ToString(of.on_timeout), ", ", ToString(of.match_policy), ", grace ",
                        of.stale_grace_ms);
  };
  const auto put = [this](const std::string& gang, const std::string& uid, bool declares) {
    PodDescription pod = Member(uid, gang, 2);
    pod.scheduler_name.clear();
    pod.gang.dialect = GangDialect::kApi;
    pod.gang.declares = declares;
    if (!declares) pod.gang.declaration = {};
    Apply(UpsertPod{pod});
  };
  put("plain", "plain-1", false);
  GangObject object{GangDialect::kApi, "d", "made", "", 1, {}};
  object.declaration.Mutable().min_member = 3;
  object.declaration.Mutable().queue = "blue";
  Apply(UpsertGangObject{object});
  put("made", "made-1", false);
  put("own", "own-1", true);
  put("own", "own-2", false);
  EXPECT_NE(rules("made"), rules("plain"));
  EXPECT_NE(rules("own"), rules("plain"));
  Apply(RemoveGangObject{GangDialect::kApi, "d", "made", true});
  Apply(RemovePod{"own-1"});
  const std::string none = rules("plain");
  EXPECT_EQ(none, "min -1, total -1, wait 600000, queue default, fail, once-satisfied, grace -1");
  for (int restarts = 0; restarts < 2; ++restarts) {
    for (const char* gang : {"made", "own"}) EXPECT_EQ(rules(gang), none) << gang << ", restarts: " << restarts;
    Begin();
  }
}

TEST_F(PersistedFactsTest, RemovedFacts_StayRemoved) {
  Apply(UpsertNode{SmallNode("n", 1)});
  Apply(UpsertPod{Declares("a", 1, 1)});
  Begin();
  ASSERT_NE(machine_->reader().FindPod("a"), nullptr);
  ASSERT_TRUE(machine_->reader().facts.ViewNode("n").has_value());
  Apply(RemovePod{"a"});
  Apply(RemoveNode{"n"});
  Begin();
  EXPECT_EQ(machine_->reader().FindPod("a"), nullptr);
  EXPECT_FALSE(machine_->reader().facts.ViewNode("n").has_value());
}

// S-2: a fact from an earlier process is stale until its announcer sends an update.
TEST_F(PersistedFactsTest, Nodes_AreStaleUntilTheirAnnouncerSends) {
  Apply(ReplaceFacts{{"a", 5}, {SmallNode("n", 1'000), SmallNode("m", 1'000)}, {}});
  EXPECT_EQ(Stale(), "");
  Begin();
  EXPECT_EQ(Stale(), "mn");
  EXPECT_EQ(machine_->reader().facts.ViewNode("n")->stale_since_ms, 1'000);
  EXPECT_FALSE(Try(UpdateFacts{.facts_version = {"a", 9}}).ok()) << "a gap";
  EXPECT_FALSE(Try(UpdateFacts{.facts_version = {"b", 6}}).ok()) << "somebody else";
  EXPECT_EQ(Stale(), "mn");
  Apply(UpdateFacts{.facts_version = {"", 0}, .nodes = {SmallNode("n", 1'000)}});
  EXPECT_EQ(Stale(), "m") << "announced by hand";
  std::vector<std::string> gangs;
  std::vector<std::string> nodes;
  machine_->TakeChanged(&gangs, &nodes);
  Apply(UpdateFacts{.facts_version = {"a", 6}});
  EXPECT_EQ(Stale(), "");
  machine_->TakeChanged(&gangs, &nodes);
  EXPECT_EQ(nodes, std::vector<std::string>{"m"}) << "the change is published";
  Begin();
  EXPECT_EQ(Stale(), "mn");
  Apply(UpdateFacts{.facts_version = {"a", 6}});  // its last update again
  EXPECT_EQ(Stale(), "");
  Begin();
  Apply(RemoveNode{"m"});
  EXPECT_EQ(Stale(), "n");
  Apply(ReplaceFacts{{"b", 1}, {SmallNode("n", 1'000)}, {}});  // another announcer takes over
  EXPECT_EQ(Stale(), "");
}

// Facts set by hand have no announcer that could send them again.
TEST_F(PersistedFactsTest, FactsSetByHand_AreNotStale) {
  Apply(UpdateFacts{.facts_version = {"", 0}, .nodes = {SmallNode("n", 1'000)}});
  Begin();
  EXPECT_EQ(Stale(), "");
  EXPECT_EQ(machine_->NextDeadline(), kNever);
}

TEST_F(PersistedFactsTest, AnnouncerSilentTooLong_NodesGetNoNewPods) {
  Apply(ReplaceFacts{{"a", 5}, {SmallNode("n", 1'000)}, {}});
  Begin();
  Apply(SubmitGang{"s", "d", "g", Declares("p", 1, 1).gang.declaration, {Lone("p", 600)}, 600'000});
  ASSERT_EQ(QuerySubmission().state, SubmissionReply::State::kPlanned) << "not for so long yet";
  const int64_t plan = QuerySubmission().plan;
  ASSERT_EQ(machine_->rooms().sources.ExpiresAt(), 61'000);
  EXPECT_LE(machine_->NextDeadline(), 61'000);
  now_ms_ = 60'999;
  Apply(Tick{});
  EXPECT_EQ(QuerySubmission().state, SubmissionReply::State::kPlanned);
  now_ms_ = 61'000;
  Apply(Tick{});
  EXPECT_EQ(Stale(), "n!");
  Apply(PlanRound{});
  EXPECT_NE(QuerySubmission().reason.text.find("1 node: not announced since musterd started"), std::string::npos)
      << QuerySubmission().reason.text;
  EXPECT_EQ(machine_->reader().gangs.View(*machine_->reader().FindGang("d/g"), false).would_help,
            "announce the nodes again: their source has sent nothing since musterd started");
  EXPECT_FALSE(Try(ConfirmGang{"s", plan}).ok());
  EXPECT_EQ(machine_->rooms().cluster.TotalFree().Get(kCpu), 0) << "it must not be promised";
  EXPECT_EQ(machine_->rooms().sources.ExpiresAt(), kNever) << "once";
  Apply(UpsertPod{Declares("alone", 1, 0)});
  Apply(FindNodes{"alone", {"n"}});
  EXPECT_TRUE(std::get<NodesReply>(reply_).nodes.empty());
  // The node's announcer sends an update without changes: the gang is planned again.
  Apply(UpdateFacts{.facts_version = {"a", 6}});
  ASSERT_TRUE(machine_->PlanningDue());
  Apply(PlanRound{});
  ASSERT_EQ(QuerySubmission().state, SubmissionReply::State::kPlanned) << QuerySubmission().reason.text;
  Apply(ConfirmGang{"s", QuerySubmission().plan});
  // Pods that run there are not touched, however long the announcer is silent.
  Begin();
  now_ms_ = 200'000;
  Apply(Tick{});
  EXPECT_EQ(Stale(), "n!");
  EXPECT_EQ(machine_->reader().FindPod("p")->facts.node_name, "n");
}

// A restart does not reset the time since which an announcer is silent.
TEST_F(PersistedFactsTest, Restart_StaleNodes_StayStale) {
  Apply(ReplaceFacts{{"a", 5}, {SmallNode("n", 1'000)}, {}});
  now_ms_ = 10'000;
  Begin();
  EXPECT_EQ(machine_->reader().facts.ViewNode("n")->stale_since_ms, 10'000);
  now_ms_ = 60'000;
  Begin();
  EXPECT_EQ(machine_->reader().facts.ViewNode("n")->stale_since_ms, 10'000);
  EXPECT_EQ(Stale(), "n");
  now_ms_ = 70'000;
  Begin();
  EXPECT_EQ(Stale(), "n!") << "before anything is placed";
  Apply(UpdateFacts{.facts_version = {"a", 5}});  // its last update again
  EXPECT_EQ(Stale(), "");
  now_ms_ = 90'000;
  Begin();
  EXPECT_EQ(machine_->reader().facts.ViewNode("n")->stale_since_ms, 90'000) << "it had spoken";
}

// A store is only for the kind of process that wrote it. Another kind refuses it, so that no unknown record is lost.
TEST_F(PersistedFactsTest, Store_OfAnotherKindOfProcess_IsRefused) {
  Apply(ReplaceFacts{{"a", 5}, {SmallNode("n", 1'000)}, {}});
  std::vector<Record> facts;
  for (const auto& [name, record] : store_) facts.push_back(record);
  const absl::Status other = Machine(MachineSettings()).Load(facts);
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  Outcome out;
  ApplyContext writes(1'000, &out);
  WriteCommitRecord({"u", "n", "d/g", 0, true, 1'000}, &writes);
  const MachineSettings persisting{.persist_facts = true};
  EXPECT_TRUE(absl::IsFailedPrecondition(Machine(persisting).Load(out.records)));
  EXPECT_TRUE(Machine(MachineSettings()).Load(out.records).ok());
  EXPECT_TRUE(Machine(persisting).Load({EffectsRecord(7)}).ok()) << "says nothing of either";
  EXPECT_TRUE(Machine(MachineSettings()).Load({EffectsRecord(7)}).ok());
}

// S-1: the time to live of an open submission starts again; ended submissions keep their order and their results.
TEST_F(PersistedFactsTest, Submissions_OpenAndEnded_SurviveRestarts) {
  for (const char* id : {"z", "a", "open", "s"}) {
    Begin();
    Apply(SubmitGang{id, "d", id, Declares("p", 1, 1).gang.declaration, {Lone(id, 1)}, 60'000, 7});
    if (id != std::string("open")) Apply(AbandonGang{id});
  }
  for (int restarts = 0; restarts < 2; ++restarts) {
    now_ms_ += 10'000;
    Begin();
    const Submissions& kept = machine_->rooms().submissions;
    EXPECT_EQ(kept.EndedAfter(0, 9), (std::vector<std::string>{"z", "a", "s"}));
    EXPECT_EQ(kept.Of(*machine_->reader().FindGang("d/open"))->expires_ms, now_ms_ + 60'000);
    EXPECT_EQ(QuerySubmission().state, SubmissionReply::State::kAbandoned);
  }
}

// The time counts from the latest silence; 0: facts are used without limit.
TEST(SourcesTest, ExpiresAt_AfterSilence_IsReportedOnce) {
  for (const int64_t after_ms : {0, 1, 2}) {
    Sources sources({}, after_ms);
    for (const int64_t since_ms : {5, 9}) {
      sources.SetStaleSince(since_ms);
      EXPECT_EQ(sources.ExpiresAt(), after_ms == 0 ? kNever : since_ms + after_ms);
      sources.SetExpired();
      EXPECT_EQ(sources.ExpiresAt(), kNever);
    }
  }
}

// A store that was edited by hand has two submissions of one gang. One is restored, the other is reported as wrong.
TEST_F(PersistedFactsTest, TwoSubmissionsOfOneGang_OneIsRestored) {
  Outcome out;
  ApplyContext writes(1'000, &out);
  for (const char* id : {"first", "second"}) WriteSubmissionRecord({id, "d/g", 7, 60'000, false, {}, 0}, &writes);
  for (const Record& record : out.records) store_[RecordName(record)] = record;
  machine_ = std::make_unique<Machine>(MachineSettings{.persist_facts = true});
  ASSERT_TRUE(machine_->Load(out.records).ok());
  const absl::Status taken = Try(RestoreFacts{});
  EXPECT_TRUE(absl::IsInvalidArgument(taken)) << taken;
  EXPECT_NE(taken.message().find("stored submission second: gang d/g is that of submission first already"),
            std::string::npos)
      << taken;
  EXPECT_EQ(CheckInvariants(*machine_), absl::OkStatus());
  Apply(AskGang{"first"});
  EXPECT_TRUE(absl::IsNotFound(Try(AskGang{"second"})));
}

}  // namespace
}  // namespace muster
