package e2e

import (
	"context"
	"fmt"
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

// taintSoftly taints the first `count` nodes with PreferNoSchedule.
func (w *world) taintSoftly(count int) {
	w.t.Helper()
	for i := range count {
		_, err := w.client.CoreV1().Nodes().Patch(context.Background(), fmt.Sprintf("node-%04d", i), types.MergePatchType,
			[]byte(`{"spec":{"taints":[{"key":"old","effect":"PreferNoSchedule"}]}}`), metav1.PatchOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestPodAffinity: gangs whose members have affinity, anti-affinity or a spread are planned by these rules:
// kube-scheduler, which applies them too, never refuses a slot, and a gang that does not fit names the rule. SPEC P-3.
func TestPodAffinity(t *testing.T) {
	shared.install(t, guard, "")
	for _, gated := range []bool{false, true} {
		name := "ungated"
		var options []podOption
		if gated {
			name = "gated"
			options = append(options, withGate)
		}
		with := func(more ...podOption) []podOption { return append(append([]podOption{}, options...), more...) }
		t.Run("apart, "+name, func(t *testing.T) {
			w := newWorld(t, shared)
			w.nodesWith(0, 3, "8", nil)
			w.pods("train", 3, "1", with(gang("train", 3), ofJob("train"), apartFrom("train", "kubernetes.io/hostname"))...)
			w.waitBound("train", 3, 20*time.Second)
			nodes := map[string]bool{}
			for _, pod := range w.list("train") {
				nodes[pod.Spec.NodeName] = true
			}
			if len(nodes) != 3 {
				t.Errorf("3 members that want to be apart are on %v", nodes)
			}
			w.pods("wide", 4, "1", with(gang("wide", 4), ofJob("wide"), apartFrom("wide", "kubernetes.io/hostname"))...)
			w.everyMemberSays("wide", "room for 3 of 4 members; 3 nodes: pod anti-affinity (kubernetes.io/hostname)", 15*time.Second)
			w.staysBound("wide", 0, time.Second)
			w.nodesWith(3, 1, "8", nil)
			w.waitBound("wide", 4, 20*time.Second)
		})
		t.Run("near, "+name, func(t *testing.T) {
			w := newWorld(t, shared)
			w.rack("a", 0, 1, "2")
			w.rack("b", 1, 2, "2")
			w.pods("train", 3, "1", with(gang("train", 3), ofJob("train"), nearTo("train", "rack"))...)
			w.waitBound("train", 3, 20*time.Second)
			w.mustBeIn("train", "b", 3)
		})
		t.Run("even, "+name, func(t *testing.T) {
			w := newWorld(t, shared)
			w.rack("a", 0, 1, "8")
			w.rack("b", 1, 1, "3")
			w.pods("train", 6, "1", with(gang("train", 6), ofJob("train"), evenlyOver("train", "rack"))...)
			w.waitBound("train", 6, 20*time.Second)
			if racks := w.racks("train"); racks["a"] != 3 || racks["b"] != 3 {
				t.Errorf("6 members that want to be spread evenly are in racks %v", racks)
			}
		})
		t.Run("even, where they may go, "+name, func(t *testing.T) {
			w := newWorld(t, shared)
			for i, rack := range []string{"a", "b"} {
				w.nodesWith(i, 1, "8", map[string]string{"rack": rack, "pool": "new"})
			}
			w.rack("a", 2, 1, "8")
			w.rack("c", 3, 1, "8")
			w.must(w.patchNode("node-0003", `{"spec":{"taints":[{"key":"kept","effect":"NoSchedule"}]}}`))
			w.pods("old", 3, "1", ofJob("train"), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-0002" })
			honor := corev1.NodeInclusionPolicyHonor
			w.pods("train", 4, "1", with(gang("train", 4), ofJob("train"), evenlyOver("train", "rack"), func(pod *corev1.Pod) {
				pod.Spec.NodeSelector = map[string]string{"pool": "new"}
			})...)
			w.waitBound("train", 4, 20*time.Second)
			if racks := w.racks("train"); racks["a"] != 2 || racks["b"] != 2 {
				t.Errorf("4 members that want to be spread evenly over the nodes of their pool are in racks %v", racks)
			}
			w.pods("other", 4, "1", with(gang("other", 4), ofJob("other"), evenlyOver("other", "rack"), func(pod *corev1.Pod) {
				pod.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
			})...)
			w.waitBound("other", 4, 20*time.Second)
			if racks := w.racks("other"); racks["a"] != 2 || racks["b"] != 2 {
				t.Errorf("4 members that want to be spread evenly over racks without the taint are in racks %v", racks)
			}
		})
		t.Run("apart from namespaces, "+name, func(t *testing.T) {
			w := newWorld(t, shared)
			w.nodesWith(0, 2, "8", nil)
			noisy := &world{cluster: shared, t: t, namespace: w.namespace + "-noisy"}
			of := func(team string) *corev1.Namespace {
				return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: noisy.namespace, Labels: map[string]string{"team": team}}}
			}
			_, err := w.client.CoreV1().Namespaces().Create(context.Background(), of("x"), metav1.CreateOptions{})
			w.must(err)
			noisy.pod("loud", "1", ofJob("loud"), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-0000" })
			w.pods("train", 2, "3", with(gang("train", 2), apartFromNamespacesOf("x", "loud"))...)
			w.waitBound("train", 2, 20*time.Second)
			for _, pod := range w.list("train") {
				if pod.Spec.NodeName != "node-0001" {
					t.Errorf("%s is on %s, beside whom it wants to be apart from", pod.Name, pod.Spec.NodeName)
				}
			}
			w.pods("more", 2, "3", with(gang("more", 2), apartFromNamespacesOf("x", "loud"))...)
			w.everyMemberSays("more", "pod anti-affinity (kubernetes.io/hostname)", 15*time.Second)
			if !gated {
				return // after a refusal by its own filter kube-scheduler retries at changes of pods and nodes, not of namespaces
			}
			// The namespace belongs to another team now: kube-scheduler and Muster use the current labels.
			_, err = w.client.CoreV1().Namespaces().Update(context.Background(), of("y"), metav1.UpdateOptions{})
			w.must(err)
			w.waitBound("more", 2, 20*time.Second)
		})
		t.Run("rather, "+name, func(t *testing.T) {
			w := newWorld(t, shared)
			w.rack("a", 0, 1, "8")
			w.rack("b", 1, 2, "2")
			w.rack("c", 3, 1, "2")
			w.taintSoftly(1)
			w.pods("train", 2, "1", with(gang("train", 2), ofJob("train"), rather("b", "train"))...)
			w.waitBound("train", 2, 20*time.Second)
			w.mustBeIn("train", "b", 2)
			if first, second := w.list("train")[0].Spec.NodeName, w.list("train")[1].Spec.NodeName; first == second {
				t.Errorf("2 members that would rather be apart are both on %s", first)
			}
			// Four untainted nodes are free, two of them in the preferred rack; the last pod goes to the tainted node.
			w.pods("more", 5, "1", with(gang("more", 5), ofJob("more"), rather("b", "more"))...)
			w.waitBound("more", 5, 20*time.Second)
			if racks := w.racks("more"); racks["b"] != 2 || racks["c"] != 2 || racks["a"] != 1 {
				t.Errorf("5 members of which 2 fit where they would rather be are in racks %v", racks)
			}
		})
	}
}
