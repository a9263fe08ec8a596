package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofJob labels a pod, and is what its neighbours go by.
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

// apartFrom makes a pod want none of the job's in its domain of the label.
func apartFrom(job, label string) podOption {
	return func(pod *corev1.Pod) {
		podAffinity(pod).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: meansJob(job), TopologyKey: label}}}
	}
}

// nearTo makes a pod want some of the job's in its domain of the label.
func nearTo(job, label string) podOption {
	return func(pod *corev1.Pod) {
		podAffinity(pod).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: meansJob(job), TopologyKey: label}}}
	}
}

// evenlyOver makes a pod want the domains of the label to differ by one of its job's pods at most.
func evenlyOver(job, label string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: label, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: meansJob(job)}}
	}
}

// Gangs of which the members want to be apart, near each other or spread evenly are planned so: kube-scheduler, which holds
// to it by itself, never refuses a place, and whoever does not fit says which rule keeps it off. SPEC P-3.
func TestNeighbours(t *testing.T) {
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
	}
}
