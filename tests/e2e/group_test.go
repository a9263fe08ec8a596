package e2e

import (
	"fmt"
	"testing"
	"time"
)

// beside returns the same world in a second namespace.
func (w *world) beside() *world {
	w.t.Helper()
	other := *w
	other.namespace = w.namespace + "-b"
	w.must(w.createNamespace(other.namespace, nil))
	return &other
}

// TestGangGroup: a gang group over two namespaces starts whole or not at all, with gates and without. A gang that names
// another one-sidedly waits and names the gang that disagrees. SPEC D-10, P-2.
func TestGangGroup(t *testing.T) {
	shared.install(t, guard, "")
	gatedAndNot(t, "two namespaces", func(here *world, gated bool) {
		there := here.beside()
		here.nodes(5, "4")
		group := withAnnotation(koord+"groups", fmt.Sprintf(`["%s/servers","%s/workers"]`, here.namespace, there.namespace))
		here.pods("servers", 2, "4", gateIf(gated, gang("servers", 2), group)...)
		here.staysBound("servers", 0, time.Second)
		there.pods("workers", 4, "4", gateIf(gated, gang("workers", 4), group)...)
		here.gangSays("servers", ", which starts with its group; 5 nodes: insufficient cpu", 15*time.Second)
		here.staysBound("servers", 0, time.Second)
		there.staysBound("workers", 0, 100*time.Millisecond)
		here.nodesFrom(5, 1, "4")
		here.waitBound("servers", 2, 20*time.Second)
		there.waitBound("workers", 4, 5*time.Second)
	})
	t.Run("one-sided", func(t *testing.T) {
		w := newWorld(t, shared)
		w.nodes(4, "4")
		w.pods("dragger", 1, "1", gang("dragger", 1), withAnnotation(koord+"groups", fmt.Sprintf(`["%s/dragger","%s/victim"]`, w.namespace, w.namespace)))
		w.pods("victim", 1, "1", gang("victim", 1))
		w.waitBound("victim", 1, 15*time.Second)
		w.gangSays("dragger", w.namespace+"/victim of its group lists no group", 10*time.Second)
		w.staysBound("dragger", 0, 500*time.Millisecond)
	})
}
