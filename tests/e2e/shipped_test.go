package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestAsShipped: the objects of deploy/muster.yaml start a gang. The scheduler and musterd run with the ConfigMaps and
// the service account of that file, beside a default scheduler with its own lease. Only addresses are filled in: ports,
// and a kubeconfig instead of the pod's service account. SPEC K-3, K-4, K-9, K-14, S-6.
func TestAsShipped(t *testing.T) {
	shared.install(t, "", "") // no part of Muster runs
	shared.scheduler.kill()
	shared.scheduler = nil
	ours, err := shared.runScheduler("default-scheduler", schedulerToken,
		map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
	must(t, err)
	defer ours.kill()
	must(t, shared.startMuster(""))
	data := func(name, key string) string {
		object, err := shared.client.CoreV1().ConfigMaps("muster-system").Get(context.Background(), name, metav1.GetOptions{})
		must(t, err)
		return object.Data[key]
	}
	if text, _ := shared.shipped(guard, "muster", "musterd.yaml"); text != data("muster", "musterd.yaml") {
		t.Error("musterd runs another configuration than the one in the cluster")
	}
	config := map[string]any{}
	must(t, yaml.Unmarshal([]byte(shared.addresses(data("muster-scheduler", "config.yaml"))), &config))
	if shared.scheduler, err = shared.runScheduler("kube-scheduler", musterToken, config); err != nil {
		t.Fatal(err)
	}

	w := newWorld(t, shared)
	lease := func(namespace, name string) (holder string, renewed time.Time) {
		object, err := shared.client.CoordinationV1().Leases(namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil || object.Spec.HolderIdentity == nil {
			return "", time.Time{}
		}
		return *object.Spec.HolderIdentity, object.Spec.RenewTime.Time
	}
	w.must(waitFor(30*time.Second, "each scheduler holds its lease", func() (bool, string) {
		theirs, _ := lease("kube-system", "kube-scheduler")
		our, _ := lease("muster-system", "muster-scheduler")
		return theirs != "" && our != "" && theirs != our, theirs + " and " + our
	}))
	// A process that can create the lease but not renew it leads for ten seconds.
	_, first := lease("muster-system", "muster-scheduler")
	if first.IsZero() {
		t.Fatal("the lease of muster-scheduler cannot be read")
	}
	w.must(waitFor(10*time.Second, "the lease is renewed", func() (bool, string) {
		_, renewed := lease("muster-system", "muster-scheduler")
		return renewed.After(first), ""
	}))

	w.nodes(4, "4")
	byDefault := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "default-scheduler" }
	w.pod("theirs", "1", byDefault)
	w.waitBound("theirs", 1, 20*time.Second)
	w.deletePods("theirs")
	// Start and hold: room for one of two gangs.
	w.pods("first", 4, "4", gang("first", 4), withGate)
	w.waitBound("first", 4, 30*time.Second)
	w.pods("second", 4, "3", gang("second", 4), w.withPriority(1000))
	w.gangSays("second", "nodes are available", 30*time.Second)
	// Preempt: no pod is evicted for a gang that cannot start.
	time.Sleep(2 * time.Second)
	w.staysBound("second", 0, time.Second)
	if disrupted := w.disrupted("first"); len(disrupted) != 0 {
		t.Errorf("evicted for a gang that waits: %v", disrupted)
	}
	w.deletePods("first")
	w.waitBound("second", 4, 30*time.Second)
	w.must(waitFor(20*time.Second, "musterd reports no failure", func() (bool, string) {
		failed := w.metric("muster_effects_failed_total")
		return failed == 0, strings.TrimSpace(shared.path("musterd.log"))
	}))
}
