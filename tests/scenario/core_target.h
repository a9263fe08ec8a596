// Plays scenarios on the decision core with a clock of its own. Thread-compatible. Commands beyond those of
// ScenarioLanguage:
//
//   bind POD NODE                                     a held bind call.
//   bound POD | bind-fails POD TEXT | bind-retry POD TEXT   the result of the binding; the last one is unclear.
//   preempt POD NODE=VICTIM,VICTIM...                 candidates that kube-scheduler proposes.
//   find POD [NODE...]                                the nodes for the pod, for callers that place pods themselves.
//   submit ID NAME [ns=NAMESPACE] min=N pods=K [ttl=DURATION] [group=NS/NAME,...] [queue=Q] [caller=IDENTITY]
//          [RES=QTY...]                               a whole gang.
//   queue NAME [parent=Q] [quota:RES=QTY] [limit:RES=QTY] [weight:RES=N] [priority=N] [max=N] [sort=fifo|fair]
//         [namespaces=NS,...] [labels=K=V] [identities=IDENTITY,...]   a queue.
//   access listed|open                                whether queues serve only the gangs that they list.
//   namespace NAME [K=V...] | remove-namespace NAME   announces a namespace with its labels.
//   remove-queue NAME | unknown-queues wait|default|reject      declares the whole set of queues again.
//   head hold | head backfill [STARVATION LIMIT]      what gangs behind a head may do.
//   queues                                            usage, pending requests and bounds of each queue.
//   members GANG                                      state, node and reason of each member.
//   why POD | why GANG                                why the pod waits, as explained to users; the suggestion for a
//                                                     gang that waits, the members that wait of a started one.
//   records | due                                     the durable records; the time to the next deadline.
//   stop | start | read                               the process ends; the next one loads the records and gets the
//                                                     facts, as they changed meanwhile; it has read everything.
//   restart                                           the three in one.
//   ask ID | confirm ID [PLAN] | abandon ID           (PLAN: by default the last plan that was shown)
//
// Planning rounds run after every command, as in the engine; invariants are checked after every command.
#ifndef MUSTER_TESTS_SCENARIO_CORE_TARGET_H_
#define MUSTER_TESTS_SCENARIO_CORE_TARGET_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "state/machine/machine.h"
#include "tests/scenario/language.h"

namespace muster {

class CoreTarget : public ScenarioTarget {
 public:
  CoreTarget();
  [[nodiscard]] int64_t NowMs() const override { return now_ms_; }
  std::string Announce(const Json& manifest) override;
  std::string Remove(const Json& manifest) override;
  std::string PreFilter(const std::string& uid) override;
  std::string Filter(const std::string& uid, const std::vector<std::string>& nodes) override;
  std::string Permit(const std::string& uid, const std::string& node) override;
  std::string PostFilter(const std::string& uid, const std::string& text) override;
  std::string Unreserve(const std::string& uid, const std::string& cause) override;
  std::string PostBind(const std::string& uid, const std::string& node) override;
  std::string HangUp(const std::string& uid) override;
  std::string Wait(absl::Duration duration) override;
  std::string ShowGang(const std::string& key, const std::string& shown_as, bool explain) override;
  std::string Usage() override;
  std::string Other(const Words& words) override;

 private:
  void Start();
  std::string Apply(const Command& command);
  std::string Settle();
  std::string Print(const Outcome& outcome);
  std::string Submit(const Words& words);
  std::string DeclareQueues(const Words& words);
  std::string ShowQueues();
  std::string ShowMembers(const std::string& gang);
  std::string ShowWhy(const std::string& name);
  HoldToken NewToken(const std::string& uid);

  std::unique_ptr<Machine> machine_;  // null: stopped
  QueueRules queues_;
  int64_t now_ms_ = 1'000'000;
  HoldToken next_token_ = 1;
  std::map<std::string, Record> records_;    // in the store, by name
  std::map<std::string, Json> facts_;        // the latest manifests, by kind, namespace and name
  std::map<HoldToken, std::string> tokens_;  // -> pod name
  std::map<std::string, HoldToken> last_token_;
  std::map<std::string, int64_t> last_plan_;  // by submission
  std::string asked_;                         // the submission of the current reply
};

}  // namespace muster

#endif  // MUSTER_TESTS_SCENARIO_CORE_TARGET_H_
