// The frontend for kube-scheduler (extender): filter with the nodes that it offers, bind with a call that is held until
// the quorum, and preempt (SPEC K-2 to K-6, K-9). Not thread-safe.
#ifndef MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
#define MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_

#include "state/binding/bindings.h"
#include "state/frontends/member_filter.h"

namespace muster {

struct ExtenderRooms {
  const Cluster* cluster;
  const Gangs* gangs;
  const Sources* sources;
  const Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  Bindings* bindings;
  CapacityGuard* guard;
  MemberFilter* members;
};

class ExtenderFrontend {
 public:
  explicit ExtenderFrontend(const ExtenderRooms& rooms) : r_(rooms) {}

  [[nodiscard]] FilterReply OnFilter(const Filter& question, ApplyContext* ctx);
  // The reply is the end of the hold: ApplyContext::EndHold with the call's token, now or in a later command.
  void OnBind(const Bind& call, ApplyContext* ctx);
  [[nodiscard]] PreemptReply OnPreempt(const Preempt& question, ApplyContext* ctx);

 private:
  [[nodiscard]] Reason BindRefusal(const Pod& pod, const Bind& call) const;

  const ExtenderRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_FRONTENDS_EXTENDER_FRONTEND_H_
