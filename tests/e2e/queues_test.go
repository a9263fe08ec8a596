package e2e

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func inQueue(name string) podOption { return withAnnotation("muster.dev/queue", name) }

// TestQueueLimit: a limit holds a second gang back until the first ends, and an extra member of the first too, while
// nodes have room; gangs of other queues and lone pods continue. SPEC.
func TestQueueLimit(t *testing.T) {
	shared.install(t, guard, "\nqueues:\n  tree:\n  - {name: org, limit: {cpu: 6}, namespaces: [\"*\"]}\n  - {name: team, parent: org, limit: {cpu: 4}}\n  - {name: other, parent: org}\n")
	gatedAndNot(t, "a tree of three", func(w *world, gated bool) {
		w.nodes(4, "4")
		with := func(name string, min int, queue string) []podOption {
			return gateIf(gated, gang(name, min), inQueue(queue))
		}
		w.podsStart("first", 4, "1", with("first", 4, "team")...)
		w.podsFrom("first", 4, 1, "1", with("first", 4, "team")...)
		w.pods("second", 4, "1", with("second", 4, "team")...)
		w.gangSays("second", "asks for cpu: 4, of the limit of queue team, cpu: 4, 4 is used", 20*time.Second)
		w.podsStart("other", 2, "1", with("other", 2, "other")...)
		w.pods("more", 1, "1", with("more", 1, "other")...)
		w.gangSays("more", "of the limit of queue org, cpu: 6, 6 is used", 20*time.Second)
		w.podsStart("plain", 1, "1")
		w.staysBound("second", 0, time.Second)
		w.staysBound("first", 4, time.Second)
		w.staysBound("more", 0, time.Second)
		w.deletePods("other")
		w.waitBound("more", 1, 20*time.Second)
		w.deletePods("first")
		w.waitBound("second", 4, 20*time.Second)
	})
}

var queueResource = schema.GroupVersionResource{Group: "muster.dev", Version: "v1alpha1", Resource: "queues"}

// queue creates or replaces the spec of a Queue object.
func (w *world) queue(name string, spec map[string]any) {
	queues := w.dyn.Resource(queueResource)
	object, err := queues.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		object = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "muster.dev/v1alpha1", "kind": "Queue", "metadata": map[string]any{"name": name}, "spec": spec}}
		_, err = queues.Create(context.Background(), object, metav1.CreateOptions{})
	} else {
		object.Object["spec"] = spec
		_, err = queues.Update(context.Background(), object, metav1.UpdateOptions{})
	}
	w.must(err)
}

// queueSays waits until the queue's condition Accepted has this status, and returns its message.
func (w *world) queueSays(name, status string) string {
	last := "no condition"
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		object, err := w.dyn.Resource(queueResource).Get(context.Background(), name, metav1.GetOptions{})
		w.must(err)
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, each := range conditions {
			condition := each.(map[string]any)
			last = fmt.Sprintf("%v %v: %v", condition["status"], condition["reason"], condition["message"])
			if condition["type"] == "Accepted" && condition["status"] == status && condition["observedGeneration"] == object.GetGeneration() {
				return last
			}
		}
	}
	w.t.Fatalf("queue %s: want Accepted=%s of its generation, has %s", name, status, last)
	return ""
}

// TestQueueObjects: queues as objects. An invalid tree changes nothing and reports why, also after a restart; a
// corrected tree is in force at once. A queue serves the namespaces that it selects, and running gangs stay. SPEC Q-1,
//
func TestQueueObjects(t *testing.T) {
	w := newWorldWith(t, guard, "\nqueues:\n  source: kubernetes\n")
	t.Cleanup(func() {
		_ = w.dyn.Resource(queueResource).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	w.nodes(4, "4")
	byLabel := map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.namespace}}
	w.queue("org", map[string]any{"limit": map[string]any{"cpu": int64(4)}, "namespaceSelector": byLabel})
	w.queue("team", map[string]any{"parent": "org"})
	w.queueSays("team", "True")
	w.podsStart("first", 4, "1", gang("first", 4), inQueue("team"))
	w.pods("second", 2, "1", gang("second", 2), inQueue("team"))
	w.gangSays("second", "of the limit of queue org, cpu: 4, 4 is used", 20*time.Second)
	w.queue("org", map[string]any{"limit": map[string]any{"cpu": int64(8)}, "parent": "nowhere"})
	if says := w.queueSays("org", "False"); !strings.Contains(says, "parent nowhere does not exist") {
		t.Errorf("queue org says %q", says)
	}
	w.staysBound("second", 0, time.Second)
	shared.install(t, guard, "\nqueues:\n  source: kubernetes\n")
	w.staysBound("second", 0, 2*time.Second)
	w.queue("org", map[string]any{"limit": map[string]any{"cpu": int64(8)}, "namespaces": []any{"elsewhere"}})
	w.queueSays("org", "True")
	w.gangSays("second", "this gang is of namespace "+w.namespace, 20*time.Second)
	w.staysBound("first", 4, time.Second)
	w.queue("org", map[string]any{"limit": map[string]any{"cpu": int64(8)}, "namespaces": []any{w.namespace, "elsewhere"}})
	w.queueSays("org", "True")
	w.waitBound("second", 2, 20*time.Second)
}

// TestFairShare: two teams always have more gangs than fit, each gang uses 2% of the cluster and ends after three
// seconds. They share the cluster by weight, 1 to 3: within 5% of their shares, weighted by time, over a minute after
// the first 15 s. SPEC Q-3.
func TestFairShare(t *testing.T) {
	w := newWorldWith(t, guard, "\nqueues:\n  tree:\n  - {name: a, overQuotaWeight: {cpu: 1}, namespaces: [\"*\"]}\n  - {name: b, overQuotaWeight: {cpu: 3}, namespaces: [\"*\"]}\n")
	const (
		cpus    = 208 // 52 gangs of 4: the shares are 13 and 39 whole gangs
		size    = 4
		waiting = 60 // gangs of each team: more than all that may end at once
		life    = 3 * time.Second
		begins  = 15 * time.Second
		lasts   = 60 * time.Second
	)
	w.nodes(cpus/4, "4")
	made := map[string]int{}
	top := func(team string, count int) {
		first := made[team]
		made[team] += count
		each(count*size, func(i int) {
			name := fmt.Sprintf("%s%05d", team, first+i/size)
			w.pod(fmt.Sprintf("%s-%d", name, i%size), "1", gang(name, size), inQueue(team), withGate)
		})
	}
	whole := map[string]time.Time{} // when a gang was first seen with all its members bound
	ended := map[string]bool{}
	held := map[string]float64{} // CPU seconds
	begun, last := time.Now(), time.Now()
	for time.Since(begun) < begins+lasts {
		bound := map[string]int{}
		pending := map[string]map[string]bool{"a": {}, "b": {}}
		used := map[string]int{}
		var over []string
		for _, pod := range w.everyPod() {
			name, _, _ := strings.Cut(pod.Name, "-")
			if pod.Spec.NodeName == "" {
				pending[name[:1]][name] = true
				continue
			}
			used[name[:1]]++
			if bound[name]++; bound[name] < size || ended[name] {
				continue
			}
			if since, seen := whole[name]; !seen {
				whole[name] = time.Now()
			} else if time.Since(since) >= life {
				ended[name] = true
				over = append(over, name)
			}
		}
		now := time.Now()
		if now.Sub(begun) > begins {
			for team, cpu := range used {
				held[team] += float64(cpu) * now.Sub(last).Seconds()
			}
		}
		last = now
		each(len(over)*size, func(i int) { _ = w.deletePod(fmt.Sprintf("%s-%d", over[i/size], i%size), 0) })
		for _, team := range []string{"a", "b"} {
			if missing := waiting - len(pending[team]); missing > 0 {
				top(team, missing)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	all := held["a"] + held["b"]
	share := held["a"] / all
	fmt.Printf("FIGURE fair share: two teams of weights 1 and 3 used %.1f%% and %.1f%% of what was used, %.0f%% of the cluster (target within 5%% of 25%% and 75%%)\n",
		100*share, 100-100*share, 100*all/(cpus*lasts.Seconds()))
	if math.Abs(share-0.25) > 0.05*0.25 || math.Abs(0.75-(1-share)) > 0.05*0.75 {
		t.Errorf("team a used %.1f%% of it; its share is 25%%", 100*share)
	}
	if all < 0.8*cpus*lasts.Seconds() {
		t.Errorf("only %.0f%% of the cluster was used while gangs waited", 100*all/(cpus*lasts.Seconds()))
	}
}
