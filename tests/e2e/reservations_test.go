package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestFutureMembers: a driver is bound when there is room for the executors that it will create. Their slots are
// reserved: neither lone pods nor other gangs take them, and a killed musterd restores them. Executors come with a
// gate, without, and after the reservation. SPEC P-7, K-13.
func TestFutureMembers(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.nodes(2, "2")
	as := func(subgroup string) podOption {
		return func(pod *corev1.Pod) { pod.Labels["muster.dev/subgroup"] = subgroup }
	}
	w.podGroup("spark", 2, map[string]any{"muster.dev/subgroups": `[{"name": "driver"},
		{"name": "executor", "minMember": 4, "minResource": {"cpu": "1"}}]`})
	w.pod("driver-0", "1", member("spark"), as("driver"))
	w.gangSays("driver", "room for 3 of 4 members of subgroup executor", 15*time.Second)
	w.nodesFrom(2, 1, "1")
	w.waitBound("driver", 1, 20*time.Second)
	// No other pod gets the reserved slots.
	w.pods("plain", 1, "1", w.withPriority(-1))
	w.pods("other", 1, "1", gang("other", 1))
	w.staysBound("plain", 0, 2*time.Second)
	w.staysBound("other", 0, time.Second)
	w.pod("executor-0", "1", member("spark"), as("executor"))
	w.pod("executor-1", "1", member("spark"), as("executor"), withGate)
	w.waitBound("executor", 2, 20*time.Second)
	w.muster.kill()
	w.must(w.startMuster(""))
	w.staysBound("plain", 0, 2*time.Second)
	w.staysBound("other", 0, time.Second)
	w.podsFrom("executor", 2, 2, "1", member("spark"), as("executor"))
	w.waitBound("executor", 4, 20*time.Second)
	w.staysBound("plain", 0, time.Second)
	// Finished pods leave room for waiting ones.
	w.deletePods("executor")
	w.waitBound("other", 1, 20*time.Second)
	w.waitBound("plain", 1, 20*time.Second)
}

// TestFutureReservations: a gang that will fit when a pod that is being deleted is gone gets a future reservation.
// Neither a lone pod nor a gang behind it takes the part that is free already, and nothing is bound before all of it
// can be. There are no kubelets: the test ends the pod. Gangs created in the same second are ordered by name. SPEC P-8.
func TestFutureReservations(t *testing.T) {
	shared.install(t, guard, "")
	gatedAndNot(t, "terminating pod", func(w *world, gated bool) {
		w.nodes(1, "4")
		w.podsStart("old", 1, "1")
		w.must(w.deletePod("old-0", 600))
		w.pods("first", 2, "2", gateIf(gated, gang("first", 2))...)
		w.gangSays("first", "capacity is reserved for it, part of which terminating pods still use, on node-0000", 15*time.Second)
		w.pods("second", 1, "1", gateIf(gated, gang("second", 1))...)
		w.pods("plain", 1, "1")
		for _, each := range []string{"first", "second", "plain"} {
			w.staysBound(each, 0, time.Second)
		}
		w.deletePods("old")
		w.waitBound("first", 2, 20*time.Second)
		w.staysBound("second", 0, time.Second)
		w.staysBound("plain", 0, time.Second)
	})
}
