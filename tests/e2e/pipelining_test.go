package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFutureReservations: a gang that will fit when a pod that is being deleted is gone gets a future reservation.
// Neither a lone pod nor a gang behind it takes the part that is free already, and nothing is bound before all of it
// can be. There are no kubelets: the test ends the pod. Gangs created in the same second are ordered by name. SPEC P-8.
func TestFutureReservations(t *testing.T) {
	shared.install(t, guard, "")
	for _, gated := range []bool{false, true} {
		name := "ungated"
		var options []podOption
		if gated {
			name = "gated"
			options = append(options, withGate)
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shared)
			w.nodes(1, "4")
			w.pods("old", 1, "1")
			w.waitBound("old", 1, 20*time.Second)
			grace := int64(600)
			w.must(w.client.CoreV1().Pods(w.namespace).Delete(context.Background(), "old-0", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
			w.pods("first", 2, "2", append([]podOption{gang("first", 2)}, options...)...)
			w.everyMemberSays("first", "capacity is reserved for it, part of which terminating pods still use, on node-0000", 15*time.Second)
			w.pods("second", 1, "1", append([]podOption{gang("second", 1)}, options...)...)
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
}
