// Takes announced pods - new, changed and removed - into the components that own them, and into their gangs (SPEC D-7,
// D-9, P-3, Q-7). Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_POD_FACTS_H_
#define MUSTER_STATE_MACHINE_POD_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/base/components.h"
#include "state/model/facts.h"
#include "state/model/ids.h"
#include "state/model/pod_template.h"

namespace muster {

struct GangFactsRooms {
  Cluster* cluster;
  Gangs* gangs;
  RestoredRecords* restored;
  Backlog* backlog;
  Queues* queues;
  Activations* activations;
  PlanLifecycle* plan_lifecycle;
  Planning* planning;
};

// Gangs and their declarations: adds gangs by name, lets pods join and leave, and applies rules that changed (SPEC D-9,
// D-11, P-7).
class GangFacts {
 public:
  explicit GangFacts(const GangFactsRooms& rooms) : r_(rooms) {}

  // The gang of that name; added if it is not known.
  [[nodiscard]] const Gang& Intern(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                                   int64_t now_ms);
  // Recomputes the gang's rules after its declarations changed.
  void Redeclare(const Gang& gang);
  // The pod joins the gang that it names, if any.
  void Join(const Pod& pod, ApplyContext* ctx);
  // The pod leaves its gang, if any. Its declaration ends: the next declaring member decides the rules (D-9).
  void Leave(const Pod& pod);

 private:
  void OnRulesChanged(const Gang& gang);
  void RetainFutureClasses(const Gang& gang);

  const GangFactsRooms r_;
};

struct PodFactsRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  const Sources* sources;
  PodLifecycle* pod_lifecycle;
  PlanLifecycle* plan_lifecycle;
  BrokenPlans* broken_plans;
  Bindings* bindings;
  FactRecorder* recorder;
  GangFacts* gang_facts;
};

// Announced pods, and the namespaces whose labels their classes depend on.
class PodFacts {
 public:
  explicit PodFacts(const PodFactsRooms& rooms) : r_(rooms) {}

  // `submitted`: the pod is part of a submission. InvalidArgument: its UID or name is empty, or its UID belongs to
  // another pod.
  [[nodiscard]] absl::Status Put(PodDescription facts, bool submitted, ApplyContext* ctx);
  // No effect if the pod is not known.
  void Remove(const std::string& uid, ApplyContext* ctx);
  // The gang's owner was read, replaced or removed: announces again the members that it affects (D-7).
  void OnOwnerChanged(const Gang& gang, ApplyContext* ctx);
  // `labels` nullptr: the namespace was deleted.
  void PutNamespace(const std::string& name, const Labels* labels, ApplyContext* ctx);
  // All facts were read, and so all namespaces.
  void OnAllRead(ApplyContext* ctx);

 private:
  struct Change;  // the differences between two announcements of a pod
  void Add(PodDescription facts, bool submitted, ApplyContext* ctx);
  void Update(const Pod& pod, PodDescription facts, ApplyContext* ctx);
  void MoveToGang(const Pod& pod, const Change& change, ApplyContext* ctx);
  void JoinGang(const Pod& pod, ApplyContext* ctx);
  void OnUnschedulable(const Pod& pod, ApplyContext* ctx);
  void ScheduleNotification(const Gang& gang, int64_t now_ms);
  // --- classes ---
  // Returns kNoClass, with the cause in facts->invalid, if the pod cannot be planned.
  [[nodiscard]] ClassId AcquireClass(PodDescription* facts);
  // A template was announced. If its pod affinity selects by labels that no selector used before, pods that were alike
  // may differ: they get new classes.
  void Learn(const PodTemplate& shape, ApplyContext* ctx);
  void Reclassify(const std::string* name_space, ApplyContext* ctx);
  // Sets the pod's facts. `shape_changed`: its class may change; its charge, if any, follows it.
  void SetFacts(const Pod& pod, PodDescription facts, bool shape_changed, ApplyContext* ctx);
  // The facts give the pod another label identity. Only labels that some selector names are part of it.
  [[nodiscard]] bool ChangesIdentity(const Pod& pod, const PodDescription& facts) const;

  const PodFactsRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_POD_FACTS_H_
