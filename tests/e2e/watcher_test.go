package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// burstLimit is the maximum duration of a binding burst, from a gang's first bound pod to its last needed one.
const burstLimit = 5 * time.Second

// watcher examines every pod event of the API server and asserts that no gang is partially bound outside its binding
// burst. It also acts as the kubelets: a bound pod becomes Running.
type watcher struct {
	mutex     sync.Mutex
	client    kubernetes.Interface
	gangs     map[string]*watchedGang
	longest   time.Duration
	longestOf string
	broken    []string
	paused    bool
	allowance time.Duration // added to burstLimit while a test kills processes
	minimums  map[string]int
	toRun     chan *corev1.Pod
	bound     map[string]map[types.UID]bool // namespace -> bound pods
	followers map[string]chan<- *corev1.Pod // namespace -> receives each pod that is first seen bound
}

type watchedGang struct {
	bound     map[types.UID]bool
	since     time.Time // start of the burst; zero: none
	satisfied bool
}

var watch *watcher

func startWatcher(client kubernetes.Interface, stop <-chan struct{}) (*watcher, error) {
	w := &watcher{client: client, gangs: map[string]*watchedGang{}, minimums: map[string]int{}, bound: map[string]map[types.UID]bool{},
		followers: map[string]chan<- *corev1.Pod{}, toRun: make(chan *corev1.Pod, 100000)}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.see(object.(*corev1.Pod), false) },
		UpdateFunc: func(_, object any) { w.see(object.(*corev1.Pod), false) },
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			w.see(object.(*corev1.Pod), true)
		},
	}); err != nil {
		return nil, err
	}
	factory.Start(stop)
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		return nil, fmt.Errorf("the pod watch did not start")
	}
	for i := 0; i < 4; i++ {
		go w.kubelet(stop)
	}
	return w, nil
}

// declare sets the minimum of a PodGroup; gangs by annotations need no declaration.
func (w *watcher) declare(namespace, name string, min int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.minimums[namespace+"/"+name] = min
}

func (w *watcher) gangOf(pod *corev1.Pod) (string, int) {
	name := pod.Annotations[koord+"name"]
	if name == "" {
		name = pod.Labels[sigLabel]
	}
	if name == "" {
		name = pod.Annotations["pod-group-name"]
	}
	if name == "" {
		return "", 0
	}
	key := pod.Namespace + "/" + name
	min, err := strconv.Atoi(pod.Annotations[koord+"min-available"])
	if err != nil {
		min = w.minimums[key]
	}
	return key, min
}

func (w *watcher) see(pod *corev1.Pod, deleted bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	bound := !deleted && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodFailed
	if bound && pod.Status.Phase == corev1.PodPending {
		select {
		case w.toRun <- pod:
		default:
		}
	}
	if bound {
		if w.bound[pod.Namespace] == nil {
			w.bound[pod.Namespace] = map[types.UID]bool{}
		}
		if follower := w.followers[pod.Namespace]; follower != nil && !w.bound[pod.Namespace][pod.UID] {
			follower <- pod
		}
		w.bound[pod.Namespace][pod.UID] = true
	}
	key, min := w.gangOf(pod)
	if key == "" || min <= 1 {
		return
	}
	gang := w.gangs[key]
	if gang == nil {
		gang = &watchedGang{bound: map[types.UID]bool{}}
		w.gangs[key] = gang
	}
	if bound {
		gang.bound[pod.UID] = true
	} else {
		delete(gang.bound, pod.UID)
	}
	count := len(gang.bound)
	switch {
	case count == 0:
		gang.satisfied, gang.since = false, time.Time{}
	case count >= min:
		if !gang.since.IsZero() {
			took := time.Since(gang.since)
			if took > w.longest {
				w.longest, w.longestOf = took, key
			}
			w.check(key, gang, count, min)
		}
		gang.satisfied, gang.since = true, time.Time{}
	case gang.satisfied || w.paused:
		// Deletions after the start, and the clearing of the cluster, are not partial starts.
	case gang.since.IsZero():
		gang.since = time.Now()
	default:
		w.check(key, gang, count, min)
	}
}

func (w *watcher) check(key string, gang *watchedGang, count, min int) {
	if took := time.Since(gang.since); took > burstLimit+w.allowance {
		w.broken = append(w.broken, fmt.Sprintf("gang %s: %d of %d bound, %s after its first", key, count, min, took.Round(time.Millisecond)))
	}
}

// mustBeWhole fails the test if any gang is, or was, partially bound.
func (w *watcher) mustBeWhole(t *testing.T) {
	t.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for key, gang := range w.gangs {
		if !gang.since.IsZero() && time.Since(gang.since) > burstLimit {
			w.broken = append(w.broken, fmt.Sprintf("gang %s is bound in part (%d pods) since %s", key, len(gang.bound), time.Since(gang.since).Round(time.Millisecond)))
		}
	}
	for _, text := range w.broken {
		t.Error("partial gang: ", text)
	}
	w.broken = nil
	w.gangs = map[string]*watchedGang{}
}

// everBound returns the number of pods of the namespace that have ever had a node.
func (w *watcher) everBound(namespace string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.bound[namespace])
}

// follow sends each pod of the namespace when it is first seen bound; nil ends it. The channel must have room for all.
func (w *watcher) follow(namespace string, pods chan<- *corev1.Pod) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.followers[namespace] = pods
}

func (w *watcher) allow(extra time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.allowance = extra
}

func (w *watcher) pause()  { w.setPaused(true) }
func (w *watcher) resume() { w.setPaused(false) }
func (w *watcher) setPaused(paused bool) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.paused = paused
	if paused {
		for _, gang := range w.gangs {
			gang.satisfied = true
		}
	}
}

func (w *watcher) kubelet(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case pod := <-w.toRun:
			_, _ = w.client.CoreV1().Pods(pod.Namespace).Patch(context.Background(), pod.Name, types.MergePatchType,
				[]byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status")
		}
	}
}
