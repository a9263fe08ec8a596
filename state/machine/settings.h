// What an operator may set about decisions.
#ifndef MUSTER_STATE_MACHINE_SETTINGS_H_
#define MUSTER_STATE_MACHINE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/model/gang.h"
#include "state/model/queue.h"

namespace muster {

struct MachineSettings {
  std::vector<std::string> fact_sources;  // must be read before anything is planned (K-13); see Sources
  bool keeps_facts = false;          // what is announced is written down, as nobody else keeps it (gRPC-only use, S-2)
  bool keeps_created = false;        // with Kubernetes: gangs created over gRPC are written down, and nothing else
  int64_t stale_after_ms = 600'000;  // how long nodes are placed on that only an earlier process was told of, once
                                     // somebody announced them in numbered steps; 0: for ever
  GangDefaults gang;
  std::vector<std::string> scheduler_names = {"default-scheduler"};
  int32_t max_holds = 5000;                  // K-4: held binds there can be at once
  int64_t hold_limit_ms = 20'000;            // K-5: the longest a bind is held
  int64_t answer_limit_ms = 45'000;          // nothing is bound this long after the call came in (below httpTimeout)
  int64_t plan_idle_ms = 30'000;             // P-11
  int64_t repair_ms = 30'000;                // G-13
  int64_t learned_refusal_ms = 60'000;       // K-6
  int32_t percentage_of_nodes = 0;           // kube-scheduler's percentageOfNodesToScore; 0: its adaptive default (K-6)
  bool cross_namespace_groups = true;        // D-10's switch
  bool one_priority = false;                 // D-11's switch for every dialect
  bool nominate = false;                     // K-7: set nominated node names as a hint when gates are removed
  int64_t bind_within_ms = 300'000;          // a pod permitted to a caller of the verbs is bound within this time
  int64_t submission_ttl_ms = 60'000;        // of a submitted gang that names none
  int32_t planner_tries = 64;                // P-6: how many orders the planner tries before it gives a gang up for now
  std::vector<std::string> topology_levels;  // P-4: labels of nodes, each within the one before it, the widest first
  QueueRules queues;                         // as the configuration declares them
  bool keeps_queues = false;                 // they are declared while we run, and written down
  int32_t max_submissions = 10'000;          // submitted gangs that wait or are planned; more are refused
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_SETTINGS_H_
