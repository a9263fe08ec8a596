#include "state/records/records.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/muster/store/v1/records.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kGangPrefix = "gang/";
constexpr absl::string_view kCommitPrefix = "commit/";

}  // namespace

bool WriteGangRecord(const Gang& gang, Step* step) {
  store::v1::GangRecord record;
  record.set_satisfied(gang.kept.satisfied);
  record.set_timed_out(gang.kept.timed_out);
  record.set_held_ms(gang.kept.held_ms);
  record.set_requeues(gang.kept.requeues);
  record.set_cycles_passed(gang.kept.cycle - 1);
  record.set_cycle_invalid(!gang.kept.cycle_valid);
  std::string value = record.SerializeAsString();
  const bool recorded = !value.empty();
  step->Keep(absl::StrCat(kGangPrefix, gang.key), std::move(value));
  return recorded;
}

void DeleteGangRecord(absl::string_view gang, Step* step) { step->Keep(absl::StrCat(kGangPrefix, gang), ""); }

void WriteCommitRecord(const Pod& pod, const std::string& node, Step* step) {
  store::v1::CommitRecord record;
  record.set_node(node);
  if (pod.gang != nullptr) record.set_gang(pod.gang->key);
  step->Keep(absl::StrCat(kCommitPrefix, pod.facts.uid), record.SerializeAsString());
}

void DeleteCommitRecord(absl::string_view uid, Step* step) { step->Keep(absl::StrCat(kCommitPrefix, uid), ""); }

absl::Status Restored::Load(const std::vector<Record>& records) {
  for (const Record& record : records) {
    absl::string_view key = record.key;
    if (absl::ConsumePrefix(&key, kCommitPrefix)) {
      store::v1::CommitRecord parsed;
      if (!parsed.ParseFromString(record.value)) {
        return absl::InvalidArgumentError(absl::StrCat("record \"", record.key, "\": not a readable CommitRecord"));
      }
      commits_.push_back({std::string(key), parsed.gang()});
      continue;
    }
    if (!absl::ConsumePrefix(&key, kGangPrefix)) {
      return absl::InvalidArgumentError(
          absl::StrCat("record \"", record.key, "\": unknown type; expected gang/ or commit/"));
    }
    store::v1::GangRecord parsed;
    if (!parsed.ParseFromString(record.value)) {
      return absl::InvalidArgumentError(absl::StrCat("record \"", record.key, "\": not a readable GangRecord"));
    }
    gangs_[key] = Kept{parsed.satisfied(), parsed.timed_out(),         parsed.held_ms(),
                       parsed.requeues(),  parsed.cycles_passed() + 1, !parsed.cycle_invalid()};
  }
  return absl::OkStatus();
}

std::optional<Kept> Restored::ClaimGang(const std::string& key) {
  const auto found = gangs_.find(key);
  if (found == gangs_.end()) return std::nullopt;
  const Kept kept = found->second;
  gangs_.erase(found);
  return kept;
}

void Restored::ForgetRest(Step* step) {
  for (const Commit& commit : std::exchange(commits_, {})) DeleteCommitRecord(commit.uid, step);
  for (const auto& [key, kept] : std::exchange(gangs_, {})) DeleteGangRecord(key, step);
}

}  // namespace muster
