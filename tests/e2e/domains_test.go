package e2e

import (
	"context"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var kaiPodGroups = schema.GroupVersionResource{Group: "scheduling.run.ai", Version: "v2alpha2", Resource: "podgroups"}

// rack creates `count` nodes, numbered from `first`, in one rack.
func (w *world) rack(name string, first, count int, cpu string) {
	w.t.Helper()
	w.nodesWith(first, count, cpu, map[string]string{"rack": name})
}

// inRack makes pods belong to a gang that requires one rack.
func inRack(pod *corev1.Pod) { pod.Annotations["muster.dev/required-topology"] = "rack" }

// kaiGroup creates a PodGroup of KAI's with a minimum of `least` pods.
func (w *world) kaiGroup(name string, least int, spec map[string]any) {
	w.t.Helper()
	watch.declare(w.namespace, name, least)
	w.createGroup(kaiPodGroups, name, nil, spec)
}

// inSubgroup makes pods belong to a subgroup of a PodGroup of KAI's (D-4).
func inSubgroup(group, subgroup string) podOption {
	return func(pod *corev1.Pod) {
		pod.Annotations["pod-group-name"] = group
		pod.Labels["kai.scheduler/subgroup-name"] = subgroup
	}
}

// racks returns the racks in which the pods are bound.
func (w *world) racks(prefix string) map[string]int {
	w.t.Helper()
	out := map[string]int{}
	for _, pod := range w.list(prefix) {
		if pod.Spec.NodeName == "" {
			continue
		}
		node, err := w.client.CoreV1().Nodes().Get(context.Background(), pod.Spec.NodeName, metav1.GetOptions{})
		w.must(err)
		out[node.Labels["rack"]]++
	}
	return out
}

// mustBeIn checks how many of the pods are bound in each rack.
func (w *world) mustBeIn(prefix string, expected map[string]int) {
	w.t.Helper()
	if racks := w.racks(prefix); !maps.Equal(racks, expected) {
		w.t.Errorf("%s is in racks %v; expected %v", prefix, racks, expected)
	}
}

// TestDomains: a gang that requires a rack gets one, the tightest fit, with gates and without, and its later members
// stay there. A gang that no rack holds names the rack that came closest. SPEC P-4, S-5.
func TestDomains(t *testing.T) {
	shared.install(t, guard, "")
	gatedAndNot(t, "three racks", func(w *world, gated bool) {
		options := gateIf(gated, gang("train", 4), inRack)
		w.rack("a", 0, 3, "1")
		w.rack("b", 3, 4, "1")
		w.rack("c", 7, 6, "1")
		w.podsStart("train", 4, "1", options...)
		w.mustBeIn("train", map[string]int{"b": 4})
		// An extra member, and the rack is full: it waits, though other racks have room.
		w.podsFrom("train", 4, 1, "1", options...)
		w.staysBound("train", 4, 2*time.Second)
		w.rack("b", 13, 1, "1")
		w.waitBound("train", 5, 20*time.Second)
		w.mustBeIn("train", map[string]int{"b": 5})
	})
	t.Run("no rack holds it", func(t *testing.T) {
		w := newWorld(t, shared)
		w.rack("a", 0, 2, "1")
		w.rack("b", 2, 2, "1")
		w.pods("train", 4, "1", gang("train", 4), inRack)
		w.gangSays("train", "no domain of rack has room for the gang: a: 2 of 4, b: 2 of 4", 15*time.Second)
		w.staysBound("train", 0, time.Second)
		w.rack("b", 4, 2, "1")
		w.waitBound("train", 4, 20*time.Second)
		w.mustBeIn("train", map[string]int{"b": 4})
	})
}

// TestKaiSubgroups: a PodGroup of KAI's starts when its tree is satisfied, not before, each of its groups in its own
// rack. Members beyond the minimums start when there is room. SPEC D-4, P-5, G-11.
func TestKaiSubgroups(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.rack("a", 0, 2, "1")
	w.rack("b", 2, 3, "1")
	inOneRack := map[string]any{"requiredTopologyLevel": "rack"}
	w.kaiGroup("serve", 3, map[string]any{"minMember": int64(2), "queue": "default", "subGroups": []any{
		map[string]any{"name": "decode", "minSubGroup": int64(1)},
		map[string]any{"name": "d0", "parent": "decode", "minMember": int64(2), "topologyConstraint": inOneRack},
		map[string]any{"name": "d1", "parent": "decode", "minMember": int64(2), "topologyConstraint": inOneRack},
		map[string]any{"name": "prefill", "minMember": int64(1)},
	}})
	w.pod("prefill-0", "1", inSubgroup("serve", "prefill"))
	w.pod("d0-0", "1", inSubgroup("serve", "d0"))
	w.pod("d1-0", "1", inSubgroup("serve", "d1"))
	w.gangSays("", "decode: 0 of 1 subgroups ready, of 2; d0: 1 of 2 pods exist", 15*time.Second)
	w.staysBound("prefill", 0, time.Second)
	w.pod("d1-1", "1", inSubgroup("serve", "d1"))
	w.waitBound("d1", 2, 20*time.Second)
	w.waitBound("prefill", 1, 5*time.Second)
	if racks := w.racks("d1"); len(racks) != 1 {
		t.Errorf("subgroup d1 is in racks %v; expected one", racks)
	}
	// d0's first member is beyond the minimum now: it is placed by itself, and the second stays in the same rack.
	w.waitBound("d0", 1, 20*time.Second)
	w.podsStart("filler", 1, "1")
	w.pod("d0-1", "1", inSubgroup("serve", "d0"))
	w.staysBound("d0", 1, time.Second)
	for rack := range w.racks("d0") {
		w.rack(rack, 5, 1, "1")
	}
	w.waitBound("d0", 2, 20*time.Second)
	if racks := w.racks("d0"); len(racks) != 1 {
		t.Errorf("subgroup d0 is in racks %v; expected one", racks)
	}
}
