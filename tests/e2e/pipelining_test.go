package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A gang that fits once a pod which is being deleted is gone has its room kept: neither a pod of no gang nor a gang behind it
// takes the part that is free already, and none of it is bound before all of it can be. Nobody runs a kubelet here: the
// pod is gone when the test says so. Gangs of one second come in order of their names. SPEC P-8.
func TestPipelining(t *testing.T) {
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
			w.everyMemberSays("first", "room is kept for it, of which pods that are being deleted still use some on node-0000", 15*time.Second)
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
