#include "tests/simulation/sim_world.h"

#include "tests/simulation/kinds.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

constexpr size_t kMaxEvents = 400;
constexpr int kInvariantsEvery = 2'000;  // commands

}  // namespace

SimWorld::SimWorld(uint64_t seed)
    : store_([this] {
        if (!Chance(60)) return PathStore::Fate::kStored;
        figures_["fault: the store fails"] += 1;
        return Roll(2) == 0 ? PathStore::Fate::kRejected : PathStore::Fate::kStoredWithoutReply;
      }),
      seed_(seed),
      drawn_(seed) {}

SimWorld::~SimWorld() { life_->alive = false; }

void SimWorld::Log(const std::string& text) {
  events_.push_back(absl::StrCat(clock_.NowMs(), " ", text));
  if (events_.size() > kMaxEvents) events_.pop_front();
}

void SimWorld::Violate(std::string text) {
  if (!violation_.empty()) return;
  Log(absl::StrCat("VIOLATION: ", text));
  violation_ = std::move(text);
}

void SimWorld::ChangeQueues() {
  if (!queues_->any()) return;
  figures_["the queues change"] += 1;
  settings_.queues = queues_->Change();
  engine_->Announce(SetQueues{settings_.queues}).IgnoreError();
}

void SimWorld::StartProcess() {
  life_ = std::make_shared<Life>();
  EngineOptions options;
  options.clock = &clock_;
  options.stepped = true;
  options.planning_slice = absl::Hours(1);  // the planning budget does not depend on the speed of this machine
  options.gangs_per_round = 1 + Roll(4);
  options.batch = static_cast<size_t>(1 + Roll(16));
  options.recorder = this;
  engine_ = std::make_unique<Engine>(settings_, options, &store_, static_cast<EffectSink*>(this));
  if (const absl::Status started = engine_->Start(); !started.ok()) Violate(std::string(started.message()));
}

bool SimWorld::EngineTurn(int roll) {
  if (roll < 4 && engine_->StepDue()) engine_->Step();
  if (roll >= 4 && roll < 7) engine_->TryCommit();
  return roll < 7;
}

void SimWorld::EndProcess(const char* when) {
  Log(absl::StrCat("the process dies ", when));
  figures_[absl::StrCat("fault: a crash ", when)] += 1;
  figures_["crashes"] += 1;
  life_->alive = false;
  engine_.reset();
  machine_ = nullptr;
}

void SimWorld::AfterApply(const Command& command, int64_t /*now_ms*/, const Outcome& outcome) {
  const int64_t commands = ++figures_["commands"];
  figures_[absl::StrCat("command: ", KindOf(command))] += 1;
  for (const Effect& effect : outcome.effects) {
    figures_[absl::StrCat("effect: ", KindOf(effect))] += 1;
    if (const auto* tell = std::get_if<EmitPodEvent>(&effect)) {
      figures_[absl::StrCat("reason: ", ReasonName(tell->reason.code))] += 1;
    }
  }
  for (const Record& record : outcome.records) figures_[absl::StrCat("record: ", record.kind)] += 1;
  if (const auto* reply = std::get_if<FilterReply>(&outcome.reply); reply != nullptr && !reply->reason.none()) {
    figures_[absl::StrCat("reason: ", ReasonName(reply->reason.code))] += 1;
  }
  if (commands % kInvariantsEvery != 0) return;
  if (const absl::Status ok = CheckInvariants(*machine_); !ok.ok()) Violate(std::string(ok.message()));
}

}  // namespace muster
