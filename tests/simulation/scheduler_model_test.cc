// The simulation's model of kube-scheduler behaves as the real one: kube_scheduler_cases.txt was written with
// kube-scheduler itself (tests/e2e, TestKubeSchedulerCases).
#include "tests/simulation/scheduler_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr size_t kFewestCases = 40;
constexpr int64_t kTickMs = 10;
constexpr int64_t kQuietMs = 300;
constexpr size_t kNodesNamed = 12;

struct Case {
  struct Step {
    std::string line;
    std::vector<std::string> heard;
  };
  std::string name;
  std::vector<Step> steps;
};

std::vector<Case> ReadCases() {
  std::vector<Case> cases;
  std::ifstream file(MUSTER_KUBE_SCHEDULER_CASES);
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "case ")) {
      cases.push_back({line.substr(5), {}});
    } else if (absl::StartsWith(line, "> ")) {
      cases.back().steps.back().heard = absl::StrSplit(line.substr(2), "; ");
    } else if (!line.empty() && line[0] != '#') {
      cases.back().steps.push_back({line, {}});
    }
  }
  return cases;
}

// The surroundings of the scheduler in a case: an extender with scripted answers, and an API server. Pods are
// identified by name.
class Script : public SchedulerModel::Surroundings {
 public:
  // Runs one step and returns its observations.
  std::vector<std::string> Do(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    Begin(words);
    const bool answers = words[0] == "answers";
    if (words[0] == "wait") Pass(1'000 * std::atoll(words[1].c_str()));
    if (!answers) {
      Settle();
      Look();
    }
    std::vector<std::string> heard = std::move(heard_);
    heard_.clear();
    // Bind calls run in parallel with the others: one may come at any time after its own pod's filter.
    for (size_t i = heard.size(); i-- > 0;) {
      for (size_t j = i;
           j + 1 < heard.size() && IsBind(heard[j]) && !IsBind(heard[j + 1]) && PodOf(heard[j]) != PodOf(heard[j + 1]);
           ++j) {
        std::swap(heard[j], heard[j + 1]);
      }
    }
    return heard;
  }

  // --- the extender ---
  void AskFilter(const std::string& uid, const std::vector<std::string>& nodes) override {
    Hear(absl::StrCat("filter ", uid, " ",
                      nodes.size() > kNodesNamed ? absl::StrCat("*", nodes.size()) : absl::StrJoin(nodes, " ")));
    const std::string scripted = Answer("filter", uid, "all");
    SchedulerModel::FilterAnswer answer;
    answer.words = "scripted";
    answer.error = scripted == "error";
    if (scripted == "all") answer.nodes = nodes;
    if (scripted == "unoffered") answer.nodes = {"not-offered"};
    if (scripted == "never" || scripted == "silent") answer.hopeless = nodes;
    if (absl::c_linear_search(nodes, scripted)) answer.nodes = {scripted};
    todo_.push_back([this, uid, answer] { scheduler_->Filtered(uid, answer, now_ms_); });
  }
  void AskPreempt(const std::string& uid, const SchedulerModel::Victims& victims) override {
    const std::string scripted = Answer("preempt", uid, "all");
    std::vector<std::string> lines;
    std::vector<std::string> candidates;
    for (const auto& [node, pods] : victims) {
      std::vector<std::string> names = pods;
      absl::c_sort(names);
      lines.push_back(absl::StrCat(node, ":", absl::StrJoin(names, ",")));
      if (scripted == "all" || scripted == node) candidates.push_back(node);
    }
    Hear(absl::StrCat("preempt ", uid, " ", absl::StrJoin(lines, " ")));
    todo_.push_back([this, uid, candidates] { scheduler_->Preempted(uid, candidates, now_ms_); });
  }
  void AskBind(const std::string& uid, const std::string& node, int64_t attempt) override {
    Hear(absl::StrCat("bind ", uid, " ", node));
    held_[uid] = {node, attempt};
    const std::string scripted = Answer("bind", uid, "ok");
    if (scripted != "hold") todo_.push_back([this, uid, scripted] { Release(uid, scripted == "ok"); });
  }

  // --- the API server ---
  void SayUnschedulable(const std::string& uid, const std::string& reason, const std::string& message) override {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end() || (pod->second.reason == reason && pod->second.facts.unschedulable == message)) return;
    pod->second.reason = reason;
    pod->second.facts.unschedulable = message;
    Changed(uid);
  }
  void Nominate(const std::string& uid, const std::string& node) override {
    pods_.at(uid).facts.nominated_node = node;
    Changed(uid);
  }
  void Delete(const std::string& uid) override {
    if (!pods_.at(uid).lingers) return Remove(uid);
    pods_.at(uid).facts.deleting = true;
    Changed(uid);
  }
  int Roll(int /*sides*/) override { return 0; }

 private:
  struct ApiPod {
    PodDescription facts;
    bool patient = false;
    std::string reason;
    bool lingers = false;
    // As it was last observed.
    std::string seen_nominated;
    std::string seen_reason;
    bool seen_deleting = false;
  };
  struct Held {
    std::string node;
    int64_t attempt = 0;
  };

  static bool IsBind(const std::string& heard) { return absl::StartsWith(heard, "bind "); }
  static std::string PodOf(const std::string& heard) { return std::vector<std::string>(absl::StrSplit(heard, ' '))[1]; }
  void Hear(const std::string& line) {
    heard_.push_back(line);
    last_ms_ = now_ms_;
  }
  std::string Answer(const std::string& verb, const std::string& pod, const std::string& otherwise) const {
    const auto scripted = answers_.find(absl::StrCat(verb, " ", pod));
    return scripted == answers_.end() ? otherwise : scripted->second;
  }

  // --- time ---
  void Tick() {
    now_ms_ += kTickMs;
    bool some = true;
    while (some) {
      some = scheduler_->Step(now_ms_);
      while (!todo_.empty()) {
        const std::vector<std::function<void()>> now = std::move(todo_);
        todo_.clear();
        for (const auto& one : now) one();
        some = true;
      }
    }
  }
  void Pass(int64_t ms) {
    for (int64_t end = now_ms_ + ms; now_ms_ < end;) Tick();
  }
  void Settle() {
    last_ms_ = std::max(last_ms_, now_ms_ - kQuietMs);
    if (heard_.empty()) last_ms_ = now_ms_;
    while (now_ms_ - last_ms_ < kQuietMs) Tick();
  }
  void Look() {
    std::set<std::string> lines;
    for (auto& [uid, pod] : pods_) {
      const PodDescription& facts = pod.facts;
      if (facts.nominated_node != pod.seen_nominated && facts.node_name.empty()) {
        lines.insert(absl::StrCat("nominated ", uid, facts.nominated_node.empty() ? "" : " ", facts.nominated_node));
      }
      if (facts.deleting && !pod.seen_deleting) lines.insert(absl::StrCat("preempted ", uid));
      // The condition of a bound pod is not compared.
      const std::string reason = facts.node_name.empty() || pod.reason == "SchedulerError" ? pod.reason : "";
      if (reason != pod.seen_reason && !reason.empty()) lines.insert(absl::StrCat("says ", uid, " ", reason));
      pod.seen_nominated = facts.nominated_node;
      pod.seen_deleting = facts.deleting;
      pod.seen_reason = reason;
    }
    for (const std::string& uid : gone_) lines.insert(absl::StrCat("preempted ", uid));
    gone_.clear();
    heard_.insert(heard_.end(), lines.begin(), lines.end());
  }

  // --- the API server's objects ---
  void Changed(const std::string& uid) {
    const ApiPod& pod = pods_.at(uid);
    scheduler_->PodIs(pod.facts, now_ms_, pod.patient);
  }
  void Remove(const std::string& uid) {
    if (!pods_.at(uid).facts.deleting) gone_.insert(uid);
    pods_.erase(uid);
    scheduler_->PodGone(uid, now_ms_);
  }
  void Assign(const std::string& uid, const std::string& node) {
    pods_.at(uid).facts.node_name = node;
    pods_.at(uid).reason.clear();
    Changed(uid);
  }
  void Release(const std::string& uid, bool ok) {
    const auto held = held_.extract(uid);
    if (held.empty()) return;
    if (ok && pods_.contains(uid)) Assign(uid, held.mapped().node);
    scheduler_->Bound(uid, held.mapped().attempt, ok, now_ms_);
  }

  void Begin(const std::vector<std::string>& words) {
    const std::string& what = words[0];
    const std::string name = words.size() > 1 ? words[1] : "";
    const auto named = [&](absl::string_view key) -> std::string {
      for (const std::string& word : words) {
        if (absl::StartsWith(word, absl::StrCat(key, "="))) return word.substr(key.size() + 1);
      }
      return "";
    };
    const auto has = [&](absl::string_view word) { return absl::c_linear_search(words, word); };
    const int64_t cpu = 1'000 * std::atoll(named("cpu").c_str());
    const bool is_node = nodes_.contains(name);
    if (what == "node") {
      MakeNode(name, cpu, has("cordoned"));
    } else if (what == "nodes") {
      for (int i = 0; i < std::atoi(words[2].c_str()); ++i) MakeNode(absl::StrCat(name, 1'000 + i), cpu, false);
    } else if (what == "pod") {
      MakePod(name, cpu, named, has);
    } else if (what == "answers") {
      answers_[absl::StrCat(name, " ", words[2])] = words[3];
    } else if (what == "release") {
      Release(name, words[2] == "ok");
    } else if (what == "restart") {
      Restart();
    } else if (what == "remove" && is_node) {
      nodes_.erase(name);
      scheduler_->NodeGone(name, now_ms_);
    } else if (what == "remove") {
      pods_.erase(name);
      scheduler_->PodGone(name, now_ms_);
    } else if (is_node) {
      ChangeNode(what, &nodes_.at(name), cpu);
    } else if (what != "wait") {
      ChangePod(what, name, words);
    }
  }
  void MakeNode(const std::string& name, int64_t cpu, bool cordoned) {
    NodeDescription& node = nodes_[name];
    node.name = name;
    node.allocatable = {{"cpu", cpu}, {"pods", 110}};
    node.unschedulable = cordoned;
    scheduler_->NodeIs(node, now_ms_);
  }
  template <typename Named, typename Has>
  void MakePod(const std::string& name, int64_t cpu, const Named& named, const Has& has) {
    ApiPod pod;
    pod.facts.uid = pod.facts.name = name;
    pod.facts.created_ms = now_ms_;
    pod.facts.shape.Mutable().requests = {{"cpu", cpu}};
    pod.facts.priority = std::atoi(named("priority").c_str());
    pod.facts.our_gate = has("gated");
    pod.facts.node_name = named("on");
    if (pod.facts.our_gate) pod.reason = "SchedulingGated";
    pod.patient = has("patient");
    pod.lingers = has("lingers");
    pods_[name] = std::move(pod);
    Changed(name);
  }
  void ChangeNode(const std::string& what, NodeDescription* node, int64_t cpu) {
    if (what == "grow") node->allocatable["cpu"] = cpu;
    if (what == "label") node->labels["new"] = "label";
    if (what == "cordon" || what == "uncordon") node->unschedulable = what == "cordon";
    scheduler_->NodeIs(*node, now_ms_);
  }
  void ChangePod(const std::string& what, const std::string& name, const std::vector<std::string>& words) {
    ApiPod& pod = pods_.at(name);
    if (what == "bind") return Assign(name, words[2]);
    if (what == "ungate") pod.facts.our_gate = false;
    if (what == "ungate" && pod.reason == "SchedulingGated") pod.reason.clear();
    if (what == "nominate") pod.facts.nominated_node = pod.seen_nominated = words[2];
    Changed(name);
  }
  void Restart() {
    todo_.clear();
    held_.clear();
    scheduler_ = std::make_unique<SchedulerModel>(this);
    for (const auto& [name, node] : nodes_) scheduler_->NodeIs(node, now_ms_);
    for (const auto& [uid, pod] : pods_) scheduler_->PodIs(pod.facts, now_ms_, pod.patient);
  }

  std::unique_ptr<SchedulerModel> scheduler_ = std::make_unique<SchedulerModel>(this);
  int64_t now_ms_ = 1'000'000'000;
  int64_t last_ms_ = 0;
  std::vector<std::string> heard_;
  std::vector<std::function<void()>> todo_;  // pending answers
  std::map<std::string, std::string> answers_;
  std::map<std::string, Held> held_;  // bind calls by pod
  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, ApiPod> pods_;
  std::set<std::string> gone_;  // deleted by the scheduler
};

TEST(SchedulerModel, Model_BehavesLikeKubeScheduler) {
  const std::vector<Case> cases = ReadCases();
  ASSERT_GE(cases.size(), kFewestCases);
  size_t heard = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(absl::StrCat("case ", one.name));
    Script script;
    for (const Case::Step& ctx : one.steps) {
      heard += ctx.heard.size();
      EXPECT_EQ(absl::StrJoin(script.Do(ctx.line), "\n"), absl::StrJoin(ctx.heard, "\n")) << ctx.line;
    }
  }
  EXPECT_GT(heard, 3 * cases.size()) << "the cases were not written by kube-scheduler";
}

}  // namespace
}  // namespace muster
