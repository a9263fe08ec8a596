#include "k8s-extender/actuator/actuator.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "k8s-extender/dialects/keys.h"
#include "state/base/hash.h"
#include "state/base/text.h"

namespace muster {
namespace {

// Repeated failures are logged at this attempt, and again after every kLogEveryAttempts.
constexpr int kFirstLoggedAttempt = 4;
constexpr int kLogEveryAttempts = 30;

std::string PodPath(const PodRef& pod, const char* subresource) {
  return absl::StrCat("/api/v1/namespaces/", pod.name_space, "/pods/", pod.name, subresource);
}

}  // namespace

Actuator::Actuator(KubeClient* client, ActuatorOptions options) : client_(client), options_(options) {}
Actuator::~Actuator() { Stop(); }

void Actuator::Start(DecisionPort* port) {
  port_ = port;
  for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { RunWorker(); });
  for (int i = 0; i < options_.background_workers; ++i) threads_.emplace_back([this] { RunBackground(); });
}

void Actuator::Halt() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  bindings_.clear();
  activations_.clear();
  wanted_.clear();
  later_.clear();
  events_.clear();
  event_places_.clear();
  status_.clear();
  work_.SignalAll();
  background_.SignalAll();
}

void Actuator::Stop() {
  Halt();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Actuator::Subject Actuator::SubjectOf(const GangOwner& owner, const EmitPodEvent& tell) {
  const OwnerKind& kind = *owner.kind;
  // Without a known version: the API server does not check it, and readers find events by kind, name and UID.
  return {kind.version == nullptr ? kind.group : absl::StrCat(kind.group, "/", kind.version),
          kind.kind,
          {tell.pod.name_space, owner.name, tell.owner_uid}};
}

void Actuator::Carry(std::vector<Effect> effects) {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  for (Effect& effect : effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect)) {
      RemoveEvent({bind->pod.uid, /*warning=*/false});  // it waits no longer
      bindings_.push_back({std::move(effect)});
      work_.Signal();
    } else if (const auto* tell = std::get_if<EmitPodEvent>(&effect); tell != nullptr) {
      const GangOwner owner = FindGangOwner(tell->owner_gang);
      if (owner.kind != nullptr) AddEvent(*tell, SubjectOf(owner, *tell));
      AddEvent(*tell, {"v1", "Pod", tell->pod});
    } else {
      // One entry per pod and kind until its turn comes; the latest effect replaces earlier ones.
      const auto [wanted, fresh] = wanted_.try_emplace(KeyOf(effect));
      wanted->second.effect = effect;
      wanted->second.wanted_again = wanted->second.running;
      if (!fresh) continue;
      activations_.push_back({std::move(effect)});
      work_.Signal();
    }
  }
}

ActuatorStats Actuator::stats() const {
  MutexLock lock(&mutex_);
  ActuatorStats stats = stats_;
  stats.waiting =
      bindings_.size() + activations_.size() + later_.size() + events_.size() + status_.size() + writing_.size();
  return stats;
}

void Actuator::RunWorker() {
  while (true) {
    Work work;
    {
      MutexLock lock(&mutex_);
      while (true) {
        while (!later_.empty() && later_.begin()->first <= SteadyNow()) {
          activations_.push_back(std::move(later_.begin()->second));
          later_.erase(later_.begin());
        }
        if (!bindings_.empty() || !activations_.empty()) break;
        if (stopping_) return;
        if (later_.empty()) {
          work_.Wait(&mutex_);
        } else {
          work_.WaitWithTimeout(&mutex_, later_.begin()->first - SteadyNow());
        }
      }
      std::deque<Work>& from = bindings_.empty() ? activations_ : bindings_;
      work = std::move(from.front());
      from.pop_front();
      if (const auto wanted = wanted_.find(KeyOf(work.effect)); wanted != wanted_.end()) {
        work.effect = wanted->second.effect;
        wanted->second.running = true;
        wanted->second.wanted_again = false;
      }
    }
    Do(std::move(work));
  }
}

absl::Time Actuator::TakeTurn(absl::Time* next, double per_s) {
  const absl::Time turn = std::max(*next, SteadyNow() - absl::Milliseconds(100));  // small bursts pass at once
  *next = turn + absl::Seconds(1) / per_s;
  return turn;
}

// Limits the rate: each caller waits for its turn.
void Actuator::Pace(absl::Time* next, double per_s) {
  absl::Time turn;
  {
    MutexLock lock(&pace_mutex_);
    turn = TakeTurn(next, per_s);
  }
  const auto stopping = [this] {
    MutexLock lock(&mutex_);
    return stopping_;
  };
  while (SteadyNow() < turn && !stopping()) absl::SleepFor(std::min(turn - SteadyNow(), absl::Milliseconds(50)));
}

absl::Duration Actuator::PauseBefore(int attempts, const Verdict& verdict) const {
  const absl::Duration pause = options_.min_pause * (int64_t{1} << std::min(attempts, 30));
  return std::max(std::min(verdict.pause, options_.max_server_pause), std::min(pause, options_.max_pause));
}

Actuator::Key Actuator::KeyOf(const Effect& effect) {
  return {effect.index(), std::visit([](const auto& each) { return each.pod.uid; }, effect)};
}

Actuator::Verdict Actuator::Retry(const absl::StatusOr<KubeResponse>& response) {
  return {Verdict::Kind::kRetry, absl::Seconds(response.ok() ? response->retry_after_s : 0),
          response.ok() ? StatusMessage(*response) : std::string(response.status().message())};
}

Actuator::Verdict Actuator::Try(const Effect& effect) {
  if (const auto* call = std::get_if<ActivatePod>(&effect)) {
    Pace(&next_activation_, options_.calls_per_second);
    return Activate(*call);
  }
  if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) return MarkPodTimedOut(*mark);
  if (const auto* evict = std::get_if<EvictPod>(&effect)) return EvictOnServer(*evict);
  return Done();
}

void Actuator::Do(Work work) {
  if (const auto* bind = std::get_if<BindPod>(&work.effect)) return DoBind(*bind);
  const Verdict verdict = Try(work.effect);
  MutexLock lock(&mutex_);
  if (verdict.kind == Verdict::Kind::kGiveUp) ++stats_.failed;
  const auto wanted = wanted_.find(KeyOf(work.effect));
  if (wanted == wanted_.end()) return;  // the actuator stops
  wanted->second.running = false;
  absl::Duration pause = absl::ZeroDuration();
  if (verdict.kind == Verdict::Kind::kRetry) {
    pause = PauseBefore(work.attempts++, verdict);
    CountRetry(work, verdict);
  } else if (wanted->second.wanted_again) {
    work.attempts = 0;
  } else {
    wanted_.erase(wanted);
    return;
  }
  later_.emplace(SteadyNow() + pause, std::move(work));
  work_.Signal();  // a worker must wait for this time instead of forever
}

void Actuator::CountRetry(const Work& work, const Verdict& verdict) {
  ++stats_.retries;
  if (work.attempts != kFirstLoggedAttempt && work.attempts % kLogEveryAttempts != 0) return;
  const PodRef& pod = std::visit([](const auto& each) -> const PodRef& { return each.pod; }, work.effect);
  const char* what = std::holds_alternative<EvictPod>(work.effect)      ? "evicting"
                     : std::holds_alternative<ActivatePod>(work.effect) ? "activating"
                                                                        : "marking";
  spdlog::warn("{} pod {}/{} failed after {} attempts: {}", what, pod.name_space, pod.name, work.attempts, verdict.why);
}

void Actuator::DoBind(const BindPod& bind) {
  BindingOutcome outcome = TryToBind(bind);
  {
    MutexLock lock(&mutex_);
    ++(outcome.result == BindingResult::kBound   ? stats_.bound
       : outcome.result == BindingResult::kRetry ? stats_.bind_retries
                                                 : stats_.bind_refused);
  }
  if (outcome.result != BindingResult::kBound) {
    spdlog::warn("binding {}/{} to {}: {}", bind.pod.name_space, bind.pod.name, bind.node, outcome.message);
  }
  port_->Announce(std::move(outcome)).IgnoreError();
}

BindingOutcome Actuator::TryToBind(const BindPod& bind) {
  BindingOutcome outcome{bind.pod.uid, bind.node, BindingResult::kRetry, ""};
  const absl::Duration left = absl::Milliseconds(bind.deadline_ms - options_.clock->NowMs());
  if (left <= absl::ZeroDuration()) {
    // The caller has given up: kube-scheduler may use the capacity otherwise. Nothing may be bound any more, but an
    // earlier request may have arrived.
    outcome.message = "the time limit for a safe binding has passed";
    const BindState found = ReadBack(bind, &outcome.message);
    outcome.result = found == BindState::kBound     ? BindingResult::kBound
                     : found == BindState::kUnknown ? BindingResult::kRetry  // its slot stays reserved meanwhile
                                                    : BindingResult::kRefused;
    return outcome;
  }
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Binding"},
                     {"metadata", {{"name", bind.pod.name}, {"namespace", bind.pod.name_space}, {"uid", bind.pod.uid}}},
                     {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", bind.node}}}};
  const absl::StatusOr<KubeResponse> response =
      client_->Send(KubeMethod::kPost, PodPath(bind.pod, "/binding"), Dump(body), std::min(kTimeout, left));
  if (response.ok() && response->status / 100 == 2) {
    outcome.result = BindingResult::kBound;
    return outcome;
  }
  outcome.message = response.ok() ? StatusMessage(*response) : std::string(response.status().message());
  if (response.ok() && (response->status == 429 || response->status == 401)) return outcome;
  if (response.ok() && response->status / 100 == 4 && response->status != 409 && response->status != 408) {
    outcome.result = BindingResult::kRefused;
    return outcome;
  }
  const BindState found = ReadBack(bind, &outcome.message);
  if (found == BindState::kBound) outcome.result = BindingResult::kBound;
  if (found == BindState::kElsewhere) outcome.result = BindingResult::kRefused;
  return outcome;
}

// K-4: after a conflict or without an answer, the API server's state is the truth.
Actuator::BindState Actuator::ReadBack(const BindPod& bind, std::string* why) {
  const absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kGet, PodPath(bind.pod, ""), "", kTimeout);
  if (!response.ok()) return BindState::kUnknown;
  if (response->status == 404) {
    *why = "the pod is gone";
    return BindState::kElsewhere;
  }
  if (response->status != 200) return BindState::kUnknown;
  const absl::StatusOr<Json> pod = ParseJsonCut(response->body, "pod");
  if (!pod.ok()) return BindState::kUnknown;
  const std::string node = StringOrEmpty(Child(*pod, "spec"), "nodeName");
  if (StringOrEmpty(Child(*pod, "metadata"), "uid") != bind.pod.uid) {
    *why = "another pod has this name now";
    return BindState::kElsewhere;
  }
  if (node == bind.node) return BindState::kBound;
  if (node.empty()) return BindState::kUnbound;
  *why = absl::StrCat("the pod is bound to node ", node, " already");
  return BindState::kElsewhere;
}

Actuator::Verdict Actuator::AfterConflict(const PodRef& pod, const KubeResponse& refused) {
  const absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kGet, PodPath(pod, ""), "", kTimeout);
  if (response.ok() && response->status == 404) return Done();
  if (!response.ok() || response->status != 200) return Retry(response);
  const absl::StatusOr<Json> current = ParseJsonCut(response->body, "pod");
  const bool same = !current.ok() || StringOrEmpty(Child(*current, "metadata"), "uid") == pod.uid;
  return same ? Retry(refused) : Done();
}

Actuator::Verdict Actuator::PatchPod(const PodRef& pod, KubeMethod method, const Json& patch, const char* subresource,
                                     int* refused) {
  Json body = patch;
  body["metadata"]["uid"] = pod.uid;  // a pod re-created under this name is left alone
  const absl::StatusOr<KubeResponse> response = client_->Send(method, PodPath(pod, subresource), Dump(body), kTimeout);
  if (!response.ok()) return Retry(response);
  const int status = response->status;
  if (status / 100 == 2 || status == 404) return Done();  // 404: the pod is gone
  if (status == 429 || status == 401 || status >= 500) return Retry(response);
  if (refused != nullptr && (status == 403 || status == 409)) {
    *refused = status;
    return GiveUp();
  }
  if (status == 409) return AfterConflict(pod, *response);
  spdlog::warn("patching pod {}/{}: {}", pod.name_space, pod.name, StatusMessage(*response));
  return status == 403 ? Retry(response) : GiveUp();  // the permission may be granted later
}

Actuator::Verdict Actuator::Activate(const ActivatePod& call) {
  {
    MutexLock lock(&mutex_);
    ++stats_.activations;
  }
  if (!call.remove_gate) {
    const Json patch = {
        {"metadata", {{"annotations", {{keys::kActivated, absl::StrCat(absl::ToUnixMicros(WallNow()))}}}}}};
    if (!call.note.empty()) return ActivateWithCondition(call, patch);
    return PatchPod(call.pod, KubeMethod::kPatchMerge, patch, "");
  }
  if (!call.nominated_node.empty()) {
    // A hint: if it cannot be set, the pod is activated all the same.
    static_cast<void>(PatchPod(call.pod, KubeMethod::kPatchMerge,
                               {{"status", {{"nominatedNodeName", call.nominated_node}}}}, "/status"));
  }
  const Json patch = {{"spec", {{"schedulingGates", {{{"$patch", "delete"}, {"name", keys::kGate}}}}}}};
  return PatchPod(call.pod, KubeMethod::kPatchStrategic, patch, "");
}

// Writes the activation and the pod's condition in one request, based on the current pod, so that no condition is set
// on a pod that has got a node meanwhile.
Actuator::Verdict Actuator::ActivateWithCondition(const ActivatePod& call, Json patch) {
  const absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kGet, PodPath(call.pod, ""), "", kTimeout);
  if (response.ok() && response->status == 404) return Done();
  if (!response.ok() || response->status != 200) return Retry(response);
  const absl::StatusOr<Json> pod = ParseJsonCut(response->body, "pod");
  if (!pod.ok()) return Retry(response);
  const Json& metadata = Child(*pod, "metadata");
  if (StringOrEmpty(metadata, "uid") != call.pod.uid || !StringOrEmpty(Child(*pod, "spec"), "nodeName").empty()) {
    return Done();
  }
  const Json call_only = patch;
  patch["metadata"]["resourceVersion"] = StringOrEmpty(metadata, "resourceVersion");
  patch["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", call.note}}};
  int refused = 0;
  Verdict verdict = PatchPod(call.pod, KubeMethod::kPatchStrategic, patch, "/status", &refused);
  if (refused == 409)
    return {Verdict::Kind::kRetry, absl::ZeroDuration(), "the pod changed meanwhile"};  // read the pod again
  if (verdict.kind != Verdict::Kind::kGiveUp) return verdict;
  return PatchPod(call.pod, KubeMethod::kPatchMerge, call_only, "");  // no permission to write the status
}

Actuator::Verdict Actuator::MarkPodTimedOut(const MarkTimedOut& mark) {
  return PatchPod(mark.pod, KubeMethod::kPatchMerge, {{"metadata", {{"annotations", {{keys::kKoordTimeout, "true"}}}}}},
                  "");
}

Actuator::Verdict Actuator::EvictOnServer(const EvictPod& evict) {
  const Json body = {{"apiVersion", "policy/v1"},
                     {"kind", "Eviction"},
                     {"metadata", {{"name", evict.pod.name}, {"namespace", evict.pod.name_space}}},
                     {"deleteOptions", {{"preconditions", {{"uid", evict.pod.uid}}}}}};
  const absl::StatusOr<KubeResponse> response =
      client_->Send(KubeMethod::kPost, PodPath(evict.pod, "/eviction"), Dump(body), kTimeout);
  if (!response.ok()) return Retry(response);
  if (response->status / 100 == 2 || response->status == 404) return Done();
  if (response->status == 409) return AfterConflict(evict.pod, *response);
  spdlog::warn("evicting {}/{}: {}", evict.pod.name_space, evict.pod.name, StatusMessage(*response));
  return Retry(response);  // a PodDisruptionBudget may refuse it for a while
}

}  // namespace muster
