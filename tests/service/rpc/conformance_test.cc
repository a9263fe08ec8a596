// The scenarios C-101 to C-119 through the gRPC verbs of a running musterd (SPEC S-1): the same files as for the core,
// compared with the same text. Output that only the core has (effects) is left out.
#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "clients/cpp/enum_text.h"
#include "clients/cpp/muster_client.h"
#include "support/sync.h"
#include "tests/scenario/language.h"
#include "tests/support/running_musterd.h"

namespace muster {
namespace {

class RpcTarget : public ScenarioTarget {
 public:
  explicit RpcTarget(const std::string& server) {
    ClientOptions options;
    options.server = server;
    client_ = *MusterClient::Connect(options);
  }
  ~RpcTarget() override {
    for (std::thread& permit : permits_) permit.join();
  }

  [[nodiscard]] int64_t NowMs() const override { return absl::ToUnixMillis(absl::Now()); }
  std::string Announce(const Json& manifest) override {
    v1::UpdateFactsRequest request;
    request.add_manifests(manifest.dump());
    return Error(client_->UpdateFacts(request).status());
  }
  std::string Remove(const Json& manifest) override {
    v1::UpdateFactsRequest request;
    request.add_removed_manifests(manifest.dump());
    return Error(client_->UpdateFacts(request).status());
  }
  std::string PreFilter(const std::string& uid) override {
    v1::PreFilterRequest request;
    request.set_pod_uid(uid);
    const auto answer = client_->PreFilter(request);
    if (!answer.ok()) return Error(answer.status());
    return answer->allowed() ? "prefilter: passes\n" : absl::StrCat("prefilter: rejected", Why(answer->reason()), "\n");
  }
  std::string Filter(const std::string& uid, const std::vector<std::string>& nodes) override {
    v1::FilterRequest request;
    request.set_pod_uid(uid);
    for (const std::string& node : nodes) request.add_nodes(node);
    const auto answer = client_->Filter(request);
    if (!answer.ok()) return Error(answer.status());
    if (answer->nodes().empty()) return absl::StrCat("filter: none", Why(answer->reason()), "\n");
    const auto all = client_->ListNodes();
    // A member of a gang that Muster places gets one node, other pods all nodes that fit.
    const bool lone = all.ok() && answer->nodes_size() == all->nodes_size() && InNoGang(uid);
    return absl::StrCat("filter: ", lone ? "all" : absl::StrJoin(answer->nodes(), " "), "\n");
  }
  std::string Permit(const std::string& uid, const std::string& node) override {
    v1::PermitRequest request;
    request.set_pod_uid(uid);
    request.set_node(node);
    auto first = std::make_shared<Notification>();
    auto answer = std::make_shared<std::string>();
    permits_.emplace_back([this, request, first, answer, uid] {
      bool answered = false;
      const absl::Status ended = client_->Permit(request, [&](const v1::PermitEvent& event) {
        if (std::exchange(answered, true)) {
          MutexLock lock(&mutex_);
          late_.push_back(absl::StrCat("answer ", NameOf(uid), ": ",
                                       event.verdict() == v1::PermitEvent::VERDICT_PERMIT ? "permitted" : "refused",
                                       Why(event.reason())));
        } else {
          *answer = Describe(event) + "\n";
          first->Notify();
        }
        return true;
      });
      if (!answered) {
        *answer = Error(ended);
        first->Notify();
      }
    });
    first->WaitForNotification();
    return *answer;
  }
  std::string PostFilter(const std::string& uid, const std::string& text) override {
    v1::PostFilterRequest request;
    request.set_pod_uid(uid);
    request.set_message(text);
    return Error(client_->PostFilter(request));
  }
  std::string Unreserve(const std::string& uid, const std::string& cause) override {
    v1::UnreserveRequest request;
    request.set_pod_uid(uid);
    request.set_cause(cause == "timeout"     ? v1::UnreserveRequest::CAUSE_PERMIT_TIMEOUT
                      : cause == "bind-fail" ? v1::UnreserveRequest::CAUSE_BIND_FAILED
                                             : v1::UnreserveRequest::CAUSE_REJECTED);
    return Error(client_->Unreserve(request));
  }
  std::string PostBind(const std::string& uid, const std::string& node) override {
    v1::PostBindRequest request;
    request.set_pod_uid(uid);
    request.set_node(node);
    return Error(client_->PostBind(request));
  }
  std::string HangUp(const std::string&) override { return "hang-up is not said by this client\n"; }
  std::string Wait(absl::Duration duration) override {
    absl::SleepFor(duration + absl::Milliseconds(250));  // due timers have then fired, also on a busy machine
    return "";
  }
  std::string ShowGang(const std::string& key, const std::string& shown_as, bool explain) override {
    const size_t slash = key.find('/');
    const auto gang = client_->GetGang(key.substr(0, slash), key.substr(slash + 1));
    if (!gang.ok()) return absl::StrCat("no gang ", shown_as, "\n");
    ShownGang shown;
    shown.name = shown_as;
    shown.phase = EnumText(gang->phase());
    shown.children = gang->counts().members();
    shown.waiting = gang->counts().waiting();
    shown.bound = gang->counts().bound() + gang->counts().binding();
    shown.code = EnumText(gang->reason().code());
    shown.text = gang->reason().text();
    shown.min_member = gang->rules().min_member();
    shown.total_number = gang->rules().total_number();
    shown.wait_time_ms = google::protobuf::util::TimeUtil::DurationToMilliseconds(gang->rules().wait_timeout());
    shown.mode = EnumText(gang->rules().mode());
    shown.match_policy = PolicyText(gang->rules().match_policy());
    shown.on_timeout = PolicyText(gang->rules().on_timeout());
    shown.warnings.assign(gang->warnings().begin(), gang->warnings().end());
    return WriteGang(shown, explain);
  }
  std::string Usage() override {
    const auto nodes = client_->ListNodes();
    if (!nodes.ok()) return Error(nodes.status());
    std::string out;
    for (const v1::Node& node : nodes->nodes()) {
      absl::StrAppend(&out, node.name(), ": used {", Amounts(node.used()), "} reserved {", Amounts(node.reserved()),
                      "}\n");
    }
    return out;
  }
  std::string Other(const Words& words) override { return absl::StrCat("not a verb of the API: ", words[0], "\n"); }

  [[nodiscard]] std::vector<std::string> Late() {
    MutexLock lock(&mutex_);
    return late_;
  }
  void ForgetLate() {
    MutexLock lock(&mutex_);
    late_.clear();
  }

 private:
  static std::string Error(const absl::Status& status) {
    return status.ok() ? "" : absl::StrCat("error: ", status.message(), "\n");
  }
  static std::string Why(const v1::Reason& reason) { return WriteWhy(EnumText(reason.code()), reason.text()); }
  static std::string Describe(const v1::PermitEvent& event) {
    if (event.verdict() == v1::PermitEvent::VERDICT_PERMIT) return "PERMIT";
    if (event.verdict() == v1::PermitEvent::VERDICT_REJECT) return absl::StrCat("REJECT", Why(event.reason()));
    // The remaining time is reported shortly after the call: round it up to whole seconds.
    const int64_t left_ms =
        (google::protobuf::util::TimeUtil::DurationToMilliseconds(event.remaining_wait()) + 999) / 1000 * 1000;
    return WriteWait(left_ms, EnumText(event.reason().code()), event.reason().text(),
                     {event.activate_pod_uids().begin(), event.activate_pod_uids().end()});
  }
  template <typename Map>
  static std::string Amounts(const Map& amounts) {
    const std::map<std::string, std::string> sorted(amounts.begin(), amounts.end());
    return absl::StrJoin(sorted, ", ", absl::PairFormatter(": "));
  }
  bool InNoGang(const std::string& uid) {
    const auto gangs = client_->ListGangs("");
    if (!gangs.ok()) return false;
    for (const v1::Gang& gang : gangs->gangs()) {
      const auto one = client_->GetGang(gang.namespace_(), gang.name());
      if (!one.ok()) continue;
      for (const v1::Member& member : one->members()) {
        if (member.uid() == uid) return false;
      }
    }
    return true;
  }

  std::unique_ptr<MusterClient> client_;
  std::vector<std::thread> permits_;
  Mutex mutex_;
  std::vector<std::string> late_ ABSL_GUARDED_BY(mutex_);
};

// The sorted lines, without those that only the core prints.
std::vector<std::string> Comparable(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "effect:")) lines.emplace_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

const std::set<std::string> kOfCore = {"bind", "bound", "bind-fails", "preempt", "schedule", "run"};

// Files that use only verbs of the API.
std::vector<std::string> VerbFiles() {
  std::vector<std::string> out;
  for (const std::string& file : ScenarioFiles(MUSTER_SCENARIO_DIR)) {
    if (!absl::StartsWith(std::filesystem::path(file).filename().string(), "C-1")) continue;
    bool verbs = true;
    for (const ScenarioBlock& block : ReadScenario(file)) {
      for (const std::string& command : block.commands) {
        const std::string word = command.substr(0, command.find(' '));
        verbs = verbs && kOfCore.count(word) == 0;
      }
    }
    if (verbs) out.push_back(file);
  }
  return out;
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, ScenarioOverGrpc_ProducesExpectedOutput) {
  RunningMusterd musterd;
  ASSERT_TRUE(musterd.running()) << musterd.log();
  const std::vector<ScenarioBlock> blocks = ReadScenario(GetParam());
  {
    RpcTarget target(musterd.grpc());
    ScenarioLanguage language(&target);
    for (const ScenarioBlock& block : blocks) {
      std::string output;
      for (const std::string& command : block.commands) output += language.Run(command);
      const std::vector<std::string> expected = Comparable(block.expected);
      std::vector<std::string> played;
      for (int patience = 0; patience < 300; ++patience) {
        played = Comparable(absl::StrCat(output, absl::StrJoin(target.Late(), "\n"), "\n"));
        if (played.size() >= expected.size()) break;
        absl::SleepFor(absl::Milliseconds(10));
      }
      EXPECT_EQ(absl::StrJoin(played, "\n"), absl::StrJoin(expected, "\n"));
      target.ForgetLate();
    }
    musterd.Kill();  // ends the calls that still wait
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Conformance, testing::ValuesIn(VerbFiles()), [](const auto& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(ConformanceFiles, EachCase_HasFile) {
  std::set<std::string> ids;
  for (const std::string& file : VerbFiles()) ids.insert(std::filesystem::path(file).filename().string().substr(0, 5));
  for (int id = 101; id <= 119; ++id) EXPECT_EQ(ids.count(absl::StrCat("C-", id)), 1) << "C-" << id;
}

}  // namespace
}  // namespace muster
