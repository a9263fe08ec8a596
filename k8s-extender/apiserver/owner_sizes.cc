#include "k8s-extender/apiserver/owner_sizes.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace muster {

OwnerSizes::OwnerSizes(DecisionPort* port, absl::Duration quiet)
    : port_(port), quiet_(quiet), thread_([this] { Run(); }) {}
OwnerSizes::~OwnerSizes() { Stop(); }

void OwnerSizes::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void OwnerSizes::AddPod(const PodDescription& pod, const std::string& kind) {
  const std::string key = absl::StrCat(pod.name_space, "/", pod.gang.name);
  MutexLock lock(&mutex_);
  if (const auto before = gang_of_.find(pod.uid); before != gang_of_.end() && before->second != key) {
    RemoveFromGang(pod.uid, gangs_.find(before->second));
  }
  gang_of_[pod.uid] = key;
  Gang& gang = gangs_[key];
  if (gang.members.empty()) {
    gang.name_space = pod.name_space;
    gang.name = pod.gang.name;
    gang.kind = kind;
    gang.created_ms = pod.created_ms;
  }
  gang.created_ms = std::min(gang.created_ms, pod.created_ms);
  const bool over = pod.deleting || pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  const Member now{!over, !over && !pod.node_name.empty()};
  const auto [member, is_new] = gang.members.try_emplace(pod.uid);
  if (is_new || member->second.counts != now.counts) {
    Await(&gang);
  }
  member->second = now;
}

// The new time is later than any time for which the thread waits, so it is woken only when it waits for none.
void OwnerSizes::Await(Gang* gang) {
  gang->due = SteadyNow() + quiet_;
  if (next_ != absl::InfiniteFuture()) return;
  next_ = gang->due;
  changed_.SignalAll();
}

void OwnerSizes::RemovePod(const std::string& uid) {
  MutexLock lock(&mutex_);
  const auto entry = gang_of_.find(uid);
  if (entry != gang_of_.end()) RemoveFromGang(uid, gangs_.find(entry->second));
}

void OwnerSizes::RemoveFromGang(const std::string& uid, Gangs::iterator gang) {
  gang_of_.erase(uid);
  gang->second.members.erase(uid);
  if (!gang->second.members.empty()) {
    Await(&gang->second);
    return;
  }
  if (gang->second.announced_size >= 0) {
    port_->Announce(RemoveGangObject{GangDialect::kOwner, gang->second.name_space, gang->second.name}).IgnoreError();
  }
  gangs_.erase(gang);
}

void OwnerSizes::OnSynced() {
  MutexLock lock(&mutex_);
  for (auto& [key, gang] : gangs_) {
    const bool runs = absl::c_any_of(gang.members, [](const auto& each) { return each.second.bound; });
    if (gang.announced_size < 0 && runs) AnnounceSize(&gang);
  }
}

void OwnerSizes::AnnounceSize(Gang* gang) {
  gang->due = absl::InfiniteFuture();
  const auto count =
      static_cast<int32_t>(absl::c_count_if(gang->members, [](const auto& m) { return m.second.counts; }));
  const bool runs = absl::c_any_of(gang->members, [](const auto& m) { return m.second.bound; });
  // While some members run, replacements do not increase the size, and ended pods do not decrease it.
  if (count == 0 || count == gang->announced_size || (gang->announced_size >= 0 && runs)) return;
  gang->announced_size = count;
  GangObject object;
  object.dialect = GangDialect::kOwner;
  object.name_space = gang->name_space;
  object.name = gang->name;
  object.uid = absl::StrCat("pods of ", gang->name_space, "/", gang->name);
  object.created_ms = gang->created_ms;
  object.declaration.Mutable().min_member = count;
  object.declaration.Mutable().total_number = count;
  object.declaration.Mutable().warnings.push_back(
      absl::StrCat("no ", gang->kind, " can be read: the size of the gang is the number of pods that arrived, ", count,
                   ", before no pod arrived for ", absl::FormatDuration(quiet_), "; let musterd read ", gang->kind,
                   "s, or name a gang on the pods"));
  // Under the lock: announcements of one gang are sent in order.
  port_->Announce(UpsertGangObject{std::move(object)}).IgnoreError();
}

void OwnerSizes::Run() {
  MutexLock lock(&mutex_);
  while (!stopped_) {
    const absl::Time now = SteadyNow();
    next_ = absl::InfiniteFuture();
    for (auto& [key, gang] : gangs_) {
      if (gang.due <= now) AnnounceSize(&gang);
      next_ = std::min(next_, gang.due);
    }
    if (next_ == absl::InfiniteFuture()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitWithTimeout(&mutex_, next_ - now);
    }
  }
}

}  // namespace muster
