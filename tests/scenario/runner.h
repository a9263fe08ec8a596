// Runs a scenario: commands to the machine in a small language, everything that comes out as text.
//
//   node NAME RES=QTY... [label:K=V] [taint:K=V:Effect] [cordoned]   announce a node (pods=110 unless given)
//   remove-node NAME
//   podgroup NAME [ns=NAMESPACE] [x] min=N [timeout=S] [res:NAME=QTY] [@KEY=VALUE]  a PodGroup in namespace default (x:
//   x-k8s group) pod NAME [ns=NAMESPACE] [gang=G] [RES=QTY...] [priority=N] [node=N] [phase=P] [gate] [other-gate]
//   [deleting] [created=S]
//            [@KEY=VALUE: annotation gang.scheduling.koordinator.sh/KEY] [ann:KEY=VALUE] [label:KEY=VALUE] [stuck=TEXT]
//            [sel:K=V: node selector] [in:K=V: required node affinity] [tolerate:K=V:Effect]
//   remove-pod NAME
//   prefilter POD | filter POD [NODE...] | permit POD NODE | bind POD NODE | bound POD | bind-fails POD TEXT
//   postfilter POD TEXT | unreserve POD timeout|rejected|bind-fail | postbind POD NODE
//   preempt POD NODE=VICTIM,VICTIM...   candidates that kube-scheduler proposes
//   hang-up POD                     the caller of its bind or permit goes away
//   wait DURATION                   lets time pass, firing timers when due
//   gang NAME | explain NAME        shows a gang (NAME or NAMESPACE/NAME)
//   usage                           shows every node's charges
//
// Planning rounds run after every command, as the engine does.
#ifndef MUSTER_TESTS_SCENARIO_RUNNER_H_
#define MUSTER_TESTS_SCENARIO_RUNNER_H_

#include <map>
#include <string>
#include <vector>

#include "k8s-extender/dialects/json.h"
#include "state/machine/machine.h"

namespace muster {

class ScenarioRunner {
 public:
  ScenarioRunner();
  // Applies one line and returns what came out, one line per item.
  std::string Run(const std::string& line);

 private:
  using Words = std::vector<std::string>;
  std::string Apply(const Command& command);
  std::string Settle();
  std::string Print(const Outcome& outcome);
  std::string Pod(const Words& words);
  std::string Node(const Words& words);
  std::string PodGroup(const Words& words);
  std::string Wait(const Words& words);
  std::string ShowGang(const std::string& name, bool explain);
  std::string Usage();
  std::string UidOf(const std::string& name) const { return "uid-" + name; }

  Machine machine_;
  int64_t now_ms_ = 1'000'000;
  HoldToken next_token_ = 1;
  std::map<HoldToken, std::string> tokens_;  // -> pod name
  std::map<std::string, HoldToken> last_token_;
  std::map<std::string, Json> pods_;  // as announced last
};

}  // namespace muster

#endif  // MUSTER_TESTS_SCENARIO_RUNNER_H_
