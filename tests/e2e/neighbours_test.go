package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ofJob sets the label that pod affinity terms select.
func ofJob(job string) podOption {
	return func(pod *corev1.Pod) { pod.Labels["job"] = job }
}

func meansJob(job string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"job": job}}
}

func podAffinity(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

// apartFrom adds an anti-affinity to the job's pods, by the domains of the label.
func apartFrom(job, label string) podOption {
	return func(pod *corev1.Pod) {
		podAffinity(pod).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: meansJob(job), TopologyKey: label}}}
	}
}

// nearTo adds an affinity to the job's pods, by the domains of the label.
func nearTo(job, label string) podOption {
	return func(pod *corev1.Pod) {
		podAffinity(pod).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: meansJob(job), TopologyKey: label}}}
	}
}

// evenlyOver adds a spread of the job's pods over the domains of the label, with a skew of at most one.
func evenlyOver(job, label string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: label, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: meansJob(job)}}
	}
}

// apartFromNamespacesOf adds an anti-affinity, by node, to the job's pods in the team's namespaces.
func apartFromNamespacesOf(team, job string) podOption {
	return func(pod *corev1.Pod) {
		apartFrom(job, "kubernetes.io/hostname")(pod)
		pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
}

// rather makes a pod prefer a rack and, with less weight, nodes without pods of its job.
func rather(rack, job string) podOption {
	return func(pod *corev1.Pod) {
		podAffinity(pod).NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 50, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{rack}}}}}}}
		podAffinity(pod).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 20, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: meansJob(job), TopologyKey: "kubernetes.io/hostname"}}}}
	}
}

// TestPodAffinity: gangs whose members have affinity, anti-affinity or a spread are planned by these rules:
// kube-scheduler, which applies them too, never refuses a slot, and a gang that does not fit names the rule. SPEC P-3.
func TestPodAffinity(t *testing.T) {
	shared.install(t, guard, "")
	gatedAndNot(t, "apart", func(w *world, gated bool) {
		w.nodes(3, "8")
		w.podsStart("train", 3, "1", gateIf(gated, gang("train", 3), ofJob("train"), apartFrom("train", "kubernetes.io/hostname"))...)
		nodes := map[string]bool{}
		for _, pod := range w.list("train") {
			nodes[pod.Spec.NodeName] = true
		}
		if len(nodes) != 3 {
			w.t.Errorf("3 members that want to be apart are on %v", nodes)
		}
		w.pods("wide", 4, "1", gateIf(gated, gang("wide", 4), ofJob("wide"), apartFrom("wide", "kubernetes.io/hostname"))...)
		w.gangSays("wide", "room for 3 of 4 members; 3 nodes: pod anti-affinity (kubernetes.io/hostname)", 15*time.Second)
		w.staysBound("wide", 0, time.Second)
		w.nodesFrom(3, 1, "8")
		w.waitBound("wide", 4, 20*time.Second)
	})
	gatedAndNot(t, "near", func(w *world, gated bool) {
		w.rack("a", 0, 1, "2")
		w.rack("b", 1, 2, "2")
		w.podsStart("train", 3, "1", gateIf(gated, gang("train", 3), ofJob("train"), nearTo("train", "rack"))...)
		w.mustBeIn("train", map[string]int{"b": 3})
	})
	gatedAndNot(t, "even", func(w *world, gated bool) {
		w.rack("a", 0, 1, "8")
		w.rack("b", 1, 1, "3")
		w.podsStart("train", 6, "1", gateIf(gated, gang("train", 6), ofJob("train"), evenlyOver("train", "rack"))...)
		w.mustBeIn("train", map[string]int{"a": 3, "b": 3})
	})
	gatedAndNot(t, "even, where they may go", func(w *world, gated bool) {
		for i, rack := range []string{"a", "b"} {
			w.nodesWith(i, 1, "8", map[string]string{"rack": rack, "pool": "new"})
		}
		w.rack("a", 2, 1, "8")
		w.rack("c", 3, 1, "8")
		w.must(w.patchNode("node-0003", `{"spec":{"taints":[{"key":"kept","effect":"NoSchedule"}]}}`))
		w.pods("old", 3, "1", ofJob("train"), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-0002" })
		// Over the nodes of their pool.
		w.pods("train", 4, "1", gateIf(gated, gang("train", 4), ofJob("train"), evenlyOver("train", "rack"), func(pod *corev1.Pod) {
			pod.Spec.NodeSelector = map[string]string{"pool": "new"}
		})...)
		w.waitBound("train", 4, 20*time.Second)
		w.mustBeIn("train", map[string]int{"a": 2, "b": 2})
		// Over the racks without the taint.
		honor := corev1.NodeInclusionPolicyHonor
		w.pods("other", 4, "1", gateIf(gated, gang("other", 4), ofJob("other"), evenlyOver("other", "rack"), func(pod *corev1.Pod) {
			pod.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
		})...)
		w.waitBound("other", 4, 20*time.Second)
		w.mustBeIn("other", map[string]int{"a": 2, "b": 2})
	})
	gatedAndNot(t, "apart from namespaces", func(w *world, gated bool) {
		w.nodes(2, "8")
		noisy := &world{cluster: shared, t: w.t, namespace: w.namespace + "-noisy"}
		w.must(w.createNamespace(noisy.namespace, map[string]string{"team": "x"}))
		noisy.pod("loud", "1", ofJob("loud"), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-0000" })
		w.podsStart("train", 2, "3", gateIf(gated, gang("train", 2), apartFromNamespacesOf("x", "loud"))...)
		for _, pod := range w.list("train") {
			if pod.Spec.NodeName != "node-0001" {
				w.t.Errorf("%s is on %s, beside a pod that it wants to be apart from", pod.Name, pod.Spec.NodeName)
			}
		}
		w.pods("more", 2, "3", gateIf(gated, gang("more", 2), apartFromNamespacesOf("x", "loud"))...)
		w.gangSays("more", "pod anti-affinity (kubernetes.io/hostname)", 15*time.Second)
		if !gated {
			return // after a refusal by its own filter kube-scheduler retries at changes of pods and nodes, not of namespaces
		}
		// The namespace belongs to another team now: kube-scheduler and Muster use the current labels.
		_, err := w.client.CoreV1().Namespaces().Patch(context.Background(), noisy.namespace, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"team":"y"}}}`), metav1.PatchOptions{})
		w.must(err)
		w.waitBound("more", 2, 20*time.Second)
	})
	gatedAndNot(t, "rather", func(w *world, gated bool) {
		w.rack("a", 0, 1, "8")
		w.rack("b", 1, 2, "2")
		w.rack("c", 3, 1, "2")
		w.must(w.patchNode("node-0000", `{"spec":{"taints":[{"key":"old","effect":"PreferNoSchedule"}]}}`))
		w.podsStart("train", 2, "1", gateIf(gated, gang("train", 2), ofJob("train"), rather("b", "train"))...)
		w.mustBeIn("train", map[string]int{"b": 2})
		if first, second := w.list("train")[0].Spec.NodeName, w.list("train")[1].Spec.NodeName; first == second {
			w.t.Errorf("2 members that would rather be apart are both on %s", first)
		}
		// Four untainted nodes are free, two of them in the preferred rack; the last pod goes to the tainted node.
		w.podsStart("more", 5, "1", gateIf(gated, gang("more", 5), ofJob("more"), rather("b", "more"))...)
		w.mustBeIn("more", map[string]int{"a": 1, "b": 2, "c": 2})
	})
}
