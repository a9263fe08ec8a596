// The language of scenarios: parses a line, calls a target, and returns the output as text. Thread-compatible.
//
//   `node NAME RES=QTY... [label:K=V] [taint:K=V:Effect] [cordoned]`   announces a node (pods=110 unless given).
//   `remove-node NAME`
//   `podgroup NAME [ns=NAMESPACE] [x|kai] min=N [timeout=S] [res:NAME=QTY] [@KEY=VALUE]  a PodGroup (x: x-k8s group)
//            [required=LABEL] [preferred=LABEL] [spread=LABEL]
//            [subgroup=NAME[:min=N][:groups=N][:parent=NAME][:required=LABEL][:preferred=LABEL]
//             [:asks=RES/QTY][:sel=K/V]]`
//   `pod NAME [ns=NAMESPACE] [gang=G [min=N [queue=Q]: first its PodGroup, unless an earlier pod brought it]] [kai=G]
//            [subgroup=S] [RES=QTY...] [priority=N] [node=N] [phase=P] [gate] [other-gate] [deleting] [created=S]
//            [@KEY=VALUE: annotation gang.scheduling.koordinator.sh/KEY]
//            [ann:KEY=VALUE] [label:KEY=VALUE]
//            [stuck=TEXT: kube-scheduler's message, "_" for a space] [port=N: host port] [sel:K=V: node selector]
//            [in:K=V: required node affinity] [tolerate:K=V:Effect] [near=KEY[=VALUE][@LABEL]: required pod affinity]
//            [apart=...: anti-affinity] [even=KEY=VALUE@LABEL[:SKEW]: hard topology spread] [rather=K=V:WEIGHT:
//            preferred node affinity] [rather-near=KEY=VALUE[@LABEL]:WEIGHT] [rather-apart=...: preferred pod
//            (anti-)affinity]`
//   `remove-pod NAME`
//   `prefilter POD | filter POD [NODE...] | permit POD NODE`
//   `schedule POD NODE`             `filter POD`, then `bind POD NODE`; of a range, first all filter calls.
//   `run POD NODE`                  the same, and then `bound POD`.
//   `postfilter POD TEXT | unreserve POD timeout|rejected|bind-fail | postbind POD NODE`
//   `hang-up POD`                   the caller of its bind or permit goes away.
//   `wait DURATION`                 advances the time.
//   `gang NAME... | explain NAME...`   shows gangs (NAME or NAMESPACE/NAME).
//   `usage [NODE]`                  shows every node's charges; reservations include what other pods still use.
//
// A name with a range, "a-1..3", stands for the same command for a-1, a-2 and a-3.
//
// Every other word is passed to the target: CoreTarget has the commands that only the core supports.
#ifndef MUSTER_TESTS_SCENARIO_LANGUAGE_H_
#define MUSTER_TESTS_SCENARIO_LANGUAGE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "support/json.h"

namespace muster {

using Words = std::vector<std::string>;

// The system under test. Every call returns its output, one line per item.
class ScenarioTarget {
 public:
  virtual ~ScenarioTarget() = default;
  [[nodiscard]] virtual int64_t NowMs() const = 0;
  // Manifests in the format of Kubernetes: a Node, a Pod, or a PodGroup with its apiVersion.
  virtual std::string Announce(const Json& manifest) = 0;
  virtual std::string Remove(const Json& manifest) = 0;
  virtual std::string PreFilter(const std::string& uid) = 0;
  virtual std::string Filter(const std::string& uid, const std::vector<std::string>& nodes) = 0;
  virtual std::string Permit(const std::string& uid, const std::string& node) = 0;
  virtual std::string PostFilter(const std::string& uid, const std::string& text) = 0;
  virtual std::string Unreserve(const std::string& uid, const std::string& cause) = 0;
  virtual std::string PostBind(const std::string& uid, const std::string& node) = 0;
  virtual std::string HangUp(const std::string& uid) = 0;
  virtual std::string Wait(absl::Duration duration) = 0;
  virtual std::string ShowGang(const std::string& key, const std::string& shown_as, bool explain) = 0;
  virtual std::string Usage() = 0;
  virtual std::string Other(const Words& words) = 0;
};

class ScenarioLanguage {
 public:
  explicit ScenarioLanguage(ScenarioTarget* target) : target_(target) {}
  std::string Run(const std::string& line);

 private:
  std::string Node(const Words& words);
  // Announces the PodGroup that a pod brings, once for each gang.
  std::string DeclareGang(const Words& pod);
  std::string Pod(const Words& words);
  std::string PodGroup(const Words& words);

  ScenarioTarget* const target_;
  std::map<std::string, Json> pods_;       // the latest manifests
  std::map<std::string, Words> declared_;  // by gang, the words of its PodGroup
};

// The output of a command as the files have it: consecutive lines that differ only in a number that grows by one, in a
// name "a-N", are one line with "a-1..3", and a short output without indented lines is one line with " | " between
// them.
[[nodiscard]] std::string FoldLines(const std::string& text);
// The lines that a folded line stands for.
[[nodiscard]] std::string UnfoldLine(const std::string& line);

// The commands of a line: short ones share a line, with "; " between them.
[[nodiscard]] std::vector<std::string> CommandsOf(const std::string& line);

// A block of a scenario file: commands and their expected output.
struct ScenarioBlock {
  std::vector<std::string> commands;
  std::string expected;
};
[[nodiscard]] std::vector<ScenarioBlock> ReadScenario(const std::string& path);
// Paths of the files of a folder, sorted by name.
[[nodiscard]] std::vector<std::string> ScenarioFiles(const std::string& folder);

// --- Formats that every target shares ---
[[nodiscard]] inline std::string UidOf(const std::string& name) { return "uid-" + name; }
[[nodiscard]] std::string NameOf(const std::string& uid);
[[nodiscard]] std::string WriteWhy(absl::string_view code, absl::string_view text);
[[nodiscard]] std::string WriteLines(const std::vector<std::string>& lines);
[[nodiscard]] std::string WriteWait(int64_t left_ms, absl::string_view code, absl::string_view text,
                                    const std::vector<std::string>& next_uids);

struct ShownGang {
  std::string name;
  std::string phase;
  int children = 0;
  int waiting = 0;
  int bound = 0;
  std::string code;
  std::string text;
  int min_member = 0;
  int total_number = 0;
  int64_t wait_time_ms = 0;
  std::string mode;
  std::string match_policy;
  std::string on_timeout;
  std::vector<std::string> warnings;
};
[[nodiscard]] std::string WriteGang(const ShownGang& gang, bool explain);

}  // namespace muster

#endif  // MUSTER_TESTS_SCENARIO_LANGUAGE_H_
