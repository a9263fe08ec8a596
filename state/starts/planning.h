// Rounds of planning: which gang is tried next, and whether there is room for all of it (SPEC P-2, P-9, P-10).
//
// A gang is placed with its group on one statement: all of it, or nothing is kept. What did not fit waits in the
// backlog for what could help it. Not thread-safe.
#ifndef MUSTER_STATE_STARTS_PLANNING_H_
#define MUSTER_STATE_STARTS_PLANNING_H_

#include <cstdint>
#include <string>

#include "state/gangs/sources.h"
#include "state/placement/class_index.h"
#include "state/starts/claims.h"

namespace muster {

struct PlanningRooms {
  Cluster* cluster;
  ClassIndex* index;
  Gangs* gangs;
  const Eligibility* eligibility;
  const Sources* sources;
  Backlog* backlog;
  Plans* plans;
  Nominations* nominations;
  Claims* claims;
};

class Planning {
 public:
  // `max_holds`: held binds there can be at once (K-4).
  Planning(const PlanningRooms& rooms, int32_t max_holds) : r_(rooms), max_holds_(max_holds) {}

  // A round would have something to look at.
  [[nodiscard]] bool Due() const;
  // Tries up to `max_gangs` gangs, in order.
  void Round(int32_t max_gangs, Step* step);
  // What the gang asks of the cluster, as text: equal for gangs that need the same.
  [[nodiscard]] std::string Needs(const Gang& gang) const;
  // The needs of the gang, or of all of its group. A group is like no other: what it waits for names its gangs.
  [[nodiscard]] std::string GroupNeeds(const Gang& gang) const;

 private:
  void Wake();
  [[nodiscard]] bool Try(const Gang& gang, Step* step);
  [[nodiscard]] Reason Place(const Group& gangs, Step* step);
  [[nodiscard]] Reason NoChance(const Group& gangs) const;
  [[nodiscard]] Reason LacksMinResources(const Group& gangs) const;
  [[nodiscard]] static ResourceList PlacedRequests(const Gang& gang);
  void Block(const Gang& gang, std::string needs, bool any_gain, bool holds, Reason reason);

  const PlanningRooms r_;
  const int32_t max_holds_;
  int64_t gain_position_ = 0;  // in the cluster's log
  int64_t next_plan_ = 1;
};

}  // namespace muster

#endif  // MUSTER_STATE_STARTS_PLANNING_H_
