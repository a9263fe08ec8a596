// What leaves the engine once the records that it depends on are durable: replies, effects, answers, and the view for
// readers.
#include <utility>

#include "service/engine/engine.h"
#include "state/persistence/records.h"

namespace muster {
namespace {

constexpr int64_t kNumbersReserved = 4'096;  // effect numbers reserved by one record

}  // namespace

void Engine::Deliver() {
  ++batches_;
  auto delivery = std::make_shared<Delivery>();
  BuildReadView(delivery.get());
  delivery->effects = std::exchange(batch_effects_, {});
  NumberEffects(delivery->effects.size());
  delivery->replies = std::exchange(replies_, {});
  delivery->spans = std::exchange(spans_, {});
  for (Ended& ended : answers_) {
    auto hold = holds_.extract(ended.answer.token);
    if (hold.empty()) continue;
    if (hold.mapped().span != nullptr) {
      tracer_.OnHoldEnded(ended.answer, ended.by, hold.mapped().span.get());
      delivery->spans.push_back(std::move(hold.mapped().span));
    }
    delivery->answers.emplace_back(std::move(hold.mapped().answered), std::move(ended.answer));
  }
  answers_.clear();
  if (!delivery->spans.empty() || tracer_.has_answered_gangs()) tracer_.AddStarts(machine_, &delivery->spans);
  delivery->stores = !records_.empty();
  open_holds_ = holds_.size();
  if (records_.empty() && delivery->empty()) return;
  const size_t callers = delivery->replies.size() + delivery->answers.size();
  committer_.Add(std::exchange(records_, {}), callers,
                 [this, delivery](Stored stored) { OnStored(delivery.get(), stored); });
}

// An effect number is never used twice, even across restarts.
void Engine::NumberEffects(size_t effects) {
  effects_numbered_ += static_cast<int64_t>(effects);
  if (effects_numbered_ <= effects_reserved_) return;
  effects_reserved_ = effects_numbered_ + kNumbersReserved;
  records_.push_back(EffectsRecord(effects_reserved_));
}

// Nothing leaves before its records are durable: a failing store stops the answers, never breaks a promise. What will
// never be durable is discarded, and no caller learns of it.
void Engine::OnStored(Delivery* delivery, Stored stored) {
  if (stored != Stored::kDurable) {
    const std::string why =
        stored == Stored::kFenced
            ? std::string(FencedError().message())
            : "Muster is stopping and its store refuses commits; the command was discarded, try again";
    for (auto& [done, reply] : delivery->replies) done(absl::UnavailableError(why));
    for (auto& [answered, answer] : delivery->answers) {
      answered({answer.token, false, {ReasonCode::kShuttingDown, why}});
    }
    if (stored == Stored::kFenced && !fenced_notified_.exchange(true) && options_.on_fenced) options_.on_fenced();
    return;
  }
  if (delivery->view != nullptr) {
    {
      MutexLock lock(&view_mutex_);
      view_ = std::move(delivery->view);
    }
    MutexLock lock(&listeners_mutex_);
    for (auto& [id, listener] : listeners_) listener(delivery->change);
  }
  if (!delivery->effects.empty()) {
    tracer_.OnEffectsSent(delivery->effects);
    effects_->Carry(std::move(delivery->effects));
  }
  for (auto& [done, reply] : delivery->replies) done(std::move(reply));
  for (auto& [answered, answer] : delivery->answers) answered(answer);
  tracer_.End(delivery->spans, delivery->stores);
}

// Builds the next view for readers, if something changed.
void Engine::BuildReadView(Delivery* delivery) {
  std::vector<std::string> gangs;
  std::vector<std::string> nodes;
  machine_.TakeChanged(&gangs, &nodes);
  const Reader& reader = machine_.reader();
  const ReadView& before = *latest_view_;
  const bool counts_alike =
      before.held_binds == reader.gangs.held_binds() && before.promised_holds == reader.gangs.promised_holds() &&
      before.pods == static_cast<int64_t>(reader.gangs.pod_count()) &&
      before.planning == reader.queues.planning_stats() && before.refused == reader.facts.refused_counts();
  if (gangs.empty() && nodes.empty() && counts_alike) return;
  auto next = std::make_shared<ReadView>(before);
  delivery->change.version = ++next->version;
  delivery->change.gangs = std::make_shared<const GangChanges>(ViewGangs(gangs, next.get()));
  delivery->change.nodes = std::make_shared<const NodeChanges>(ViewNodes(nodes, next.get()));
  next->stale_nodes = reader.facts.stale_nodes();
  next->held_binds = reader.gangs.held_binds();
  next->promised_holds = reader.gangs.promised_holds();
  next->pods = static_cast<int64_t>(reader.gangs.pod_count());
  next->planning = reader.queues.planning_stats();
  next->refused = reader.facts.refused_counts();
  latest_view_ = next;
  delivery->view = std::move(next);
}

GangChanges Engine::ViewGangs(const std::vector<std::string>& gangs, ReadView* next) const {
  GangChanges changes;
  if (gangs.empty()) return changes;
  changes.reserve(gangs.size());
  decltype(next->gangs)::Editor edit(std::move(next->gangs));
  for (const std::string& key : gangs) {
    const Gang* gang = machine_.reader().FindGang(key);
    auto entry = gang == nullptr
                     ? nullptr
                     : std::make_shared<const GangView>(machine_.reader().gangs.View(*gang, /*with_members=*/false));
    const auto old = entry == nullptr ? edit.Remove(key) : edit.Set(entry);
    if (old != nullptr) --next->phases[static_cast<size_t>(old->phase)];
    if (entry != nullptr) ++next->phases[static_cast<size_t>(entry->phase)];
    changes.emplace_back(key, std::move(entry));
  }
  next->gangs = edit.Done();
  return changes;
}

NodeChanges Engine::ViewNodes(const std::vector<std::string>& nodes, ReadView* next) const {
  NodeChanges changes;
  if (nodes.empty()) return changes;
  changes.reserve(nodes.size());
  decltype(next->nodes)::Editor edit(std::move(next->nodes));
  for (const std::string& name : nodes) {
    std::optional<NodeView> node = machine_.reader().facts.ViewNode(name);
    auto entry = node.has_value() ? std::make_shared<const NodeView>(*std::move(node)) : nullptr;
    const auto old = entry == nullptr ? edit.Remove(name) : edit.Set(entry);
    if (old != nullptr && old->present) --next->present_nodes;
    if (entry != nullptr && entry->present) ++next->present_nodes;
    changes.emplace_back(name, std::move(entry));
  }
  next->nodes = edit.Done();
  return changes;
}

}  // namespace muster
