#include "tests/simulation/start_flow.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int64_t kOriginMs = 1'700'000'000'000;
constexpr int64_t kUsPerMs = 1'000;
constexpr int64_t kBackoffMs = 1'000;
constexpr int64_t kMaxBackoffMs = 10'000;
constexpr int32_t kOffers = 20;  // different samples of the nodes

int64_t BackoffUs(int attempts) {
  int64_t backoff = kBackoffMs;
  for (int i = 1; i < attempts && backoff < kMaxBackoffMs; ++i) backoff *= 2;
  return std::min(backoff, kMaxBackoffMs) * kUsPerMs;
}

class StartFlow {
 public:
  explicit StartFlow(const StartFlowSettings& settings) : given_(settings), machine_(settings.machine) {
    Apply(FactsRead{});
    for (int32_t i = 0; i < given_.nodes; ++i) {
      NodeDescription node;
      node.name = absl::StrCat("n", i);
      node.allocatable = {{"cpu", int64_t{1'000} * given_.pods_per_node}, {"pods", 110}};
      Apply(UpsertNode{std::move(node)});
    }
    const int32_t sample =
        given_.nodes < 100 ? given_.nodes : std::max(100, given_.nodes * std::max(5, 50 - given_.nodes / 125) / 100);
    for (int32_t offer = 0; offer < kOffers; ++offer) {
      std::vector<std::string> names;
      for (int32_t i = 0; i < sample; ++i) {
        names.push_back(absl::StrCat("n", (offer * (given_.nodes / kOffers) + i) % given_.nodes));
      }
      offers_.push_back(std::make_shared<NodeOffer>(std::move(names)));
    }
    CreatePods();
  }

  StartFlowResult Run(int64_t limit_ms) {
    while (result_.bound < result_.pods && now_us_ < limit_ms * kUsPerMs) {
      const int64_t due_ms = machine_.NextDeadline();
      const int64_t due_us = due_ms == kNever ? kNever : (due_ms - kOriginMs) * kUsPerMs;
      const bool any = !events_.empty();
      if (!any && due_ms == kNever) break;
      if (!any || due_us <= events_.begin()->first) {
        now_us_ = std::max(now_us_, due_us);
        Apply(Tick{});
        continue;
      }
      auto event = events_.extract(events_.begin());
      now_us_ = std::max(now_us_, event.key());
      event.mapped()();
    }
    return result_;
  }

 private:
  enum class Where { kGated, kActive, kBackoff, kUnschedulable, kInCycle, kBinding, kBound };
  struct Entry {
    PodDescription facts;
    Where where = Where::kGated;
    int64_t order = 0;     // in the active queue
    int64_t since_us = 0;  // the end of its last attempt
    int attempts = 0;
    int errors = 0;
    bool woken = false;  // while it was being scheduled
  };

  void At(int64_t us, std::function<void()> what) { events_.emplace(us, std::move(what)); }
  [[nodiscard]] int64_t now_ms() const { return kOriginMs + now_us_ / kUsPerMs; }

  // --- users ---
  void CreatePods() {
    int64_t at_us = 0;
    size_t first = 0;
    while (first < given_.gangs.size()) {
      const size_t end = std::min(given_.gangs.size(), first + static_cast<size_t>(given_.created_at_once));
      const int32_t largest = *std::max_element(given_.gangs.begin() + static_cast<std::ptrdiff_t>(first),
                                                given_.gangs.begin() + static_cast<std::ptrdiff_t>(end));
      for (int32_t member = 0; member < largest; ++member) {
        for (size_t gang = first; gang < end; ++gang) {
          if (member >= given_.gangs[gang]) continue;
          At(at_us, [this, gang, member] { Create(gang, member); });
          at_us += given_.create_us;
          ++result_.pods;
        }
      }
      first = end;
    }
  }
  void Create(size_t gang, int32_t member) {
    PodDescription pod;
    pod.uid = pod.name = absl::StrCat("g", gang, "-", member);
    pod.name_space = "d";
    pod.scheduler_name = "default-scheduler";
    pod.created_ms = now_ms() / 1'000 * 1'000;
    pod.shape.Mutable().requests = {{"cpu", 1'000}};
    pod.gang.name = absl::StrCat("g", gang);
    pod.gang.declares = true;
    pod.gang.declaration.Mutable().min_member = given_.gangs[gang];
    pod.our_gate = given_.gated;
    Entry& entry = pods_[pod.uid];
    entry.facts = std::move(pod);
    if (!given_.gated) Enqueue(&entry);
    Announce(entry);
  }

  // --- the API server ---
  // The pod's facts arrive at musterd.
  void Announce(const Entry& entry) {
    At(now_us_ + given_.notify_us, [this, &entry] { Apply(UpsertPod{entry.facts}); });
  }
  void Write(std::function<void()> what) {
    written_us_ = std::max(written_us_, now_us_) + given_.write_us;
    At(written_us_, std::move(what));
  }

  // --- musterd ---
  Reply Apply(const Command& command) {
    Outcome out;
    machine_.Apply(command, now_ms(), &out);
    Reply reply = out.reply;
    Carry(out);
    while (machine_.PlanningDue()) {
      Outcome planned;
      machine_.Apply(PlanRound{}, now_ms(), &planned);
      Carry(planned);
    }
    return reply;
  }
  void Carry(const Outcome& out) {
    for (const Effect& effect : out.effects) {
      if (const auto* bind = std::get_if<BindPod>(&effect)) {
        Write([this, uid = bind->pod.uid, node = bind->node] { Bound(uid, node); });
      } else if (const auto* call = std::get_if<ActivatePod>(&effect)) {
        ++result_.activations;
        Write([this, uid = call->pod.uid, gate = call->remove_gate] { Activated(uid, gate); });
      }
    }
    for (const HoldAnswer& answer : out.answers) {
      if (const auto held = held_.find(answer.token); held != held_.end()) {
        const std::string uid = held->second;
        held_.erase(held);
        if (!answer.permitted) At(now_us_, [this, uid] { BindFailed(uid); });
      }
    }
  }

  // --- kube-scheduler ---
  void Enqueue(Entry* entry) {
    entry->where = Where::kActive;
    entry->order = ++orders_;
    active_.emplace(entry->order, entry);
    Serve();
  }
  void Backoff(Entry* entry, int64_t until_us) {
    if (until_us <= now_us_) return Enqueue(entry);
    entry->where = Where::kBackoff;
    At(until_us, [this, entry] {
      if (entry->where == Where::kBackoff) Enqueue(entry);
    });
  }
  void Wake(Entry* entry) { Backoff(entry, entry->since_us + BackoffUs(entry->attempts)); }
  // A pod was bound or released its node: every refused pod returns to the queue.
  void WakeRefused() {
    for (Entry* entry : std::exchange(unschedulable_, {})) Wake(entry);
    if (in_cycle_ != nullptr) in_cycle_->woken = true;
  }
  void Serve() {
    if (in_cycle_ != nullptr || active_.empty()) return;
    in_cycle_ = active_.begin()->second;
    active_.erase(active_.begin());
    in_cycle_->where = Where::kInCycle;
    in_cycle_->woken = false;
    At(now_us_ + (now_us_ < given_.slow_from_us ? given_.attempt_us : given_.slow_attempt_us), [this] { Attempt(); });
  }
  void Attempt() {
    Entry* entry = in_cycle_;
    ++result_.filters;
    const auto reply = std::get<FilterReply>(
        Apply(Filter{entry->facts.uid, offers_[static_cast<size_t>(result_.filters) % offers_.size()]}));
    in_cycle_ = nullptr;
    entry->since_us = now_us_;
    if (reply.kind == FilterReply::Kind::kSingleNode) {
      entry->where = Where::kBinding;
      held_[++tokens_] = entry->facts.uid;
      At(now_us_, [this, entry, node = reply.node, token = tokens_] { Apply(Bind{entry->facts.uid, node, token}); });
    } else {
      ++entry->attempts;
      Refused(entry, absl::StrCat("0/", given_.nodes, " nodes are available: 1 muster: ", reply.reason.text, "."));
    }
    Serve();
  }
  void Refused(Entry* entry, std::string message) {
    entry->where = Where::kUnschedulable;
    if (entry->facts.unschedulable != message) {
      entry->facts.unschedulable = std::move(message);
      Announce(*entry);
    }
    if (entry->woken) return Wake(entry);
    unschedulable_.insert(entry);
  }
  void Activated(const std::string& uid, bool gate) {
    Entry& entry = pods_.at(uid);
    if (gate) {
      if (!std::exchange(entry.facts.our_gate, false)) return;
      Enqueue(&entry);
    } else {
      entry.facts.activation_mark = absl::StrCat(++marks_);
      if (unschedulable_.erase(&entry) > 0) Wake(&entry);
      if (entry.where == Where::kInCycle) entry.woken = true;
    }
    Announce(entry);
  }
  void BindFailed(const std::string& uid) {
    Entry& entry = pods_.at(uid);
    if (entry.where != Where::kBinding) return;
    ++result_.ended_holds;
    ++entry.errors;
    Backoff(&entry, now_us_ + BackoffUs(entry.errors));
    WakeRefused();
  }
  void Bound(const std::string& uid, const std::string& node) {
    Entry& entry = pods_.at(uid);
    if (entry.where == Where::kBound) return;
    entry.where = Where::kBound;
    entry.facts.node_name = node;
    entry.facts.unschedulable.clear();
    ++result_.bound;
    result_.last_bound_ms = now_us_ / kUsPerMs;
    const auto minute = static_cast<size_t>(result_.last_bound_ms / 60'000);
    if (result_.bound_each_minute.size() <= minute) result_.bound_each_minute.resize(minute + 1);
    ++result_.bound_each_minute[minute];
    Apply(BindingOutcome{uid, node, BindingResult::kBound, ""});
    Announce(entry);
    WakeRefused();
  }

  const StartFlowSettings given_;
  Machine machine_;
  int64_t now_us_ = 0;
  std::multimap<int64_t, std::function<void()>> events_;
  std::map<std::string, Entry> pods_;  // by UID
  std::vector<std::shared_ptr<const NodeOffer>> offers_;
  std::map<int64_t, Entry*> active_;  // kube-scheduler's queue
  std::set<Entry*> unschedulable_;
  Entry* in_cycle_ = nullptr;
  std::map<HoldToken, std::string> held_;
  int64_t written_us_ = 0;
  int64_t orders_ = 0;
  int64_t marks_ = 0;
  HoldToken tokens_ = 0;
  StartFlowResult result_;
};

}  // namespace

StartFlowResult RunStartFlow(const StartFlowSettings& settings, int64_t limit_ms) {
  return StartFlow(settings).Run(limit_ms);
}

}  // namespace muster
