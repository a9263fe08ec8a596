package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scriptedExtender answers kube-scheduler as a case defines, and records its calls.
type scriptedExtender struct {
	w *world

	mutex   sync.Mutex
	heard   []string
	last    time.Time
	answers map[string]string        // "filter POD" -> the reply
	held    map[string]chan string   // by pod: the reply to its bind call
	seen    map[string]podObservable // by pod
}

type podObservable struct {
	nominated, reason string
	ending            bool
}

func (s *scriptedExtender) hear(line string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.heard = append(s.heard, line)
	s.last = time.Now()
}

func (s *scriptedExtender) answer(verb, pod, otherwise string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if said, ok := s.answers[verb+" "+pod]; ok {
		return said
	}
	return otherwise
}

// few names the nodes, or returns their number.
func few(nodes []string) string {
	if len(nodes) > 12 {
		return fmt.Sprintf("*%d", len(nodes))
	}
	sort.Strings(nodes)
	return strings.Join(nodes, " ")
}

func (s *scriptedExtender) filter(r *http.Request) any {
	var args struct {
		Pod       corev1.Pod
		NodeNames []string
	}
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		return map[string]any{"Error": err.Error()}
	}
	s.hear("filter " + args.Pod.Name + " " + few(append([]string{}, args.NodeNames...)))
	failed := map[string]string{}
	for _, node := range args.NodeNames {
		failed[node] = "scripted"
	}
	switch said := s.answer("filter", args.Pod.Name, "all"); said {
	case "all":
		return map[string]any{"NodeNames": args.NodeNames}
	case "none":
		return map[string]any{"NodeNames": []string{}, "FailedNodes": failed}
	case "never":
		return map[string]any{"NodeNames": []string{}, "FailedAndUnresolvableNodes": failed}
	case "silent":
		return map[string]any{"NodeNames": []string{}}
	case "error":
		return map[string]any{"Error": "scripted"}
	case "unoffered":
		return map[string]any{"NodeNames": []string{"not-offered"}}
	default:
		left := []string{}
		for _, node := range args.NodeNames {
			if node == said {
				left = append(left, node)
				delete(failed, node)
			}
		}
		return map[string]any{"NodeNames": left, "FailedNodes": failed}
	}
}

func (s *scriptedExtender) preempt(r *http.Request) any {
	type victims struct {
		Pods             []struct{ UID string }
		NumPDBViolations int64
	}
	var args struct {
		Pod                   corev1.Pod
		NodeNameToMetaVictims map[string]victims
	}
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		return map[string]any{}
	}
	names := map[string]string{}
	for _, pod := range s.w.everyPod() {
		names[string(pod.UID)] = pod.Name
	}
	said := s.answer("preempt", args.Pod.Name, "all")
	candidates := map[string]victims{}
	var lines []string
	for node, candidate := range args.NodeNameToMetaVictims {
		var pods []string
		for _, victim := range candidate.Pods {
			pods = append(pods, names[victim.UID])
		}
		sort.Strings(pods)
		lines = append(lines, node+":"+strings.Join(pods, ","))
		if said == "all" || said == node {
			candidates[node] = candidate
		}
	}
	sort.Strings(lines)
	s.hear("preempt " + args.Pod.Name + " " + strings.Join(lines, " "))
	return map[string]any{"NodeNameToMetaVictims": candidates}
}

func (s *scriptedExtender) bind(r *http.Request) any {
	var args struct{ PodName, PodNamespace, PodUID, Node string }
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		return map[string]any{"Error": err.Error()}
	}
	s.hear("bind " + args.PodName + " " + args.Node)
	said := s.answer("bind", args.PodName, "ok")
	if said == "hold" {
		released := make(chan string, 1)
		s.mutex.Lock()
		s.held[args.PodName] = released
		s.mutex.Unlock()
		select {
		case said = <-released:
		case <-r.Context().Done():
			return map[string]any{"Error": "the caller is gone"}
		}
	}
	if said != "ok" {
		return map[string]any{"Error": "scripted"}
	}
	if err := s.w.bindTo(args.PodName, types.UID(args.PodUID), args.Node); err != nil {
		return map[string]any{"Error": err.Error()}
	}
	return map[string]any{"Error": ""}
}

func (w *world) bindTo(pod string, uid types.UID, node string) error {
	return w.client.CoreV1().Pods(w.namespace).Bind(context.Background(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: w.namespace, UID: uid},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

func (s *scriptedExtender) serve(t *testing.T, ports ...int) {
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*http.Request) any{"/filter": s.filter, "/preempt": s.preempt, "/bind": s.bind} {
		mux.HandleFunc(path, func(out http.ResponseWriter, r *http.Request) {
			out.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(out).Encode(answer(r))
		})
	}
	for _, port := range ports {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		must(t, err)
		server := &http.Server{Handler: mux}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
}

// look returns new observations of pods since the last call; `removed`: pods that the case removed itself.
func (s *scriptedExtender) look(removed map[string]bool) []string {
	there := map[string]bool{}
	var lines []string
	for _, pod := range s.w.everyPod() {
		there[pod.Name] = true
		now := podObservable{nominated: pod.Status.NominatedNodeName, ending: pod.DeletionTimestamp != nil}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				now.reason = condition.Reason
			}
		}
		before := s.seen[pod.Name]
		// The nominated node and the condition of a bound pod have no meaning any more.
		if now.nominated != before.nominated && pod.Spec.NodeName == "" {
			lines = append(lines, strings.TrimSpace("nominated "+pod.Name+" "+now.nominated))
		}
		if now.ending && !before.ending && !removed[pod.Name] {
			lines = append(lines, "preempted "+pod.Name)
		}
		if now.reason != before.reason && now.reason != "" {
			lines = append(lines, "says "+pod.Name+" "+now.reason)
		}
		s.seen[pod.Name] = now
	}
	for name := range s.seen {
		if !there[name] {
			ended := s.seen[name].ending
			delete(s.seen, name)
			if !removed[name] && !ended {
				lines = append(lines, "preempted "+name)
			}
		}
	}
	return lines
}

// settle waits until this number of calls was observed, and then for a quiet period.
func (s *scriptedExtender) settle(since time.Time, calls int) {
	for {
		s.mutex.Lock()
		last, heard := s.last, len(s.heard)
		s.mutex.Unlock()
		if last.Before(since) {
			last = since
		}
		left := time.Until(last.Add(quiet))
		if left <= 0 && heard < calls && time.Since(since) < patience {
			left = 20 * time.Millisecond
		}
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}
