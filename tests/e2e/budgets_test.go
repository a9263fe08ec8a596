package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/disruption"
)

// runDisruptionController runs Kubernetes' own controller, which counts what each PodDisruptionBudget allows.
func (w *world) runDisruptionController() {
	ctx, stop := context.WithCancel(context.Background())
	w.t.Cleanup(stop)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	// A minimum in pods asks no owner, and so no scale.
	controller := disruption.NewDisruptionController(ctx, factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets(),
		factory.Core().V1().ReplicationControllers(), factory.Apps().V1().ReplicaSets(), factory.Apps().V1().Deployments(),
		factory.Apps().V1().StatefulSets(), w.client, meta.NewDefaultRESTMapper(nil), nil, w.client.Discovery())
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
}

// ready marks the pods as kubelets do when their containers answer.
func (w *world) ready(prefix string) {
	for _, pod := range w.list(prefix) {
		w.must(w.patchPod(pod.Name, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status"))
	}
}

// evict returns the message of the refusal; "": it was evicted.
func (w *world) evict(pod string) string {
	now := int64(0)
	err := w.client.PolicyV1().Evictions(w.namespace).Evict(context.Background(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: w.namespace}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &now}})
	if err != nil && !apierrors.IsTooManyRequests(err) {
		w.t.Errorf("evicting %s: %v", pod, err)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// waitAllows waits until the gang's budget is counted, and allows so many evictions; -1: until there is none.
func (w *world) waitAllows(gang string, evictions int) {
	w.t.Helper()
	w.must(waitFor(20*time.Second, fmt.Sprintf("the budget of %s allows %d", gang, evictions), func() (bool, string) {
		budget, err := w.client.PolicyV1().PodDisruptionBudgets(w.namespace).Get(context.Background(), "muster-"+gang, metav1.GetOptions{})
		if err != nil {
			return evictions < 0 && apierrors.IsNotFound(err), err.Error()
		}
		status, _ := json.Marshal(budget.Status)
		counted := budget.Status.ObservedGeneration == budget.Generation && budget.Status.CurrentHealthy > 0
		return evictions >= 0 && counted && int(budget.Status.DisruptionsAllowed) == evictions, string(status)
	}))
}

// preempt lets a pod of high priority ask the cluster's own scheduler for room, and returns the pods that gave way.
func (w *world) preempt(name string) (victims []string) {
	w.pod(name, "1", w.withPriority(1000), func(pod *corev1.Pod) { pod.Spec.SchedulerName = "default-scheduler" })
	w.must(waitFor(20*time.Second, "a preemption", func() (bool, string) {
		victims = nil
		for _, pod := range w.everyPod() {
			if pod.DeletionTimestamp != nil {
				victims = append(victims, pod.Name)
			}
		}
		return len(victims) > 0, w.why(name)
	}))
	return victims
}

// TestDisruptionBudgets: a running gang has a PodDisruptionBudget: evictions below its minimum are refused, surplus
// members may go, and the cluster's own scheduler preempts other pods first, even of higher priority. If there are none,
// it takes a member all the same. The budget goes with the gang, also while musterd is down. SPEC K-9.
func TestDisruptionBudgets(t *testing.T) {
	port := freePort()
	shared.kubernetes = "  disruptionBudgets: true\n"
	t.Cleanup(func() { shared.kubernetes = "" })
	extra := fmt.Sprintf("\nwebhook:\n  listen: 127.0.0.1:%d\n  certFile: %s\n  keyFile: %s\n",
		port, shared.path("serving.crt"), shared.path("serving.key"))
	shared.install(t, guard, extra)
	w := newWorld(t, shared)
	w.nodes(1, "4")
	w.installWebhook(port)
	w.runDisruptionController()

	w.podsStart("whole", 4, "1", gang("whole", 4))
	w.nodesFrom(1, 1, "4")
	w.podsStart("more", 3, "1", gang("more", 2))
	w.ready("whole")
	w.ready("more")
	w.waitAllows("whole", 0)
	w.waitAllows("more", 1)
	if refusal := w.evict("whole-1"); !strings.Contains(refusal, "disruption budget") {
		t.Errorf("a member of a gang at its minimum was evicted: %q", refusal)
	}
	if refusal := w.evict("more-0"); refusal != "" {
		t.Errorf("a surplus member was not evicted: %s", refusal)
	}
	w.waitAllows("more", 0)
	if refusal := w.evict("more-1"); refusal == "" {
		t.Error("a member of a gang at its minimum was evicted")
	}

	// A gang that starts again as a whole when a member fails: its budget does not keep Muster from evicting the others.
	w.podsStart("again", 2, "1", gang("again", 2), withAnnotation("muster.dev/on-member-failure", "all"))
	w.ready("again")
	w.waitAllows("again", 0)
	w.must(w.patchPod("again-0", `{"status":{"phase":"Failed"}}`, "status"))
	w.must(waitFor(10*time.Second, "the other member is evicted", func() (bool, string) {
		left := w.list("again-1")
		return len(left) == 0 || left[0].DeletionTimestamp != nil, "it runs on"
	}))
	w.deletePods("again")

	// A gang ends while musterd is down: the next one removes its budget.
	w.muster.kill()
	w.deletePods("more")
	w.must(w.startMuster(extra))
	w.waitAllows("more", -1)
	w.waitAllows("whole", 0)

	// The other node is full of plain pods.
	plain := func(name string, priority int32) {
		w.pod(name, "1", w.withPriority(priority), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-0001" })
	}
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"leaderElection": map[string]any{"leaderElect": false}}
	own, err := w.runScheduler("own-scheduler", schedulerToken, config)
	w.must(err)
	t.Cleanup(own.kill)
	expect := func(round, from, why string) {
		t.Helper()
		for i := range 4 {
			priority := int32(10)
			if round == "alone" {
				priority = 2000
			}
			plain(fmt.Sprintf("%s-plain-%d", round, i), priority)
		}
		victims := w.preempt(round + "-high")
		if len(victims) != 1 || !strings.HasPrefix(victims[0], from) {
			t.Errorf("%s: %v gave way; expected one of %s", why, victims, from)
		}
		w.deletePods(round)
		for _, victim := range victims {
			if strings.HasPrefix(victim, "whole") {
				w.must(w.deletePod(victim, 0))
				w.pod("instead-of-"+victim, "1", w.withPriority(2000), func(pod *corev1.Pod) { pod.Spec.NodeName = "node-0000" })
			}
		}
		w.must(waitFor(20*time.Second, "the end of the round", func() (bool, string) { return w.bound(round) == 0, "" }))
	}
	for _, round := range []string{"a", "b", "c"} {
		expect(round, round+"-plain", "a gang with a budget, beside pods of higher priority")
	}
	expect("alone", "whole", "a gang with a budget, and nothing else of lower priority")
	w.muster.kill()
	w.must(w.client.PolicyV1().PodDisruptionBudgets(w.namespace).Delete(context.Background(), "muster-whole", metav1.DeleteOptions{}))
	expect("bare", "whole", "a gang without a budget, beside pods of higher priority")
}
