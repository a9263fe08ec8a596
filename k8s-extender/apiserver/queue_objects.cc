#include "k8s-extender/apiserver/queue_objects.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "k8s-extender/dialects/queues.h"
#include "support/clock.h"

namespace muster {
namespace {

constexpr char kAccepted[] = "Accepted";
constexpr absl::Duration kTimeout = absl::Seconds(10);
constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kMaxPause = absl::Seconds(30);

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(absl::ToUnixSeconds(time)), absl::UTCTimeZone());
}

}  // namespace

QueueObjects::QueueObjects(KubeClient* writer, DecisionPort* port, QueueRules rules)
    : writer_(writer), port_(port), rules_(std::move(rules)), thread_([this] { Run(); }) {}

QueueObjects::~QueueObjects() { Stop(); }

void QueueObjects::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

int32_t QueueObjects::not_accepted() const {
  MutexLock lock(&mutex_);
  return static_cast<int32_t>(
      std::count_if(objects_.begin(), objects_.end(), [](const auto& each) { return !each.second.wanted.accepted; }));
}

Informer::Handlers QueueObjects::Handlers(std::function<void()> synced) {
  const auto name_of = [](const Json& object) { return StringOrEmpty(Child(object, "metadata"), "name"); };
  return {.read =
              [this, name_of](const Json& json) {
                return [this, name = name_of(json), object = Read(json)]() mutable { Upsert(name, std::move(object)); };
              },
          .remove = [this](const std::string& name, const std::string&) { Remove(name); },
          .identity = name_of,
          .synced =
              [this, synced = std::move(synced)] {
                {
                  MutexLock lock(&mutex_);
                  listed_ = true;
                  ValidateTree();
                }
                synced();
              }};
}

QueueObjects::Object QueueObjects::Read(const Json& json) {
  const Json& metadata = Child(json, "metadata");
  Object object{StringOrEmpty(metadata, "creationTimestamp"),
                IntAt(metadata, "generation").value_or(0),
                ParseQueue(json),
                {},
                "",
                {}};
  if (const Json& conditions = Child(Child(json, "status"), "conditions"); conditions.is_array()) {
    for (const Json& each : conditions) {
      if (StringOrEmpty(each, "type") != kAccepted) continue;
      object.has = {StringOrEmpty(each, "status") == "True", StringOrEmpty(each, "reason"),
                    StringOrEmpty(each, "message"), IntAt(each, "observedGeneration").value_or(0)};
      object.since = StringOrEmpty(each, "lastTransitionTime");
    }
  }
  return object;
}

void QueueObjects::Upsert(const std::string& name, Object object) {
  MutexLock lock(&mutex_);
  objects_.insert_or_assign(name, std::move(object));
  if (listed_) ValidateTree();
}

void QueueObjects::Remove(const std::string& name) {
  MutexLock lock(&mutex_);
  objects_.erase(name);
  if (listed_) ValidateTree();
}

void QueueObjects::ValidateTree() {
  std::vector<std::pair<std::string, std::string>> by_age;  // (creation time, name)
  for (const auto& [name, object] : objects_) by_age.emplace_back(object.created, name);
  std::sort(by_age.begin(), by_age.end());
  QueueRules rules = rules_;
  rules.queues.clear();
  std::map<std::string, std::vector<std::string>> wrong;  // by queue
  for (const auto& [created, name] : by_age) {
    const Object& object = objects_.at(name);
    if (object.spec.ok()) {
      rules.queues.push_back(*object.spec);
    } else {
      wrong[name].emplace_back(object.spec.status().message());
    }
  }
  // If some objects are unreadable, problems of their ancestors or descendants would only be consequences.
  if (wrong.empty()) {
    for (const QueueProblem& problem : ValidateQueues(rules)) wrong[problem.queue].push_back(problem.text);
  }
  if (wrong.empty()) {
    in_force_.clear();
    for (const QueueSpec& queue : rules.queues) in_force_.emplace(queue.name, queue);
    port_->Announce(SetQueues{std::move(rules)}).IgnoreError();
  } else {
    spdlog::warn("queues: {} of {} are invalid, the last valid tree stays in effect; the first, {}: {}", wrong.size(),
                 objects_.size(), wrong.begin()->first, wrong.begin()->second.front());
  }
  for (auto& [name, object] : objects_) {
    Condition& wanted = object.wanted;
    wanted.generation = object.generation;
    const auto found = wrong.find(name);
    const auto force = in_force_.find(name);
    const bool in_force = object.spec.ok() && force != in_force_.end() && force->second == *object.spec;
    wanted.accepted = found == wrong.end() && in_force;
    if (wanted.accepted) {
      wanted.reason = kAccepted;
      wanted.message = "it is in effect";
    } else if (found != wrong.end()) {
      wanted.reason = "Invalid";
      wanted.message = absl::StrJoin(found->second, "; ");
    } else {
      wanted.reason = "TreeInvalid";
      wanted.message = absl::StrCat("queue ", wrong.begin()->first,
                                    " is invalid: until it is corrected, the last valid queues stay in effect");
    }
  }
  changed_.SignalAll();
}

void QueueObjects::Run() {
  absl::Duration pause = absl::ZeroDuration();
  for (;;) {
    std::vector<std::pair<std::string, Object>> write;
    {
      MutexLock lock(&mutex_);
      if (pause > absl::ZeroDuration() && !stopping_) changed_.WaitWithTimeout(&mutex_, pause);
      const auto due = [](const auto& each) { return !(each.second.has == each.second.wanted); };
      while (!stopping_ && (!listed_ || std::none_of(objects_.begin(), objects_.end(), due))) changed_.Wait(&mutex_);
      if (stopping_) return;
      std::copy_if(objects_.begin(), objects_.end(), std::back_inserter(write), due);
    }
    bool all = true;
    for (const auto& [name, object] : write) {
      const bool written = Write(name, object);
      all = all && written;
      if (!written) continue;
      MutexLock lock(&mutex_);
      const auto at = objects_.find(name);
      if (at != objects_.end() && at->second.generation == object.generation) at->second.has = object.wanted;
    }
    pause = all ? absl::ZeroDuration() : std::clamp(2 * pause, kFirstPause, kMaxPause);
  }
}

bool QueueObjects::Write(const std::string& name, const Object& object) {
  const bool turned = object.since.empty() || object.has.accepted != object.wanted.accepted;
  const Json patch = {{"status",
                       {{"conditions",
                         {{{"type", kAccepted},
                           {"status", object.wanted.accepted ? "True" : "False"},
                           {"reason", object.wanted.reason},
                           {"message", object.wanted.message},
                           {"observedGeneration", object.wanted.generation},
                           {"lastTransitionTime", turned ? TimeText(WallNow()) : object.since}}}}}}};
  const std::string path = absl::StrCat("/apis/", kQueueApi, "/", kQueueApiVersion, "/queues/", name, "/status");
  const absl::StatusOr<KubeResponse> response = writer_->Send(KubeMethod::kPatchMerge, path, Dump(patch), kTimeout);
  if (response.ok() && (response->status / 100 == 2 || response->status == 404)) return true;
  spdlog::warn("status of queue {}: {}", name,
               response.ok() ? StatusMessage(*response) : std::string(response.status().message()));
  return false;
}

}  // namespace muster
