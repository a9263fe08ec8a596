// Forward declarations of the components of a machine (state/machine/machine.h), and of what they exchange: for headers
// that only point to them.
#ifndef MUSTER_STATE_BASE_COMPONENTS_H_
#define MUSTER_STATE_BASE_COMPONENTS_H_

namespace muster {

class Cluster;
class ClassIndex;
class Topology;  // NOLINT(bugprone-forward-declaration-namespace): a record has this name too
class Ledger;
class Gangs;
class QueueTree;
class Eligibility;
class Sources;
class RefusedFacts;
class Backlog;
class RestoredRecords;
class Deadlines;
class Plans;
class Domains;
class Queues;
class Activations;
class Nominations;
class PodLifecycle;
class FutureReservations;
class Backfill;
class WaitClock;
class Submissions;
class FactRecorder;
class WaitReasons;
class PlanLifecycle;
class BrokenPlans;
class Repair;
class Bindings;
class Placer;
class Waker;
class FuturePlacer;
class PlanMaker;
class Planning;
class GangFacts;
class PodFacts;  // NOLINT(bugprone-forward-declaration-namespace): a message has this name too

class ApplyContext;
struct Claim;
struct Gang;
struct Pod;
class Statement;

}  // namespace muster

#endif  // MUSTER_STATE_BASE_COMPONENTS_H_
