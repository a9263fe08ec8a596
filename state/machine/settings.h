// The settings of the decision core, constant for the lifetime of a machine; `queues` are the initial ones.
#ifndef MUSTER_STATE_MACHINE_SETTINGS_H_
#define MUSTER_STATE_MACHINE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "state/model/gang.h"
#include "state/model/queue.h"

namespace muster {

struct MachineSettings {
  std::vector<std::string> fact_sources;  // all are read before anything is planned (K-13); see Sources
  bool persist_facts = false;    // record announced facts, because no other system stores them (gRPC-only use, S-2)
  bool persist_created = false;  // with Kubernetes: record only the gangs that were created over gRPC
  // How long pods are placed on nodes that were announced only to an earlier process, if an announcer with numbered
  // updates announced them; 0: without limit.
  int64_t stale_after_ms = 600'000;
  GangDefaults gang;
  std::vector<std::string> scheduler_names = {"default-scheduler"};
  int32_t max_holds = 5000;             // K-4: the largest number of held binds at a time
  int64_t hold_limit_ms = 20'000;       // K-5: a hold ends this long after the last arrival in its gang
  int64_t answer_limit_ms = 300'000;    // no bind this long after the call arrived (below httpTimeout)
  int64_t plan_idle_ms = 30'000;        // P-11
  int64_t future_member_ms = 600'000;   // capacity is reserved for members that do not exist at most this long
  int64_t repair_ms = 30'000;           // G-13
  int64_t learned_refusal_ms = 60'000;  // K-6
  int32_t percentage_of_nodes = 0;      // kube-scheduler's percentageOfNodesToScore; 0: its adaptive default (K-6)
  bool cross_namespace_groups = true;   // D-10: a gang group may span namespaces
  bool one_priority = false;            // D-11: all pods of a gang must have one priority, in every dialect
  bool nominate = false;                // K-7: set nominated node names as a hint when gates are removed
  int64_t bind_within_ms = 300'000;     // the time in which a caller of the verbs must bind a permitted pod
  int64_t submission_ttl_ms = 60'000;   // the TTL of a submitted gang that names none
  int32_t planner_tries = 64;           // P-6: the orders that the planner tries before it gives a gang up for now
  std::vector<std::string> topology_levels;  // P-4: node labels, the widest domain first, each within the previous one
  QueueRules queues;                         // from the configuration
  bool persist_queues = false;               // queues are declared at run time and recorded
  int32_t max_submissions = 10'000;          // unfinished submissions (waiting or planned); more are refused
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_SETTINGS_H_
