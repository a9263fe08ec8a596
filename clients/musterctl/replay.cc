#include "clients/musterctl/replay.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "clients/musterctl/output.h"
#include "service/recorder/segment.h"
#include "state/machine/machine.h"
#include "state/recording/recording.h"

namespace muster {
namespace {

constexpr char kTime[] = "%Y-%m-%dT%H:%M:%E3SZ";

std::string TimeText(int64_t ms) { return absl::FormatTime(kTime, absl::FromUnixMillis(ms), absl::UTCTimeZone()); }

// For example "Filter".
template <typename T>
constexpr absl::string_view TypeName() {
  absl::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  const size_t scope = name.rfind("::");
  return scope == absl::string_view::npos ? name : name.substr(scope + 2);
}

absl::string_view KindOf(const Command& command) {
  return std::visit([](const auto& specific) { return TypeName<std::decay_t<decltype(specific)>>(); }, command);
}

// The object of the command; empty: none.
std::string SubjectOf(const Command& command, const Machine& machine) {
  const auto pod = [&](const std::string& uid) {
    const Pod* known = machine.reader().FindPod(uid);
    return known == nullptr ? uid : absl::StrCat(known->facts.name_space, "/", known->facts.name);
  };
  return std::visit(
      [&](const auto& specific) -> std::string {
        if constexpr (requires { specific.uid; }) {
          return pod(specific.uid);
        } else if constexpr (requires { specific.node.name; }) {
          return specific.node.name;
        } else if constexpr (requires { specific.pod.name; }) {
          return absl::StrCat(specific.pod.name_space, "/", specific.pod.name);
        } else if constexpr (requires { specific.object.name; }) {
          return absl::StrCat(specific.object.name_space, "/", specific.object.name);
        } else if constexpr (requires { specific.name_space; }) {
          return absl::StrCat(specific.name_space, "/", specific.name);
        } else if constexpr (requires { specific.id; }) {
          return specific.id;
        } else if constexpr (requires { specific.name; }) {
          return specific.name;
        }
        return "";
      },
      command);
}

std::string ReasonText(const Reason& reason) {
  return reason.none() ? "" : absl::StrCat(": ", ReasonName(reason.code), ": ", reason.text);
}

struct ReplyText {
  std::string operator()(std::monostate) const { return "done"; }
  std::string operator()(const FilterReply& reply) const {
    switch (reply.kind) {
      case FilterReply::Kind::kPass:
        return reply.guarded.empty() ? "any node" : absl::StrCat("any node but ", reply.guarded.size());
      case FilterReply::Kind::kSingleNode:
        return absl::StrCat("node ", reply.node);
      case FilterReply::Kind::kRefuse:
        return absl::StrCat("no node", ReasonText(reply.reason));
    }
    return "";
  }
  std::string operator()(const PreemptReply& reply) const { return absl::StrCat(reply.nodes.size(), " candidates"); }
  std::string operator()(const PermitReply& reply) const {
    const bool permits = reply.kind == PermitReply::Kind::kPermit;
    const bool waits = reply.kind == PermitReply::Kind::kWait;
    return absl::StrCat(permits ? "permit" : waits ? "wait" : "reject", ReasonText(reply.reason));
  }
  std::string operator()(const PreFilterReply& reply) const {
    return absl::StrCat(reply.passes ? "passes" : "refused", ReasonText(reply.reason));
  }
  std::string operator()(const NodesReply& reply) const {
    return reply.nodes.empty() ? absl::StrCat("no node", ReasonText(reply.reason))
                               : absl::StrCat(reply.nodes.size(), " nodes, ", reply.nodes.front().node, " first");
  }
  std::string operator()(const FactsReply& reply) const { return absl::StrCat("version ", reply.version); }
  std::string operator()(const SubmissionReply& reply) const {
    return absl::StrCat(ToString(reply.state), ReasonText(reply.reason));
  }
};

std::string OutcomeText(const Outcome& outcome) {
  std::string text = outcome.status.ok() ? std::visit(ReplyText(), outcome.reply)
                                         : absl::StrCat("refused: ", outcome.status.message());
  if (!outcome.effects.empty()) absl::StrAppend(&text, "; ", outcome.effects.size(), " effects");
  if (!outcome.answers.empty()) absl::StrAppend(&text, "; ", outcome.answers.size(), " held calls answered");
  return text;
}

void PrintText(const std::string& line) { std::cout << Printable(line) << "\n"; }

int Fail(absl::string_view message) {
  std::cerr << "musterctl: " << Printable(std::string(message)) << "\n";
  return 1;
}

// Where to stop: after a command, or at a time.
struct Until {
  int64_t command = std::numeric_limits<int64_t>::max();
  int64_t ms = std::numeric_limits<int64_t>::max();
};

absl::StatusOr<Until> ParseUntil(absl::string_view text) {
  Until until;
  if (text.empty()) return until;
  absl::string_view number = text;
  if (absl::ConsumePrefix(&number, "#") && absl::SimpleAtoi(number, &until.command) && until.command > 0) return until;
  absl::Time time;
  std::string why;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &why)) {
    return absl::InvalidArgumentError(absl::StrCat("--until: \"", text,
                                                   "\"; expected a time like 2026-01-31T12:00:00Z, or the number of a "
                                                   "command like #1200 (--commands shows them)"));
  }
  until.ms = absl::ToUnixMillis(time);
  return until;
}

// The history of one gang: one line at each change.
class GangStory {
 public:
  explicit GangStory(std::string key) : key_(std::move(key)) {}

  void Look(const Machine& machine, const std::string& moment) {
    const Gang* gang = machine.reader().FindGang(key_);
    std::string now;
    if (gang != nullptr) {
      seen_ = true;
      const GangView view = machine.reader().gangs.View(*gang, /*with_members=*/false);
      now = absl::StrCat(ToString(view.phase), ReasonText(view.reason));
    } else if (!last_state_.empty()) {
      now = "gone";
    }
    if (now != last_state_) PrintText(absl::StrCat(moment, "  ", now));
    last_state_ = std::move(now);
  }

  [[nodiscard]] bool seen() const { return seen_; }
  [[nodiscard]] const std::string& key() const { return key_; }

  // Prints the final state.
  void PrintEnd(const Machine& machine) const {
    const Gang* gang = machine.reader().FindGang(key_);
    if (gang == nullptr) return PrintText(absl::StrCat("gang ", key_, " does not exist at the end"));
    const GangView view = machine.reader().gangs.View(*gang, /*with_members=*/true);
    PrintText("");
    PrintText(absl::StrCat("gang ", key_, ": ", ToString(view.phase), ReasonText(view.reason)));
    if (!view.would_help.empty()) PrintText(absl::StrCat("  suggestion: ", view.would_help));
    PrintText(absl::StrCat("  minimum ", view.rules.min_member, ", members ", view.children, ": ", view.waiting,
                           " wait, ", view.committed, " being bound, ", view.bound, " bound, ", view.succeeded,
                           " succeeded, ", view.failed, " failed"));
    for (const MemberView& member : view.members) {
      PrintText(absl::StrCat("  ", member.name, "  ", ToString(member.state),
                             member.node.empty() ? "" : absl::StrCat(" on ", member.node), ReasonText(member.reason)));
    }
  }

 private:
  const std::string key_;
  std::string last_state_;
  bool seen_ = false;
};

// Runs one file after the other through a machine.
class Replay {
 public:
  Replay(Until until, bool check, bool commands, const std::string& gang)
      : until_(until), check_(check), commands_(commands) {
    if (!gang.empty()) story_.emplace(gang);
  }

  // The error names the command with a different outcome, or what cannot be read.
  [[nodiscard]] absl::Status Run(const std::string& file, SegmentReader* segment) {
    const SegmentHeader& header = segment->header();
    const bool first = machine_ == nullptr;
    if (header.begun_ms > until_.ms || header.first_command > until_.command) {
      reached_ = true;
      if (!first) return absl::OkStatus();
      return absl::OutOfRangeError(absl::StrCat("--until: the recording begins later, at ", TimeText(header.begun_ms),
                                                " #", header.first_command));
    }
    auto machine = std::make_unique<Machine>(segment->settings());
    if (absl::Status restored = recording::RestoreState(segment->state(), machine.get()); !restored.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": ", restored.message()));
    }
    const bool goes_on = !first && last_end_ == SegmentEnd::kFull && header.first_command == number_ + 1;
    if (!first && last_end_ == SegmentEnd::kFull && header.first_of_process) {
      PrintMissing("from then until that process stopped");
    } else if (!first && !header.first_of_process && header.first_command != number_ + 1) {
      PrintMissing(absl::StrCat("until ", TimeText(header.begun_ms), " #", header.first_command));
    }
    machine->TakeChanged(&gangs_, &nodes_);  // as after each command of the previous file
    if (check_ && goes_on && recording::StateHash(*machine) != recording::StateHash(*machine_)) {
      return absl::DataLossError(
          absl::StrCat(file, " begins with another state than the end of the previous file: ", Moment()));
    }
    machine_ = std::move(machine);
    number_ = header.first_command - 1;
    now_ms_ = header.begun_ms;
    if (header.version != MUSTER_VERSION) {
      PrintText(
          absl::StrCat(file, " is of another version than this musterctl (" MUSTER_VERSION "); decisions may differ"));
    }
    PrintText(absl::StrCat(file, ": musterd ", header.version, header.first_of_process ? ", from its start" : "", ", ",
                           TimeText(now_ms_)));
    if (story_.has_value()) story_->Look(*machine_, Moment());
    std::map<std::string, int64_t> kinds;
    int64_t commands = 0;
    SegmentReader::Entry entry;
    for (;;) {
      const absl::StatusOr<bool> more = segment->Next(&entry);
      if (!more.ok()) return absl::Status(more.status().code(), absl::StrCat(file, " ", more.status().message()));
      if (!*more) break;
      if (number_ >= until_.command || entry.now_ms > until_.ms) {
        reached_ = true;
        break;
      }
      ++commands;
      ++kinds[std::string(KindOf(entry.command))];
      if (absl::Status applied = Apply(entry); !applied.ok()) return applied;
    }
    PrintText(absl::StrCat("  ", commands, " commands to ", Moment(), " (",
                           absl::StrJoin(kinds, ", ", absl::PairFormatter(" ")), ")"));
    return End(*segment);
  }

  [[nodiscard]] bool reached() const { return reached_; }
  // A file of the recording cannot be read to its end.
  void NoteMissing() {
    incomplete_ = true;
    last_end_ = SegmentEnd::kNone;
  }
  // No file follows.
  void NoteLast() {
    if (last_end_ == SegmentEnd::kFull && !reached_) PrintMissing("after that");
  }
  // The error: what was requested is not in the recording.
  [[nodiscard]] absl::Status PrintEnd() const {
    if (machine_ == nullptr) return absl::OkStatus();
    int64_t gangs = 0;
    machine_->reader().ForEachGang([&](const Gang&) { ++gangs; });
    PrintText(absl::StrCat("at the end: ", machine_->reader().facts.present_nodes(), " nodes, ",
                           machine_->reader().gangs.pod_count(), " pods, ", gangs, " gangs; state ",
                           absl::Hex(recording::StateHash(*machine_), absl::kZeroPad16)));
    const bool bounded = until_.ms != Until().ms || until_.command != Until().command;
    if (bounded && !reached_ && number_ != until_.command)
      PrintText(absl::StrCat("the recording ends before --until, at ", Moment()));
    if (check_) {
      PrintText(absl::StrCat("checked: ", checked_, " outcomes are as recorded", states_,
                             incomplete_ ? "; missing commands were not checked" : ""));
    }
    if (!story_.has_value()) return absl::OkStatus();
    if (!story_->seen()) {
      return absl::NotFoundError(
          absl::StrCat("--explain: there is no gang ", story_->key(), " in the replayed commands"));
    }
    story_->PrintEnd(*machine_);
    return absl::OkStatus();
  }

 private:
  void PrintMissing(const std::string& what) {
    PrintText(absl::StrCat("  the commands ", what, " are in none of these files"));
    incomplete_ = true;
  }
  [[nodiscard]] std::string Moment() const { return absl::StrCat(TimeText(now_ms_), " #", number_); }

  [[nodiscard]] absl::Status Apply(const SegmentReader::Entry& entry) {
    ++number_;
    now_ms_ = entry.now_ms;
    // Before it is applied: a removed pod is unknown afterwards.
    const std::string subject = SubjectOf(entry.command, *machine_);
    const std::string what = absl::StrCat(KindOf(entry.command), subject.empty() ? "" : " ", subject);
    Outcome outcome;
    machine_->Apply(entry.command, entry.now_ms, &outcome);
    if (commands_) PrintText(absl::StrCat(Moment(), "  ", what, " -> ", OutcomeText(outcome)));
    if (check_ && static_cast<uint32_t>(recording::DigestOf(outcome)) != entry.digest) {
      return absl::DataLossError(absl::StrCat(
          Moment(), ": ", what, " has another outcome than in the recording; here: ", OutcomeText(outcome)));
    }
    ++checked_;
    machine_->TakeChanged(&gangs_, &nodes_);
    if (story_.has_value() && !gangs_.empty()) story_->Look(*machine_, absl::StrCat(Moment(), "  ", what));
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status End(const SegmentReader& segment) {
    last_end_ = SegmentEnd::kNone;
    if (reached_) return absl::OkStatus();
    const SegmentEnding& ending = segment.ending();
    last_end_ = ending.why;
    switch (ending.why) {
      case SegmentEnd::kNone:
        PrintText("  the file is incomplete: musterd was killed, its disk was full, or it is still writing");
        break;
      case SegmentEnd::kGap:
        PrintText("  later commands were dropped: they arrived faster than they could be written");
        break;
      case SegmentEnd::kFull:
        break;
      case SegmentEnd::kStopped:
        PrintText("  musterd stopped");
        break;
    }
    if (!check_ || ending.state_hash == 0) return absl::OkStatus();
    if (recording::StateHash(*machine_) != ending.state_hash) {
      return absl::DataLossError(absl::StrCat(Moment(), ": every outcome is as recorded, the state is not: ",
                                              absl::Hex(recording::StateHash(*machine_), absl::kZeroPad16), " here, ",
                                              absl::Hex(ending.state_hash, absl::kZeroPad16), " there"));
    }
    states_ = ", and so is the state when musterd stopped";
    return absl::OkStatus();
  }

  const Until until_;
  const bool check_;
  const bool commands_;
  std::optional<GangStory> story_;
  std::unique_ptr<Machine> machine_;
  SegmentEnd last_end_ = SegmentEnd::kNone;
  int64_t number_ = 0;
  int64_t now_ms_ = 0;
  int64_t checked_ = 0;
  std::string states_;
  bool reached_ = false;
  bool incomplete_ = false;
  std::vector<std::string> gangs_;
  std::vector<std::string> nodes_;
};

}  // namespace

ReplayCommand::ReplayCommand(CLI::App* cli) {
  replay_ = cli->add_subcommand(
      "replay",
      "replay a recording of musterd --record on this machine\n\n"
      "  musterctl replay muster.rec --check                    compare every outcome with the recording\n"
      "  musterctl replay muster.rec --explain ml/train         when this gang waited, and why\n"
      "  musterctl replay muster.rec --until 2026-01-31T12:00:00Z --explain ml/train\n"
      "  musterctl replay muster.rec.1 muster.rec --commands    every command with its outcome\n\n"
      "Use the musterctl that was built with the musterd that wrote the recording. A recording is trusted input:\n"
      "do not replay files from untrusted sources.");
  replay_->add_option("file", files_, "files that the recorder wrote, in any order; each can be replayed alone")
      ->required()
      ->check(CLI::ExistingFile);
  replay_->add_option("--until", until_, "stop at this time (RFC 3339), or after the command with this number: #1200");
  replay_->add_option("--explain", gang_, "print the state of this gang (namespace/name) at every change");
  replay_->add_flag("--check", check_, "fail when an outcome or a state differs from the recording");
  replay_->add_flag("--commands", commands_, "print every command with its time, number and outcome");
}

int ReplayCommand::Run() const {
  const absl::StatusOr<Until> until = ParseUntil(until_);
  if (!until.ok()) return Fail(until.status().message());
  const std::string gang = gang_.empty() || absl::StrContains(gang_, '/') ? gang_ : absl::StrCat("default/", gang_);
  std::multimap<std::pair<int64_t, int64_t>, std::pair<std::string, SegmentReader>> segments;
  int failed = 0;
  int processes = 0;
  for (const std::string& file : files_) {
    absl::StatusOr<SegmentReader> segment = SegmentReader::Open(file);
    if (!segment.ok()) {
      failed = Fail(segment.status().message());  // the other files are replayed nevertheless
      continue;
    }
    const auto order = std::pair(segment->header().begun_ms, segment->header().first_command);
    const auto same = segments.find(order);
    if (same != segments.end() && same->second.second.state() == segment->state()) {
      failed = Fail(absl::StrCat(file, " is ", same->second.first, " again; name each file once"));
      continue;
    }
    segments.emplace(order, std::pair(file, *std::move(segment)));
  }
  // The first file of a process may be missing.
  for (const auto& [order, segment] : segments) {
    processes += processes == 0 || segment.second.header().first_of_process ? 1 : 0;
  }
  if (until->command != Until().command && processes > 1) {
    return Fail(
        "--until: each process counts its commands from 1, and these files are of several processes; name the files of "
        "one");
  }
  Replay replay(*until, check_, commands_, gang);
  absl::Status status;
  for (auto& [order, segment] : segments) {
    if (replay.reached()) break;
    status = replay.Run(segment.first, &segment.second);
    if (status.ok()) continue;
    if (!absl::IsInvalidArgument(status)) break;
    // Broken: the other files can be replayed nevertheless.
    failed = Fail(status.message());
    replay.NoteMissing();
    status = absl::OkStatus();
  }
  if (status.ok()) replay.NoteLast();
  if (status.ok()) {
    status = replay.PrintEnd();
  } else {
    replay.PrintEnd().IgnoreError();
  }
  return status.ok() ? failed : Fail(status.message());
}

}  // namespace muster
