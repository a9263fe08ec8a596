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

void OwnerSizes::See(const PodDescription& pod, const std::string& kind) {
  const std::string key = absl::StrCat(pod.name_space, "/", pod.gang.name);
  MutexLock lock(&mutex_);
  if (const auto before = gang_of_.find(pod.uid); before != gang_of_.end() && before->second != key) {
    Leave(pod.uid, gangs_.find(before->second));
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

// Later than whatever the thread waits for: it is woken only where it waits for nothing.
void OwnerSizes::Await(Gang* gang) {
  gang->due = SteadyNow() + quiet_;
  if (next_ != absl::InfiniteFuture()) return;
  next_ = gang->due;
  changed_.SignalAll();
}

void OwnerSizes::Forget(const std::string& uid) {
  MutexLock lock(&mutex_);
  const auto of = gang_of_.find(uid);
  if (of != gang_of_.end()) Leave(uid, gangs_.find(of->second));
}

void OwnerSizes::Leave(const std::string& uid, Gangs::iterator gang) {
  gang_of_.erase(uid);
  gang->second.members.erase(uid);
  if (!gang->second.members.empty()) {
    Await(&gang->second);
    return;
  }
  if (gang->second.told >= 0) {
    port_->Announce(RemoveGangObject{GangDialect::kOwner, gang->second.name_space, gang->second.name}).IgnoreError();
  }
  gangs_.erase(gang);
}

void OwnerSizes::Synced() {
  MutexLock lock(&mutex_);
  for (auto& [key, gang] : gangs_) {
    const bool runs = absl::c_any_of(gang.members, [](const auto& each) { return each.second.bound; });
    if (gang.told < 0 && runs) Tell(&gang);
  }
}

void OwnerSizes::Tell(Gang* gang) {
  gang->due = absl::InfiniteFuture();
  const auto count =
      static_cast<int32_t>(absl::c_count_if(gang->members, [](const auto& m) { return m.second.counts; }));
  const bool runs = absl::c_any_of(gang->members, [](const auto& m) { return m.second.bound; });
  // Once some of it run, those that come in place of others do not make it larger, nor those that end smaller.
  if (count == 0 || count == gang->told || (gang->told >= 0 && runs)) return;
  gang->told = count;
  GangObject object;
  object.dialect = GangDialect::kOwner;
  object.name_space = gang->name_space;
  object.name = gang->name;
  object.uid = absl::StrCat("pods of ", gang->name_space, "/", gang->name);
  object.created_ms = gang->created_ms;
  object.declaration.Own().min_member = count;
  object.declaration.Own().total_number = count;
  object.declaration.Own().warnings.push_back(
      absl::StrCat("no ", gang->kind, " can be read: the gang is taken to be as large as the pods that came, ", count,
                   ", when no other had come for ", absl::FormatDuration(quiet_), "; let musterd read ", gang->kind,
                   "s, or name a gang on the pods"));
  // Under the lock: what is said of one gang is said in order.
  port_->Announce(UpsertGangObject{std::move(object)}).IgnoreError();
}

void OwnerSizes::Run() {
  MutexLock lock(&mutex_);
  while (!stopped_) {
    const absl::Time now = SteadyNow();
    next_ = absl::InfiniteFuture();
    for (auto& [key, gang] : gangs_) {
      if (gang.due <= now) Tell(&gang);
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
