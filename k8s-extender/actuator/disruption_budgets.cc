#include "k8s-extender/actuator/disruption_budgets.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/keys.h"
#include "k8s-extender/dialects/metadata.h"

namespace muster {
namespace {

constexpr char kPath[] = "/apis/policy/v1/poddisruptionbudgets";
constexpr char kManagedBy[] = "app.kubernetes.io/managed-by";
constexpr char kMuster[] = "muster";
constexpr char kPrefix[] = "muster-";  // of names
constexpr absl::Duration kTimeout = absl::Seconds(10);

std::string KeyOf(absl::string_view name_space, absl::string_view gang) {
  return absl::StrCat(name_space, "/", kPrefix, GangLabel(gang));
}

}  // namespace

DisruptionBudgets::DisruptionBudgets(KubeClient* client, DisruptionBudgetOptions options)
    : client_(client), options_(options), informer_(kPath, client, Handlers()) {}
DisruptionBudgets::~DisruptionBudgets() { Stop(); }

void DisruptionBudgets::Start() {
  thread_ = std::thread([this] { Run(); });
  informer_.Start();
}

// REQUIRES: the client is stopped or answers.
void DisruptionBudgets::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  informer_.Stop();
  if (thread_.joinable()) thread_.join();
}

int32_t DisruptionBudgets::Required(const GangView& gang, int32_t before) {
  if (!gang.satisfied || gang.bound == 0 || gang.rules.min_member <= 0) return 0;
  const bool has_subgroups = !gang.rules.tree.empty();
  const bool whole = gang.phase == GangPhase::kScheduled || gang.phase == GangPhase::kRunning;
  if (gang.reason.code == ReasonCode::kEvicted) return 0;  // Muster's own evictions must pass
  // A minimum of subgroups is no number of pods: all that run when the gang is whole must stay.
  const int32_t minimum = has_subgroups ? (whole ? gang.bound : before) : gang.rules.min_member - gang.succeeded;
  return minimum < 2 ? 0 : minimum;
}

void DisruptionBudgets::WriteAt(absl::Time at, const std::string& key) {
  due_.emplace(at, key);
  changed_.Signal();
}

void DisruptionBudgets::Update(const GangView& gang) {
  const std::string key = KeyOf(gang.name_space, gang.name);
  MutexLock lock(&mutex_);
  const auto known = budgets_.find(key);
  const int32_t minimum = Required(gang, known == budgets_.end() ? 0 : known->second.wanted);
  if (known == budgets_.end() && minimum == 0) return;
  Budget& budget = budgets_[key];
  budget.label = GangLabel(gang.name);
  if (budget.wanted == minimum) return;
  budget.wanted = minimum;
  WriteAt(SteadyNow(), key);
}

void DisruptionBudgets::Remove(const std::string& gang) {
  const size_t slash = gang.find('/');
  const std::string key = KeyOf(gang.substr(0, slash), gang.substr(slash + 1));
  MutexLock lock(&mutex_);
  const auto known = budgets_.find(key);
  if (known == budgets_.end() || known->second.wanted == 0) return;
  known->second.wanted = 0;
  WriteAt(SteadyNow(), key);
}

Informer::Handlers DisruptionBudgets::Handlers() {
  return {.read = [this](const Json& object) { return Read(object); },
          .remove = [this](const std::string&, const std::string& key) { OnGone(key); },
          .identity = [](const Json& object) { return StringOrEmpty(Child(object, "metadata"), "uid"); },
          .synced =
              [this] {
                MutexLock lock(&mutex_);
                listed_ = true;
                changed_.Signal();
              }};
}

Informer::Announcement DisruptionBudgets::Read(const Json& object) {
  const Json& metadata = Child(object, "metadata");
  std::string key = absl::StrCat(StringOrEmpty(metadata, "namespace"), "/", StringOrEmpty(metadata, "name"));
  const bool named = absl::StartsWith(StringOrEmpty(metadata, "name"), kPrefix);
  if (!named || StringOrEmpty(Child(metadata, "labels"), kManagedBy) != kMuster) {
    return [this, key = std::move(key)] { OnGone(key); };
  }
  const int64_t minimum = IntAt(Child(object, "spec"), "minAvailable").value_or(-1);  // -1: changed by another writer
  return [this, key = std::move(key), minimum = static_cast<int32_t>(std::min<int64_t>(minimum, INT32_MAX))] {
    OnBudget(key, minimum);
  };
}

void DisruptionBudgets::OnBudget(const std::string& key, int32_t minimum) {
  MutexLock lock(&mutex_);
  Budget& budget = budgets_[key];
  ++budget.events;
  budget.written = minimum;
  WriteAt(budget.label.empty() ? SteadyNow() + options_.grace : SteadyNow(), key);
}

void DisruptionBudgets::OnGone(const std::string& key) {
  MutexLock lock(&mutex_);
  const auto known = budgets_.find(key);
  if (known == budgets_.end()) return;
  ++known->second.events;
  known->second.written = 0;
  WriteAt(SteadyNow(), key);
}

std::string DisruptionBudgets::Next() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (!listed_ || due_.empty()) {
      changed_.Wait(&mutex_);
    } else if (due_.begin()->first > SteadyNow()) {
      changed_.WaitWithTimeout(&mutex_, due_.begin()->first - SteadyNow());
    } else {
      std::string key = due_.begin()->second;
      due_.erase(due_.begin());
      const auto budget = budgets_.find(key);
      if (budget == budgets_.end()) continue;
      if (budget->second.wanted != budget->second.written) return key;
      if (budget->second.wanted == 0) budgets_.erase(budget);
    }
  }
  return "";
}

void DisruptionBudgets::Run() {
  for (std::string key = Next(); !key.empty(); key = Next()) {
    Budget budget;
    {
      MutexLock lock(&mutex_);
      budget = budgets_[key];
    }
    const std::string failure = Write(key, budget);
    MutexLock lock(&mutex_);
    const auto known = budgets_.find(key);
    if (known == budgets_.end()) continue;
    if (failure.empty()) {
      if (known->second.events == budget.events) known->second.written = budget.wanted;
      known->second.attempts = 0;
      WriteAt(SteadyNow(), key);  // what is wanted may have changed
      continue;
    }
    if (known->second.attempts == 0) spdlog::warn("disruption budget {}: {}; it is tried again", key, failure);
    const absl::Duration pause = options_.min_pause * (int64_t{1} << std::min(known->second.attempts++, 20));
    WriteAt(SteadyNow() + std::min(pause, options_.max_pause), key);
  }
}

std::string DisruptionBudgets::Write(const std::string& key, const Budget& budget) {
  const size_t slash = key.find('/');
  const std::string name = key.substr(slash + 1);
  const std::string all = absl::StrCat("/apis/policy/v1/namespaces/", key.substr(0, slash), "/poddisruptionbudgets");
  const std::string one = absl::StrCat(all, "/", name);
  const Json minimum = {{"minAvailable", budget.wanted}};
  absl::StatusOr<KubeResponse> response;
  if (budget.wanted == 0) {
    response = client_->Send(KubeMethod::kDelete, one, "", kTimeout);
    if (response.ok() && response->status == 404) return "";
  } else if (budget.written != 0) {
    response = client_->Send(KubeMethod::kPatchMerge, one, Dump({{"spec", minimum}}), kTimeout);
  } else {
    Json object = {{"apiVersion", "policy/v1"},
                   {"kind", "PodDisruptionBudget"},
                   {"metadata", {{"name", name}, {"labels", {{kManagedBy, kMuster}}}}},
                   {"spec", minimum}};
    object["spec"]["selector"]["matchLabels"][keys::kGangLabel] = budget.label;
    response = client_->Send(KubeMethod::kPost, all, Dump(object), kTimeout);
  }
  if (!response.ok()) return std::string(response.status().message());
  return response->status / 100 == 2 ? "" : StatusMessage(*response);
}

}  // namespace muster
