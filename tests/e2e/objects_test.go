package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/restmapper"
)

const (
	gate     = "muster.dev/gang"
	koord    = "gang.scheduling.koordinator.sh/"
	sigLabel = "pod-group.scheduling.sigs.k8s.io"
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "podgroups"}

func (c *cluster) insecureTransport() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

func (c *cluster) create(object *unstructured.Unstructured) error {
	return waitForErr(30*time.Second, func() error {
		groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
		if err != nil {
			return err
		}
		kind := object.GroupVersionKind()
		mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		resource := c.dyn.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			_, err = resource.Namespace(object.GetNamespace()).Create(context.Background(), object, metav1.CreateOptions{})
		} else {
			_, err = resource.Create(context.Background(), object, metav1.CreateOptions{})
		}
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func waitForErr(limit time.Duration, try func() error) error {
	var last error
	_ = waitFor(limit, "retry", func() (bool, string) {
		last = try()
		return last == nil, fmt.Sprint(last)
	})
	return last
}

// world has the resources of one test: its own namespace and nodes.
type world struct {
	*cluster
	t         *testing.T
	namespace string
}

var worlds int

// newWorld removes the objects of earlier tests from the cluster and creates a namespace.
func newWorld(t *testing.T, c *cluster) *world {
	t.Helper()
	worlds++
	w := &world{cluster: c, t: t, namespace: fmt.Sprintf("w%d", worlds)}
	w.clear()
	w.must(c.createNamespace(w.namespace, nil))
	t.Cleanup(func() {
		watch.mustBeWhole(t)
		w.clear()
	})
	return w
}

// newWorldWith first installs musterd, with more configuration, and kube-scheduler.
func newWorldWith(t *testing.T, configuration, extra string) *world {
	t.Helper()
	shared.install(t, configuration, extra)
	return newWorld(t, shared)
}

// gatedAndNot runs a test in two worlds: for pods with Muster's gate, and without it.
func gatedAndNot(t *testing.T, name string, test func(w *world, gated bool)) {
	t.Helper()
	for _, gated := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s/gated=%v", name, gated), func(t *testing.T) { test(newWorld(t, shared), gated) })
	}
}

func (c *cluster) createNamespace(name string, labels map[string]string) error {
	_, err := c.client.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	must(w.t, err)
}

// clear deletes every pod, PodGroup and node.
func (w *world) clear() {
	w.t.Helper()
	watch.pause()
	defer watch.resume()
	ctx := context.Background()
	now := int64(0)
	pods, err := w.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	w.must(err)
	each(len(pods.Items), func(i int) {
		pod := pods.Items[i]
		_ = w.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	for _, kind := range []schema.GroupVersionResource{podGroups, kaiPodGroups} {
		groups, err := w.dyn.Resource(kind).List(ctx, metav1.ListOptions{})
		w.must(err)
		for _, group := range groups.Items {
			_ = w.dyn.Resource(kind).Namespace(group.GetNamespace()).Delete(ctx, group.GetName(), metav1.DeleteOptions{})
		}
	}
	nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	w.must(err)
	each(len(nodes.Items), func(i int) { _ = w.client.CoreV1().Nodes().Delete(ctx, nodes.Items[i].Name, metav1.DeleteOptions{}) })
	w.must(waitFor(60*time.Second, "an empty cluster", func() (bool, string) {
		left, err := w.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0, fmt.Sprint(err)
	}))
}

// each runs `do` for 0..n-1, several in parallel.
func each(n int, do func(int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := 0; i < n; i++ {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done() }() // also if the test ends in `do`
			do(i)
		}()
	}
	group.Wait()
}

// nodes creates n nodes with this amount of CPU each.
func (w *world) nodes(n int, cpu string) { w.nodesFrom(0, n, cpu) }

// nodesFrom creates `count` nodes, numbered from `first`.
func (w *world) nodesFrom(first, count int, cpu string) {
	w.t.Helper()
	w.nodesWith(first, count, cpu, nil)
}

// nodesWith creates nodes with additional labels.
func (w *world) nodesWith(first, count int, cpu string, more map[string]string) {
	w.t.Helper()
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	each(count, func(i int) {
		if err := w.createNode(fmt.Sprintf("node-%04d", first+i), amounts, more, false); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) createNode(name string, amounts corev1.ResourceList, more map[string]string, cordoned bool) error {
	labels := map[string]string{"kubernetes.io/hostname": name}
	maps.Copy(labels, more)
	_, err := w.client.CoreV1().Nodes().Create(context.Background(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Unschedulable: cordoned},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}, metav1.CreateOptions{})
	return err
}

type podOption func(*corev1.Pod)

func withGate(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
}

// gateIf adds Muster's gate to the options of a pod, if it is to have it.
func gateIf(gated bool, options ...podOption) []podOption {
	if gated {
		options = append(options, withGate)
	}
	return options
}

func withAnnotation(key, value string) podOption {
	return func(pod *corev1.Pod) { pod.Annotations[key] = value }
}

// withPriority also creates the PriorityClass.
func (w *world) withPriority(value int32) podOption {
	w.t.Helper()
	return w.withClass(schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", value)}, Value: value})
}

func (w *world) withClass(class schedulingv1.PriorityClass) podOption {
	w.t.Helper()
	_, err := w.client.SchedulingV1().PriorityClasses().Create(context.Background(), &class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class.Name }
}

// withVolumeElsewhere mounts a volume that only a non-existent node can reach: a filter of kube-scheduler that Muster
// does not model refuses the pod on every node.
func (w *world) withVolumeElsewhere() podOption {
	w.t.Helper()
	ctx := context.Background()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes, class := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ""
	volume, err := w.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-elsewhere"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: w.namespace, Name: "elsewhere"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"elsewhere"}}}}}}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	_, err = w.client.CoreV1().PersistentVolumeClaims(w.namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size},
			StorageClassName: &class, VolumeName: volume.Name,
		},
	}, metav1.CreateOptions{})
	w.must(err)
	return withClaim("elsewhere")
}

// withClaim mounts a claim. If it does not exist, kube-scheduler refuses the pod before any filter, with the same text
// each time.
func withClaim(name string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// absent is a scheduler that Muster may serve and that does not run.
const absent = "absent-scheduler"

// withAbsentScheduler makes a pod that no scheduler handles.
func withAbsentScheduler(pod *corev1.Pod) { pod.Spec.SchedulerName = absent }

// disrupted returns the pods that kube-scheduler preempted: being deleted, marked, or with an Event about it.
func (w *world) disrupted(prefix string) (names []string) {
	w.t.Helper()
	for _, pod := range w.list(prefix) {
		gone := pod.DeletionTimestamp != nil
		for _, condition := range pod.Status.Conditions {
			gone = gone || condition.Type == corev1.DisruptionTarget
		}
		if gone {
			names = append(names, pod.Name)
		}
	}
	events, err := w.client.CoreV1().Events(w.namespace).List(context.Background(), metav1.ListOptions{})
	w.must(err)
	for _, event := range events.Items {
		if event.Reason == "Preempted" && strings.HasPrefix(event.InvolvedObject.Name, prefix) {
			names = append(names, event.InvolvedObject.Name+" (event)")
		}
	}
	return names
}

func withOptIn(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
		"muster.dev/gang": resource.MustParse("1"), "muster.dev/bind": resource.MustParse("1"),
	}
}

// pod creates one pod that requests this amount of CPU.
func (w *world) pod(name, cpu string, options ...podOption) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, Annotations: map[string]string{}, Labels: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: "muster", Containers: []corev1.Container{{
			Name: "main", Image: "none",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	for _, option := range options {
		option(pod)
	}
	var made *corev1.Pod
	// The API server's admission sees a new PriorityClass or namespace a moment after its creation.
	w.must(waitForErr(5*time.Second, func() (err error) {
		made, err = w.client.CoreV1().Pods(w.namespace).Create(context.Background(), pod, metav1.CreateOptions{})
		return err
	}))
	return made
}

// gang makes pods belong to a gang declared by annotations (D-1).
func gang(name string, min int) podOption {
	return func(pod *corev1.Pod) {
		pod.Annotations[koord+"name"] = name
		pod.Annotations[koord+"min-available"] = fmt.Sprint(min)
	}
}

// member makes pods belong to a PodGroup (D-3).
func member(name string) podOption {
	return func(pod *corev1.Pod) { pod.Labels[sigLabel] = name }
}

func (w *world) podGroup(name string, min int, annotations map[string]any) {
	w.t.Helper()
	w.createGroup(podGroups, name, annotations, map[string]any{"minMember": int64(min)})
}

func (w *world) createGroup(kind schema.GroupVersionResource, name string, annotations, spec map[string]any) {
	w.t.Helper()
	_, err := w.dyn.Resource(kind).Namespace(w.namespace).Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": name, "namespace": w.namespace, "annotations": annotations}, "spec": spec,
	}}, metav1.CreateOptions{})
	w.must(err)
}

// pods creates name-0 to name-(n-1).
func (w *world) pods(name string, n int, cpu string, options ...podOption) {
	w.t.Helper()
	w.podsFrom(name, 0, n, cpu, options...)
}

// podsStart creates them and waits until all are bound.
func (w *world) podsStart(name string, n int, cpu string, options ...podOption) {
	w.t.Helper()
	w.pods(name, n, cpu, options...)
	w.waitBound(name, n, 20*time.Second)
}

// podsFrom creates `count` pods, numbered from `first`.
func (w *world) podsFrom(name string, first, count int, cpu string, options ...podOption) {
	w.t.Helper()
	for i := first; i < first+count; i++ {
		w.pod(fmt.Sprintf("%s-%d", name, i), cpu, options...)
	}
}

func (w *world) everyPod() []corev1.Pod {
	w.t.Helper()
	pods, err := w.client.CoreV1().Pods(w.namespace).List(context.Background(), metav1.ListOptions{})
	w.must(err)
	return pods.Items
}

func (w *world) list(prefix string) []corev1.Pod {
	w.t.Helper()
	var out []corev1.Pod
	for _, pod := range w.everyPod() {
		if prefix == "" || strings.HasPrefix(pod.Name, prefix+"-") || pod.Name == prefix {
			out = append(out, pod)
		}
	}
	return out
}

func (w *world) bound(prefix string) int {
	w.t.Helper()
	n := 0
	for _, pod := range w.list(prefix) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

func (w *world) waitBound(prefix string, n int, limit time.Duration) {
	w.t.Helper()
	w.must(waitFor(limit, fmt.Sprintf("%d pods of %s bound", n, prefix), func() (bool, string) {
		bound := w.bound(prefix)
		return bound == n, fmt.Sprintf("%d are; %s", bound, w.why(prefix))
	}))
}

// staysBound asserts that exactly n pods are bound, and remain so for the duration `while`.
func (w *world) staysBound(prefix string, n int, while time.Duration) {
	w.t.Helper()
	deadline := time.Now().Add(while)
	for time.Now().Before(deadline) {
		if bound := w.bound(prefix); bound != n {
			w.t.Fatalf("%s: %d pods are bound, expected %d", prefix, bound, n)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitBurst waits until the first of these pods is bound.
func (w *world) awaitBurst(prefix string) {
	w.t.Helper()
	w.must(waitFor(30*time.Second, "the burst begins", func() (bool, string) { return w.bound(prefix) > 0, "no pod is bound" }))
}

// deletePod gives the pod this time to end. Without kubelets it is gone at once if that is 0, and otherwise stays.
func (w *world) deletePod(name string, graceSeconds int64) error {
	return w.client.CoreV1().Pods(w.namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &graceSeconds})
}

func (w *world) deletePods(prefix string) {
	w.t.Helper()
	for _, pod := range w.list(prefix) {
		if err := w.deletePod(pod.Name, 0); err != nil && !apierrors.IsNotFound(err) {
			w.t.Fatal(err)
		}
	}
}

// message returns what `kubectl describe pod` shows about a waiting pod: its PodScheduled condition and its Events.
func (w *world) message(pod *corev1.Pod) string {
	w.t.Helper()
	var out []string
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			out = append(out, condition.Message)
		}
	}
	return strings.Join(append(out, w.eventsOn(pod.UID)...), " | ")
}

// eventsOn returns reason and note of Muster's Events about the object.
func (w *world) eventsOn(uid types.UID) []string {
	w.t.Helper()
	events, err := w.client.EventsV1().Events(w.namespace).List(context.Background(), metav1.ListOptions{})
	w.must(err)
	var out []string
	for _, event := range events.Items {
		if event.Regarding.UID == uid && event.ReportingController == "muster.dev/musterd" {
			out = append(out, event.Reason+": "+event.Note)
		}
	}
	return out
}

// why returns what the first pods without a node say, and how many of them say it. Their Events are searched one pod at
// a time: after a storm a search takes a second.
func (w *world) why(prefix string) string {
	const most = 20
	seen := map[string]int{}
	asked := 0
	for _, pod := range w.list(prefix) {
		if pod.Spec.NodeName == "" && asked < most {
			asked++
			seen[w.message(&pod)]++
		}
	}
	return fmt.Sprint(seen)
}

// gangSays waits until each unbound pod says something of Muster, and one of them says `text`: only one pod of a gang
// has the figures (K-3). An empty prefix: all pods of the namespace.
func (w *world) gangSays(prefix, text string, limit time.Duration) {
	w.t.Helper()
	w.must(waitFor(limit, fmt.Sprintf("the pods of %s say %q", prefix, text), func() (bool, string) {
		said := ""
		for _, pod := range w.list(prefix) {
			message := w.message(&pod)
			if pod.Spec.NodeName == "" && !strings.Contains(message, "muster: ") && !strings.Contains(message, "Gang") {
				return false, pod.Name + ": " + message
			}
			said += message + "\n"
		}
		return strings.Contains(said, text), said
	}))
}

// metric returns the sum of a metric's samples whose line contains all of `parts`.
func (c *cluster) metric(parts ...string) float64 {
	body, _, err := httpGet(fmt.Sprintf("http://127.0.0.1:%d/metrics", c.adminPort))
	if err != nil {
		return -1
	}
	sum := 0.0
	for _, line := range strings.Split(body, "\n") {
		matches := !strings.HasPrefix(line, "#") && line != ""
		for _, part := range parts {
			matches = matches && strings.Contains(line, part)
		}
		if !matches {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &value); err == nil {
			sum += value
		}
	}
	return sum
}
