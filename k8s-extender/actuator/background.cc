// Informational writes on which no pod waits: events, and the status of PodGroups (SPEC K-11).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "k8s-extender/actuator/actuator.h"
#include "state/base/hash.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr size_t kMaxNote = 1000;  // events.k8s.io limits a note to 1 KiB
constexpr size_t kMaxSeries = 10'000;
constexpr char kTimedOut[] = "TimedOut";

std::string MicroTime(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone()); }

}  // namespace

void Actuator::UpdateStatus(const GangView& view) {
  if (!view.has_object) {
    return RemoveStatus(view.key);
  }
  if (view.object_dialect != GangDialect::kPodGroupSigs && view.object_dialect != GangDialect::kPodGroupX) {
    return;  // D-4, D-6, D-7, D-15: another controller writes it
  }
  MutexLock lock(&mutex_);
  if (!stopping_) status_[view.key].view = view;  // `due` stays: a refused status is not retried sooner
  background_.Signal();
}

void Actuator::RemoveStatus(const std::string& gang) {
  MutexLock lock(&series_mutex_);
  written_.erase(gang);
}

// Returns the status that is due for longest and that no worker writes; otherwise lowers `next` to the next due time.
std::optional<Actuator::Status> Actuator::TakeStatus(absl::Time* next) {
  absl::Time due = absl::InfiniteFuture();
  auto first = status_.end();
  for (auto each = status_.begin(); each != status_.end(); ++each) {
    if (writing_.contains(each->first) || each->second.due >= due) continue;  // the worker that writes it checks again
    due = each->second.due;
    first = each;
  }
  if (first == status_.end()) return std::nullopt;
  if (due > SteadyNow()) {
    *next = std::min(*next, due);
    return std::nullopt;
  }
  Status taken = std::move(first->second);
  status_.erase(first);
  writing_.insert(taken.view.key);
  return taken;
}

void Actuator::RunBackground() {
  while (true) {
    std::optional<Event> event;
    std::optional<Status> status;
    {
      MutexLock lock(&mutex_);
      std::optional<size_t> due;
      while (!stopping_) {
        absl::Time next = absl::InfiniteFuture();
        due = DueEvent(&next);
        // Events and statuses take turns, so that thousands of one kind do not delay the other.
        const bool events_turn = std::exchange(status_was_last_, false) && due.has_value();
        if (!events_turn) status = TakeStatus(&next);
        if (status.has_value() || due.has_value()) break;
        if (next == absl::InfiniteFuture()) {
          background_.Wait(&mutex_);
        } else {
          background_.WaitWithTimeout(&mutex_, next - SteadyNow());
        }
      }
      if (stopping_) return;
      status_was_last_ = status.has_value();
      if (!status.has_value()) {
        const auto at = events_.begin() + static_cast<std::ptrdiff_t>(*due);
        event = std::move(*at);
        events_.erase(at);
      }
    }
    Pace(&next_event_, options_.events_per_s);
    if (status.has_value()) WriteStatus(*status);
    if (event.has_value()) WriteEvent(*std::move(event));
  }
}

// One writer at a time for each gang, until the API server has accepted the latest status.
void Actuator::WriteStatus(const Status& status) {
  const Verdict verdict = PatchStatus(status.view, /*first=*/status.attempts == 0);
  MutexLock lock(&mutex_);
  writing_.erase(status.view.key);
  if (verdict.kind == Verdict::Kind::kGiveUp) ++stats_.failed;
  const std::string key = status.view.key;
  if (verdict.kind == Verdict::Kind::kRetry && !stopping_) {
    ++stats_.retries;
    const absl::Time due = SteadyNow() + PauseBefore(status.attempts, verdict);
    const int attempts = status.attempts + 1;
    const auto [waiting, fresh] = status_.try_emplace(key, status);  // a later one stays
    waiting->second.due = due;
    waiting->second.attempts = attempts;
  }
  background_.Signal();
}

std::optional<size_t> Actuator::DueEvent(absl::Time* next) const {
  const absl::Time now = SteadyNow();
  for (size_t i = 0; i < events_.size(); ++i) {
    const absl::Time due = std::max(events_due_, events_[i].due);
    if (due <= now) return i;
    *next = std::min(*next, due);
    if (events_due_ > now) break;
  }
  return std::nullopt;
}

// An event that an overloaded or unreachable server does not accept is retried first when the pause is over; until then
// all others wait. An event that the server refuses for a reason of its own goes to the end.
void Actuator::WriteEvent(Event event) {
  const Verdict verdict = SendEvent(&event);
  if (verdict.kind == Verdict::Kind::kDone) return;
  MutexLock lock(&mutex_);
  if (stopping_) return;
  const int tries = event.alone ? options_.refused_event_tries : options_.event_tries;
  const bool again =
      verdict.kind == Verdict::Kind::kRetry && ++event.attempts < tries && events_.size() < options_.max_background;
  if (!again) {
    const PodRef& pod = event.tell.pod;
    spdlog::warn("event for pod {}/{} is dropped: {}", pod.name_space, pod.name, verdict.why);
    ++stats_.dropped_events;
    return;
  }
  ++stats_.retries;
  const absl::Time due = SteadyNow() + PauseBefore(event.attempts - 1, verdict);
  if (event.alone) {
    event.due = due;
    events_.push_back(std::move(event));
  } else {
    events_due_ = std::max(events_due_, due);
    events_.push_front(std::move(event));
  }
  background_.Signal();
}

// One event per pod and reason; a repetition turns it into a series (events.k8s.io/v1).
Actuator::Verdict Actuator::SendEvent(Event* event) {
  const EmitPodEvent& tell = event->tell;
  StateHasher hasher;
  hasher.Add(ReasonName(tell.reason.code));
  hasher.Add(tell.reason.text);
  hasher.Add(tell.pod.uid);
  const std::string name = absl::StrFormat("%s.%016x", tell.pod.name.substr(0, 200), hasher.value());
  if (event->count == 0) {
    MutexLock lock(&series_mutex_);
    if (series_.size() > kMaxSeries) series_.clear();
    event->count = ++series_[name];
  }
  const std::string now = MicroTime(WallNow());
  const std::string path = absl::StrCat("/apis/events.k8s.io/v1/namespaces/", tell.pod.name_space, "/events");
  const Json object = {{"apiVersion", "events.k8s.io/v1"},
                       {"kind", "Event"},
                       {"metadata", {{"name", name}, {"namespace", tell.pod.name_space}}},
                       {"eventTime", now},
                       {"reportingController", "muster.dev/musterd"},
                       {"reportingInstance", "musterd"},
                       {"action", "Scheduling"},
                       {"reason", absl::StrCat("Gang", ReasonName(tell.reason.code))},
                       {"type", tell.warning ? "Warning" : "Normal"},
                       {"note", Beginning(tell.reason.text, kMaxNote)},
                       {"regarding",
                        {{"apiVersion", "v1"},
                         {"kind", "Pod"},
                         {"name", tell.pod.name},
                         {"namespace", tell.pod.name_space},
                         {"uid", tell.pod.uid}}}};
  const absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kPost, path, Dump(object), kTimeout);
  event->alone = false;
  if (!response.ok()) return Retry(response);
  if (response->status == 201) return Done();
  if (response->status != 409) return AfterRefusal(response, event);
  if (event->count == 1 && event->attempts > 0) return Done();  // an earlier attempt had arrived
  const Json series = {{"series", {{"count", std::max(event->count, 2)}, {"lastObservedTime", now}}}};
  const absl::StatusOr<KubeResponse> again =
      client_->Send(KubeMethod::kPatchMerge, absl::StrCat(path, "/", name), Dump(series), kTimeout);
  if (!again.ok() || again->status == 404) return Retry(again);  // expired: it is created again
  return again->status / 100 == 2 ? Done() : AfterRefusal(again, event);
}

// Refusal of an event. A client error is permanent; a 5xx may concern only this event, for example because of a
// webhook.
Actuator::Verdict Actuator::AfterRefusal(const absl::StatusOr<KubeResponse>& refused, Event* event) {
  Verdict verdict = Retry(refused);
  const bool overloaded = refused->status == 429 || refused->status == 503;
  event->alone = !overloaded;
  if (!overloaded && refused->status / 100 != 5) verdict.kind = Verdict::Kind::kGiveUp;
  return verdict;
}

std::string Actuator::StatusPath(const GangView& view) {
  const char* group = view.object_dialect == GangDialect::kPodGroupX ? "scheduling.x-k8s.io" : "scheduling.sigs.k8s.io";
  return absl::StrCat("/apis/", group, "/v1alpha1/namespaces/", view.name_space, "/podgroups/", view.name);
}

// A merge patch replaces lists: the conditions of other writers are read first and sent along.
Actuator::Verdict Actuator::AddConditions(const GangView& view, Json* patch) {
  const absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kGet, StatusPath(view), "", kTimeout);
  if (!response.ok()) return Retry(response);
  if (response->status == 404) return GiveUp();
  if (response->status != 200) return Retry(response);
  const absl::StatusOr<Json> object = ParseJsonCut(response->body, "PodGroup");
  if (!object.ok()) return Retry(response);
  Json conditions = Json::array();
  const Json& existing = Child(Child(*object, "status"), "conditions");
  if (existing.is_array()) {
    for (const Json& each : existing) {
      if (StringOrEmpty(each, "type") != kTimedOut) conditions.push_back(each);
    }
  }
  conditions.push_back({{"type", kTimedOut}, {"status", view.timed_out ? "True" : "False"}});
  (*patch)["status"]["conditions"] = std::move(conditions);
  const std::string version = StringOrEmpty(Child(*object, "metadata"), "resourceVersion");
  if (!version.empty()) (*patch)["metadata"]["resourceVersion"] = version;  // 409 if another writer was faster
  return Done();
}

// K-11: the PodGroup's status. Counts come from the sets of members (G-10).
Actuator::Verdict Actuator::PatchStatus(const GangView& view, bool first) {
  Json patch = {{"status",
                 {{"phase", ToString(view.phase).data()},
                  {"scheduled", view.bound},
                  {"running", view.running},
                  {"succeeded", view.succeeded},
                  {"failed", view.failed},
                  {"message", view.reason.text}}}};
  const std::string body = Dump(patch);
  bool conditions = true;
  {
    MutexLock lock(&series_mutex_);
    const auto known = written_.find(view.key);
    if (known != written_.end() && known->second.uid == view.object_uid) {
      conditions = known->second.timed_out != view.timed_out;
      if (!conditions && known->second.body == body) return Done();
    }
  }
  if (conditions) {
    const Verdict read = AddConditions(view, &patch);
    if (read.kind != Verdict::Kind::kDone) return read.kind == Verdict::Kind::kGiveUp ? Done() : read;
  }
  const absl::StatusOr<KubeResponse> response =
      client_->Send(KubeMethod::kPatchMerge, absl::StrCat(StatusPath(view), "/status"), Dump(patch), kTimeout);
  if (!response.ok()) return Retry(response);
  if (response->status == 404) return Done();
  if (response->status / 100 == 2) {
    MutexLock lock(&series_mutex_);
    if (written_.size() > kMaxSeries) written_.clear();
    written_[view.key] = {view.object_uid, body, view.timed_out};
    return Done();
  }
  if (first) spdlog::warn("status of PodGroup {}: {}", view.key, StatusMessage(*response));
  const bool wrong = response->status == 400 || response->status == 422;
  return wrong ? GiveUp() : Retry(response);
}

}  // namespace muster
