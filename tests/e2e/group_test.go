package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beside returns the same world in a second namespace.
func (w *world) beside() *world {
	w.t.Helper()
	other := *w
	other.namespace = w.namespace + "-b"
	_, err := w.client.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}}, metav1.CreateOptions{})
	w.must(err)
	return &other
}

// TestGangGroup: a gang group over two namespaces starts whole or not at all, with gates and without. A gang that names
// another one-sidedly waits and names the gang that disagrees. SPEC D-10, P-2.
func TestGangGroup(t *testing.T) {
	shared.install(t, guard, "")
	for _, gated := range []bool{false, true} {
		t.Run(fmt.Sprintf("two namespaces, gated=%v", gated), func(t *testing.T) {
			here := newWorld(t, shared)
			there := here.beside()
			here.nodes(5, "4")
			group := withAnnotation(koord+"groups", fmt.Sprintf(`["%s/servers","%s/workers"]`, here.namespace, there.namespace))
			options := func(name string, min int) []podOption {
				out := []podOption{gang(name, min), group}
				if gated {
					out = append(out, withGate)
				}
				return out
			}
			here.pods("servers", 2, "4", options("servers", 2)...)
			here.staysBound("servers", 0, time.Second)
			there.pods("workers", 4, "4", options("workers", 4)...)
			here.everyMemberSays("servers", ", which starts with its group; 5 nodes: insufficient cpu", 15*time.Second)
			here.staysBound("servers", 0, time.Second)
			there.staysBound("workers", 0, 100*time.Millisecond)
			here.nodesFrom(5, 1, "4")
			here.waitBound("servers", 2, 20*time.Second)
			there.waitBound("workers", 4, 5*time.Second)
		})
	}
	t.Run("one-sided", func(t *testing.T) {
		w := newWorld(t, shared)
		w.nodes(4, "4")
		w.pods("dragger", 1, "1", gang("dragger", 1), withAnnotation(koord+"groups", fmt.Sprintf(`["%s/dragger","%s/victim"]`, w.namespace, w.namespace)))
		w.pods("victim", 1, "1", gang("victim", 1))
		w.waitBound("victim", 1, 15*time.Second)
		w.everyMemberSays("dragger", w.namespace+"/victim of its group lists no group", 10*time.Second)
		w.staysBound("dragger", 0, 500*time.Millisecond)
	})
}
