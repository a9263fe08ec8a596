#include "tests/simulation/verb_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/facts.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

constexpr size_t kMaxJobs = 6;
constexpr int64_t kVerbPatienceMs = 3'600'000;
constexpr char kAnnouncer[] = "orchestrator";
constexpr int64_t kBindWithinMs = 3'600'000;  // permitted callers bind, however long a process is down

}  // namespace

VerbWorld::VerbWorld(uint64_t seed) : SimWorld(seed) {
  settings_.persist_facts = true;
  const int nodes = 2 + Roll(4);
  for (int i = 0; i < nodes; ++i) {
    const std::string name = absl::StrCat("n", i);
    nodes_[name] = NodeWith(name, {{"cpu", 1000 * (2 + Roll(3))}, {"pods", 110}});
  }
  StartProcess();
}

void VerbWorld::Run(const Turns& turns) {
  for (int i = 0; i < turns.end() && violation_.empty(); ++i) {
    if (!turns.Has(i)) continue;
    BeginTurn(i);
    if (jobs_.size() < kMaxJobs && Roll(30) == 0) MakeJob();
    Turn();
  }
  StopFaults();
  const int64_t end = clock_.NowMs() + kVerbPatienceMs;
  while (violation_.empty() && !jobs_.empty()) {
    Turn();
    if (clock_.NowMs() <= end) continue;
    for (const auto& [name, job] : jobs_) {
      for (const auto& [uid, member] : job.members) {
        const Pod* pod = machine_->reader().FindPod(uid);
        Log(absl::StrCat("left: ", pod == nullptr ? "" : ToString(pod->state), job.leaving ? " leaving " : " ",
                         job.ends_ms, " ", member.next_ms, " announcing ", announcing_, " snapshot ", snapshot_, " ",
                         uid, " of ", job.min, " at ", static_cast<int>(member.at), " node ", member.node,
                         member.known ? "" : ", never announced"));
      }
    }
    const Gang* gang = machine_->reader().FindGang(absl::StrCat("d/", jobs_.begin()->first));
    Violate(absl::StrCat("P-6: nothing goes wrong any more, and ", jobs_.begin()->first,
                         " never starts or ends: ", gang == nullptr ? "it is not there" : gang->reason.text));
  }
}

void VerbWorld::Turn() {
  const int roll = Roll(14);
  if (!EngineTurn(roll)) OutsideTurn(roll);
  if (!life_->alive) return Crash("behind an answer");
  if (Chance(800)) Crash("between two turns");
}

void VerbWorld::OutsideTurn(int roll) {
  switch (roll) {
    case 7:
    case 8:
    case 9:
    case 10:
      CallerTurn();
      break;
    case 11:
    case 12:
      AnnouncerTurn();
      break;
    default:
      clock_.Pass(Chance(40) ? Roll(20'000) : Roll(100));
      break;
  }
}

void VerbWorld::Crash(const char* when) {
  EndProcess(when);
  announcing_ = false;
  // Their calls fail. They do not know whether the nodes that they asked for were permitted.
  for (auto& [name, job] : jobs_) {
    for (auto& [uid, member] : job.members) {
      if (member.at == At::kAsked || member.at == At::kWaiting) member.at = At::kIdle;
    }
  }
  if (Roll(3) == 0) clock_.Pass(Roll(30'000));
  StartProcess();
  CheckPromises();
}

// --- gangs, pod by pod ---

void VerbWorld::MakeJob() {
  Job job;
  job.name = absl::StrCat("g", next_id_++);
  const int64_t cpu = 500 * (1 + Roll(3));
  int64_t places = 0;  // every job fits the empty cluster
  for (const auto& [name, node] : nodes_) places += node.allocatable.at("cpu") / cpu;
  const int size = 1 + Roll(static_cast<int>(std::clamp<int64_t>(places, 1, 5)));
  job.min = size == 1 || Roll(3) != 0 ? size : size - 1;
  Shared<GangDeclaration> declaration;
  declaration.Mutable().min_member = job.min;
  declaration.Mutable().mode = Roll(2) == 0 ? GangMode::kStrict : GangMode::kNonStrict;
  declaration.Mutable().on_timeout = OnTimeout::kRequeue;
  declaration.Mutable().wait_time_ms = 5'000 + Roll(60'000);
  if (Roll(3) == 0) declaration.Mutable().match_policy = MatchPolicy::kWaitingAndRunning;
  for (int i = 0; i < size; ++i) {
    Member member;
    member.facts = muster::Member(absl::StrCat(job.name, "-", i), job.name, job.min, cpu);
    member.facts.scheduler_name = "orchestrator";  // a scheduler of its own: Muster plans none of it
    member.facts.gang.dialect = GangDialect::kApi;
    member.facts.gang.declaration = declaration;
    job.members.emplace(member.facts.uid, std::move(member));
  }
  jobs_.emplace(job.name, std::move(job));
}

VerbWorld::Job* VerbWorld::JobOf(const std::string& uid) {
  const auto job = jobs_.find(uid.substr(0, uid.find('-')));
  return job == jobs_.end() ? nullptr : &job->second;
}

VerbWorld::Member* VerbWorld::Find(const std::string& uid) {
  Job* job = JobOf(uid);
  return job == nullptr ? nullptr : &job->members.at(uid);
}

void VerbWorld::Later(Member* member) {
  member->at = At::kIdle;
  member->next_ms = clock_.NowMs() + 50 + Roll(1'000);
}

void VerbWorld::CallerTurn() {
  std::vector<std::string> ready;
  for (auto& [name, job] : jobs_) {
    const auto bound = std::count_if(job.members.begin(), job.members.end(),
                                     [](const auto& entry) { return entry.second.at == At::kBound; });
    // Members beyond the minimum may find no room while others run.
    const bool runs = bound >= job.min && std::all_of(job.members.begin(), job.members.end(), [](const auto& entry) {
                        return entry.second.at == At::kBound || entry.second.at == At::kIdle;
                      });
    if (runs && job.ends_ms == 0) job.ends_ms = clock_.NowMs() + 500 + Roll(10'000);
    if (runs && job.ends_ms <= clock_.NowMs()) job.leaving = true;
    for (const auto& [uid, member] : job.members) {
      const bool acts = member.at == At::kIdle || member.at == At::kPermitted || member.at == At::kWaiting;
      if (member.known && !job.leaving && acts && member.next_ms <= clock_.NowMs()) ready.push_back(uid);
    }
  }
  if (ready.empty()) return;
  const std::string uid = ready[static_cast<size_t>(Roll(static_cast<int>(ready.size())))];
  Member& member = *Find(uid);
  if (member.at == At::kWaiting) {
    if (Chance(60)) GiveUp(uid);
  } else if (member.at == At::kPermitted) {
    TellBound(uid);
  } else if (!member.node.empty()) {
    AskPermit(uid);  // a process that died may have permitted it there
  } else {
    AskNodes(uid);
  }
}

void VerbWorld::AskNodes(const std::string& uid) {
  Find(uid)->at = At::kAsked;
  Call(PreFilter{uid}, [this, uid](const absl::StatusOr<Reply>& reply) {
    Member* member = Find(uid);
    if (!reply.ok() || !std::get<PreFilterReply>(*reply).passes) {
      figures_["PreFilter refuses"] += reply.ok() ? 1 : 0;
      if (reply.ok() && !faults_)
        Log(absl::StrCat(uid, " may not try: ", std::get<PreFilterReply>(*reply).reason.text));
      return Later(member);
    }
    Call(FindNodes{uid, {}}, [this, uid](const absl::StatusOr<Reply>& found) {
      Member* member = Find(uid);
      if (!found.ok()) return Later(member);
      const std::vector<NodesReply::Scored>& nodes = std::get<NodesReply>(*found).nodes;
      if (nodes.empty()) {
        figures_["no node is found"] += 1;
        Call(PostFilter{uid, "no node"}, [this, uid](const absl::StatusOr<Reply>&) { Later(Find(uid)); });
        return;
      }
      member->node = nodes[static_cast<size_t>(Roll(static_cast<int>(nodes.size())))].node;
      AskPermit(uid);
    });
  });
}

void VerbWorld::AskPermit(const std::string& uid) {
  Member* member = Find(uid);
  member->at = At::kAsked;
  const int ask = ++member->asks;
  const auto on_reply = Heard([this, uid](const absl::StatusOr<Reply>& reply) {
    Member* asked = Find(uid);
    if (!reply.ok()) return Later(asked);
    const auto& answer = std::get<PermitReply>(*reply);
    if (answer.kind == PermitReply::Kind::kPermit) return Permitted(uid);
    if (answer.kind == PermitReply::Kind::kWait) {
      asked->at = At::kWaiting;
      return;
    }
    figures_[absl::StrCat("refused: ", ReasonName(answer.reason.code))] += 1;
    Log(absl::StrCat(uid, " is refused on ", asked->node, ": ", answer.reason.text));
    asked->node.clear();
    Later(asked);
  });
  const auto ended = [this, life = life_, uid, ask](const HoldAnswer& answer) {
    if (!life->alive) return;
    if (Chance(100)) life->alive = false;
    Member* waiting = Find(uid);
    if (waiting == nullptr || waiting->at != At::kWaiting || waiting->asks != ask) return;
    if (answer.permitted) return Permitted(uid);
    figures_[absl::StrCat("sent away: ", ReasonName(answer.reason.code))] += 1;
    Log(absl::StrCat(uid, " is sent away from ", waiting->node, ": ", answer.reason.text));
    waiting->node.clear();
    Later(waiting);
  };
  member->token = engine_->AskPermit(Permit{uid, member->node, 0, kBindWithinMs},
                                     std::chrono::steady_clock::time_point::max(), on_reply, ended);
}

void VerbWorld::Permitted(const std::string& uid) {
  Job& job = *JobOf(uid);
  Member& member = job.members.at(uid);
  member.at = At::kPermitted;
  member.next_ms = clock_.NowMs();
  Log(absl::StrCat(uid, " starts on ", member.node));
  figures_["pods started"] += 1;
  figures_["gangs started"] += job.started ? 0 : 1;
  job.started = true;
  CheckRoom(member.node);
}

void VerbWorld::TellBound(const std::string& uid) {
  Member* member = Find(uid);
  Call(PostBind{uid, member->node}, [this, uid](const absl::StatusOr<Reply>& reply) {
    Member* bound = Find(uid);
    if (bound == nullptr || bound->at != At::kPermitted) return;  // a repeated reply
    if (reply.ok()) {
      bound->at = At::kBound;
    } else if (!absl::IsUnavailable(reply.status())) {
      Violate(absl::StrCat("S-2: ", uid, " was permitted on ", bound->node, ", and PostBind says ",
                           reply.status().ToString()));
    }
  });
  member->next_ms = clock_.NowMs() + Roll(500);
}

// Its caller goes away, or releases the place.
void VerbWorld::GiveUp(const std::string& uid) {
  Member* member = Find(uid);
  figures_["a waiting pod is given up"] += 1;
  Log(absl::StrCat(uid, " is given up on ", member->node));
  if (Roll(2) == 0) {
    engine_->OnPermitCallerGone(uid, member->token);
    Later(member);  // it is unknown whether it was permitted first: the same node is asked for again
    return;
  }
  member->at = At::kAsked;
  Call(Unreserve{uid, UnreserveCause::kRejected}, [this, uid](const absl::StatusOr<Reply>&) {
    Member* asked = Find(uid);
    if (asked->at == At::kAsked) Later(asked);
  });
}

void VerbWorld::AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) {
  SimWorld::AfterApply(command, now_ms, outcome);
  const auto* permit = std::get_if<PermitReply>(&outcome.reply);
  if (!outcome.answers.empty() || (permit != nullptr && permit->kind == PermitReply::Kind::kPermit)) CheckWhole();
}

// Checked at the decision: what callers release afterwards is their own choice.
void VerbWorld::CheckWhole() {
  for (const auto& [name, job] : jobs_) {
    if (whole_.count(name) > 0) continue;
    const auto there = std::count_if(job.members.begin(), job.members.end(), [&](const auto& entry) {
      const Pod* pod = machine_->reader().FindPod(entry.first);
      return pod != nullptr && (pod->state == MemberState::kCommitted || pod->on_node());
    });
    if (there >= job.min) {
      whole_.insert(name);
    } else if (there > 0) {
      Violate(absl::StrCat("G-4: ", there, " of ", name, " start, of at least ", job.min));
    }
  }
}

void VerbWorld::CheckRoom(const std::string& node) {
  int64_t cpu = 0;
  for (const auto& [name, job] : jobs_) {
    if (std::find(gone_.begin(), gone_.end(), name) != gone_.end()) continue;
    for (const auto& [uid, member] : job.members) {
      const bool there = member.at == At::kPermitted || member.at == At::kBound;
      if (there && member.node == node) cpu += member.facts.shape->requests.at("cpu");
    }
  }
  if (cpu > nodes_.at(node).allocatable.at("cpu")) Violate(absl::StrCat("Q-7: node ", node, " is given twice"));
}

// --- facts ---

void VerbWorld::AnnouncerTurn() {
  if (announcing_) return;
  if (!step_.has_value() && !MakeStep()) return;
  announcing_ = true;
  Call(*step_, [this](const absl::StatusOr<Reply>& reply) { Announced(reply); });
}

// At first, after a refusal, and now and then, a snapshot; otherwise updates.
bool VerbWorld::MakeStep() {
  said_.clear();
  gone_.clear();
  std::vector<PodDescription> pods;
  std::vector<std::string> removed;
  const bool whole = snapshot_ || Chance(50);
  for (const auto& [name, job] : jobs_) {
    if (job.leaving) gone_.push_back(name);
    for (const auto& [uid, member] : job.members) {
      if (job.leaving) removed.push_back(uid);
      if (job.leaving || (member.known && !whole)) continue;
      said_.push_back(uid);
      pods.push_back(member.facts);
      if (member.at != At::kPermitted && member.at != At::kBound) continue;
      pods.back().node_name = member.node;
      pods.back().phase = PodPhase::kRunning;
    }
  }
  if (!whole && pods.empty() && removed.empty()) return false;
  const FactsVersion number{kAnnouncer, version_ + 1};
  if (!whole) {
    step_ = UpdateFacts{.facts_version = number, .pods = std::move(pods), .removed_pods = std::move(removed)};
    return true;
  }
  figures_["snapshots"] += 1;
  ReplaceFacts facts{.facts_version = number, .pods = std::move(pods)};
  for (const auto& [name, node] : nodes_) facts.nodes.push_back(node);
  step_ = std::move(facts);
  return true;
}

void VerbWorld::Announced(const absl::StatusOr<Reply>& reply) {
  announcing_ = false;
  if (!reply.ok()) {
    if (absl::IsUnavailable(reply.status())) return;
    figures_["announcements refused"] += 1;
    snapshot_ = true;
    step_.reset();
    return;
  }
  version_ = std::get<FactsReply>(*reply).version;
  snapshot_ = false;
  step_.reset();
  for (const std::string& uid : said_) {
    if (Member* member = Find(uid); member != nullptr) member->known = true;
  }
  for (const std::string& name : gone_) jobs_.erase(name);
  gone_.clear();
}

// --- what must hold ---

void VerbWorld::CheckPromises() {
  if (machine_ == nullptr) return;
  if (machine_->rooms().sources.version() < version_) {
    return Violate(absl::StrCat("S-2: version ", version_, " was acknowledged, ", machine_->rooms().sources.version(),
                                " is kept"));
  }
  for (const auto& [name, job] : jobs_) {
    for (const auto& [uid, member] : job.members) {
      const Pod* pod = machine_->reader().FindPod(uid);
      if (member.known && !job.leaving && pod == nullptr)
        return Violate(absl::StrCat("S-2: pod ", uid, " is forgotten"));
      if (member.at != At::kPermitted && member.at != At::kBound) continue;
      if (job.leaving) continue;
      const NodeId charged = machine_->rooms().ledger.ChargeOf(pod->id).node;
      const std::string node = charged == kNoNode ? "" : machine_->rooms().cluster.node(charged).facts.name;
      if (node != member.node) {
        return Violate(absl::StrCat("S-2: pod ", uid, " was permitted on ", member.node, ", and is on \"", node, "\""));
      }
    }
  }
  if (const absl::Status ok = CheckInvariants(*machine_); !ok.ok()) Violate(std::string(ok.message()));
}

}  // namespace muster
