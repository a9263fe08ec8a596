// The annotation and label keys of every dialect that Muster reads (SPEC section 2), in one place.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_KEYS_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_KEYS_H_

namespace muster::keys {

// D-1, Koordinator. Annotations on pods; total-number, mode, groups and match-policy also on PodGroups.
inline constexpr char kKoordName[] = "gang.scheduling.koordinator.sh/name";
inline constexpr char kKoordMinAvailable[] = "gang.scheduling.koordinator.sh/min-available";
inline constexpr char kKoordWaitingTime[] = "gang.scheduling.koordinator.sh/waiting-time";
inline constexpr char kKoordTotalNumber[] = "gang.scheduling.koordinator.sh/total-number";
inline constexpr char kKoordMode[] = "gang.scheduling.koordinator.sh/mode";
inline constexpr char kKoordGroups[] = "gang.scheduling.koordinator.sh/groups";
inline constexpr char kKoordGangGroups[] = "gang.scheduling.koordinator.sh/gang-groups";
inline constexpr char kKoordMatchPolicy[] = "gang.scheduling.koordinator.sh/match-policy";
inline constexpr char kKoordTimeout[] = "gang.scheduling.koordinator.sh/timeout";

// D-2: the name and the minimum, as labels or annotations on pods; kSigsPodGroup as an annotation is an alias of the
// name.
inline constexpr char kSigsMinAvailable[] = "pod-group.scheduling.sigs.k8s.io/min-available";

// D-3. Labels on pods.
inline constexpr char kSigsPodGroup[] = "pod-group.scheduling.sigs.k8s.io";
inline constexpr char kSigsPodGroupName[] = "pod-group.scheduling.sigs.k8s.io/name";
inline constexpr char kXPodGroup[] = "scheduling.x-k8s.io/pod-group";
// D-2, D-3: equivalents of Koordinator's keys, on pods and PodGroups.
inline constexpr char kSigsGroups[] = "pod-group.scheduling.sigs.k8s.io/groups";
inline constexpr char kSigsMatchPolicy[] = "pod-group.scheduling.sigs.k8s.io/match-policy";

// D-13, ours. Annotations or labels on pods and PodGroups.
inline constexpr char kQueue[] = "muster.dev/queue";
inline constexpr char kOnTimeout[] = "muster.dev/on-timeout";
inline constexpr char kOnMemberFailure[] = "muster.dev/on-member-failure";
inline constexpr char kStaleGrace[] = "muster.dev/stale-grace";
inline constexpr char kPreemptible[] = "muster.dev/preemptible";
inline constexpr char kDuration[] = "muster.dev/duration";
// P-4, P-5: the gang's topology, its subgroups as KAI's list in JSON, and, on pods, the pod's subgroup.
inline constexpr char kRequiredTopology[] = "muster.dev/required-topology";
inline constexpr char kPreferredTopology[] = "muster.dev/preferred-topology";
inline constexpr char kSpreadTopology[] = "muster.dev/spread-topology";
inline constexpr char kSubgroups[] = "muster.dev/subgroups";
inline constexpr char kSubgroup[] = "muster.dev/subgroup";

// P-4, Kueue's: annotations of pod templates.
inline constexpr char kKueueRequiredTopology[] = "kueue.x-k8s.io/podset-required-topology";
inline constexpr char kKueuePreferredTopology[] = "kueue.x-k8s.io/podset-preferred-topology";
inline constexpr char kKueueSlices[] = "kueue.x-k8s.io/podset-slice-";  // prefix of keys

// D-4, KAI: the annotation and the label that put a pod into a gang and subgroup; its queue; its topology.
inline constexpr char kKaiPodGroup[] = "pod-group-name";
inline constexpr char kKaiSubgroup[] = "kai.scheduler/subgroup-name";
inline constexpr char kKaiQueue[] = "kai.scheduler/queue";
inline constexpr char kKaiRequiredTopology[] = "kai.scheduler/topology-required-placement";
inline constexpr char kKaiPreferredTopology[] = "kai.scheduler/topology-preferred-placement";

// YuniKorn's queue: a label, or an annotation.
inline constexpr char kYunikornQueue[] = "yunikorn.apache.org/queue";

// D-15, Volcano: the annotation that puts a pod into a gang, and its task.
inline constexpr char kVolcanoGroup[] = "scheduling.k8s.io/group-name";
inline constexpr char kVolcanoTask[] = "volcano.sh/task-spec";

// The label of a gang's pods that its disruption budget selects; the webhook sets it (GangLabel).
inline constexpr char kGangLabel[] = "muster.dev/gang-name";

// K-7, K-8.
inline constexpr char kGate[] = "muster.dev/gang";
// The resources by which pods opt in (managedResources). kube-scheduler refuses one name in two extender entries.
// Therefore the decisions and the barrier each have their own, and a pod requests both.
inline constexpr char kOptInDecide[] = "muster.dev/gang";
inline constexpr char kOptInBind[] = "muster.dev/bind";
inline constexpr char kActivated[] = "muster.dev/called";

}  // namespace muster::keys

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_KEYS_H_
