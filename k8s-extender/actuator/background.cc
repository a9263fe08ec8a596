// Informational writes on which no pod waits: events, and the status of PodGroups (SPEC K-11).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>
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
    BackgroundWork work;
    {
      MutexLock lock(&mutex_);
      while (!stopping_) {
        absl::Time next = absl::InfiniteFuture();
        work = TakeBackgroundWork(&next);
        if (work.any()) break;
        if (next == absl::InfiniteFuture()) {
          background_.Wait(&mutex_);
        } else {
          background_.WaitWithTimeout(&mutex_, next - SteadyNow());
        }
      }
      if (stopping_) return;
    }
    if (work.status.has_value()) WriteStatus(*work.status);
    if (work.event.has_value()) WriteEvent(*std::move(work.event));
  }
}

// Urgent events and all else take turns, so that thousands of one kind do not delay the other.
Actuator::BackgroundWork Actuator::TakeBackgroundWork(absl::Time* next) {
  BackgroundWork work;
  if (urgent_was_last_) work = TakePacedWork(next);
  if (work.any()) {
    urgent_was_last_ = false;
    return work;
  }
  if (urgent_turn_ <= SteadyNow()) {
    work.event = TakeEvent(/*urgent=*/true, next);
  } else {
    *next = std::min(*next, urgent_turn_);
  }
  if (work.any()) {
    std::ignore = TakeTurn(&urgent_turn_, options_.urgent_events_per_s);
    urgent_was_last_ = true;
    return work;
  }
  return urgent_was_last_ ? work : TakePacedWork(next);
}

// Statuses and events that are not urgent take turns too.
Actuator::BackgroundWork Actuator::TakePacedWork(absl::Time* next) {
  BackgroundWork work;
  if (background_turn_ > SteadyNow()) {
    *next = std::min(*next, background_turn_);
    return work;
  }
  if (status_was_last_) work.event = TakeEvent(/*urgent=*/false, next);
  if (!work.any()) work.status = TakeStatus(next);
  if (!work.any() && !status_was_last_) work.event = TakeEvent(/*urgent=*/false, next);
  if (!work.any()) return work;
  status_was_last_ = work.status.has_value();
  std::ignore = TakeTurn(&background_turn_, options_.background_per_s);
  return work;
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

// The newest event of an object replaces one that still waits, and inherits its place.
void Actuator::AddEvent(const EmitPodEvent& tell, Subject about) {
  Event event;
  event.about = std::move(about);
  event.warning = tell.warning;
  event.reason = tell.reason;
  event.place = {!tell.urgent, next_event_++};
  const EventKey key = KeyOf(event);
  if (const auto older = event_places_.find(key); older != event_places_.end()) {
    event.place = std::min(event.place, older->second);
    RemoveEvent(key);
  } else if (events_.size() >= options_.max_background) {
    const auto behind = events_.lower_bound({true, 0});
    RemoveEvent(KeyOf((behind == events_.end() ? events_.begin() : behind)->second));
    ++stats_.dropped_events;
  }
  event_places_[key] = event.place;
  events_.emplace(event.place, std::move(event));
  background_.Signal();
}

void Actuator::RemoveEvent(const EventKey& key) {
  const auto place = event_places_.find(key);
  if (place == event_places_.end()) return;
  events_.erase(place->second);
  event_places_.erase(place);
}

std::optional<Actuator::Event> Actuator::TakeEvent(bool urgent, absl::Time* next) {
  const absl::Time now = SteadyNow();
  for (auto at = events_.lower_bound({!urgent, 0}); at != events_.end() && at->first.first != urgent; ++at) {
    const absl::Time due = std::max(events_due_, at->second.due);
    if (due <= now) {
      Event taken = std::move(at->second);
      RemoveEvent(KeyOf(taken));
      return taken;
    }
    *next = std::min(*next, due);
    if (events_due_ > now) break;
  }
  return std::nullopt;
}

// An event that an overloaded or unreachable server does not accept is retried first when the pause is over; until then
// all others wait. An event that the server refuses for a reason of its own goes to the end. If a newer one of its pod
// waits, it is dropped.
void Actuator::WriteEvent(Event event) {
  const Verdict verdict = SendEvent(&event);
  if (verdict.kind == Verdict::Kind::kDone) return;
  MutexLock lock(&mutex_);
  const EventKey key = KeyOf(event);
  if (stopping_ || event_places_.contains(key)) return;
  const int tries = event.alone ? options_.refused_event_tries : options_.event_tries;
  const bool again =
      verdict.kind == Verdict::Kind::kRetry && ++event.attempts < tries && events_.size() < options_.max_background;
  if (!again) {
    const PodRef& about = event.about.ref;
    spdlog::warn("event for {} {}/{} is dropped: {}", event.about.kind, about.name_space, about.name, verdict.why);
    ++stats_.dropped_events;
    return;
  }
  ++stats_.retries;
  const absl::Time due = SteadyNow() + PauseBefore(event.attempts - 1, verdict);
  if (event.alone) {
    event.due = due;
    event.place.second = next_event_++;
  } else {
    events_due_ = std::max(events_due_, due);
  }
  event_places_[key] = event.place;
  events_.emplace(event.place, std::move(event));
  background_.Signal();
}

// One event per object and reason; a repetition turns it into a series (events.k8s.io/v1).
Actuator::Verdict Actuator::SendEvent(Event* event) {
  const PodRef& about = event->about.ref;
  StateHasher hasher;
  hasher.Add(ReasonName(event->reason.code));
  hasher.Add(event->reason.text);
  hasher.Add(about.uid);
  const std::string name = absl::StrFormat("%s.%016x", about.name.substr(0, 200), hasher.value());
  if (event->count == 0) {
    MutexLock lock(&series_mutex_);
    if (series_.size() > kMaxSeries) series_.clear();
    event->count = ++series_[name];
  }
  const std::string now = MicroTime(WallNow());
  const std::string path = absl::StrCat("/apis/events.k8s.io/v1/namespaces/", about.name_space, "/events");
  const Json object = {{"apiVersion", "events.k8s.io/v1"},
                       {"kind", "Event"},
                       {"metadata", {{"name", name}, {"namespace", about.name_space}}},
                       {"eventTime", now},
                       {"reportingController", "muster.dev/musterd"},
                       {"reportingInstance", "musterd"},
                       {"action", "Scheduling"},
                       {"reason", absl::StrCat("Gang", ReasonName(event->reason.code))},
                       {"type", event->warning ? "Warning" : "Normal"},
                       {"note", Beginning(event->reason.text, kMaxNote)},
                       {"regarding",
                        {{"apiVersion", event->about.api_version},
                         {"kind", event->about.kind},
                         {"name", about.name},
                         {"namespace", about.name_space},
                         {"uid", about.uid}}}};
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
