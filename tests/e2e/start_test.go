package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	guard = "muster.yaml"
	optIn = "opt-in.yaml"
)

// TestWholeOrNotAtAll (a): a gang of 8 with room for 8 starts whole; with room for 7 nothing is bound and every member
// says why. With gates and without, in both installations. SPEC K-3, K-4, K-8, P-2.
func TestWholeOrNotAtAll(t *testing.T) {
	for _, install := range []string{guard, optIn} {
		shared.install(t, install, "")
		gatedAndNot(t, install, func(w *world, gated bool) {
			options := gateIf(gated, gang("train", 8))
			if install == optIn {
				options = append(options, withOptIn)
			}
			w.nodes(7, "4")
			w.pods("train", 8, "4", options...)
			w.gangSays("train", "room for 7 of 8 members", 20*time.Second)
			w.staysBound("train", 0, time.Second)
			w.clear()
			w.nodes(8, "4")
			w.podsStart("train", 8, "4", options...)
		})
	}
}

// TestTwoGangsInterleaved (b): two gangs of 5 interleaved with room for 5: one runs completely; the other holds nothing
// and runs when the first is deleted. SPEC P-6, P-9, K-7.
func TestTwoGangsInterleaved(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.nodes(5, "2")
	for i := 0; i < 5; i++ {
		w.pod(fmt.Sprintf("a-%d", i), "2", gang("a", 5))
		w.pod(fmt.Sprintf("b-%d", i), "2", gang("b", 5))
	}
	var first, second string
	w.must(waitFor(20*time.Second, "one gang whole", func() (bool, string) {
		a, b := w.bound("a"), w.bound("b")
		first, second = "a", "b"
		if b == 5 {
			first, second = "b", "a"
		}
		return a+b == 5 && (a == 5 || b == 5), fmt.Sprintf("a: %d, b: %d", a, b)
	}))
	w.staysBound(second, 0, 2*time.Second)
	w.gangSays(second, "room for 0 of 5 members", 10*time.Second)
	w.deletePods(first)
	w.waitBound(second, 5, 20*time.Second)
}

// TestDialects (c): PodGroup and annotations; annotations override their PodGroup, field by field. SPEC D-1, D-3, D-9,
// K-11.
func TestDialects(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.nodes(4, "4")
	t.Run("a pod waits for its PodGroup", func(t *testing.T) {
		w.t = t
		watch.declare(w.namespace, "late", 2)
		w.pods("late", 2, "1", member("late"))
		w.gangSays("late", "does not exist yet", 10*time.Second)
		w.podGroup("late", 2, nil)
		w.waitBound("late", 2, 20*time.Second)
		w.must(waitFor(10*time.Second, "status of the PodGroup", func() (bool, string) {
			group, err := w.dyn.Resource(podGroups).Namespace(w.namespace).Get(context.Background(), "late", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			status, _ := group.Object["status"].(map[string]any)
			return status["phase"] == "Running" && fmt.Sprint(status["running"]) == "2", fmt.Sprint(status)
		}))
	})
	t.Run("annotations override", func(t *testing.T) {
		w.t = t
		w.podGroup("both", 6, nil)
		both := func(pod *corev1.Pod) { member("both")(pod); gang("both", 3)(pod) }
		w.podsStart("both", 3, "1", both)
	})
	t.Run("labels, without a PodGroup", func(t *testing.T) {
		w.t = t
		labels := func(pod *corev1.Pod) {
			pod.Labels[sigLabel+"/name"] = "labelled"
			pod.Labels[sigLabel+"/min-available"] = "2"
		}
		w.pod("labelled-0", "1", labels)
		w.gangSays("labelled", "1 of 2 pods exist", 10*time.Second)
		time.Sleep(1100 * time.Millisecond) // creation times are whole seconds: this pod must be the first
		w.pod("labelled-other-1", "1", labels, w.withPriority(7))
		w.gangSays("labelled-other", "all pods of a gang must have one", 10*time.Second)
		w.pod("labelled-1", "1", labels)
		w.waitBound("labelled", 2, 20*time.Second)
	})
	t.Run("an unreadable minimum is named", func(t *testing.T) {
		w.t = t
		w.pod("bad-0", "1", withAnnotation(koord+"name", "bad"), withAnnotation(koord+"min-available", "three"))
		w.gangSays("bad", `min-available: "three" is not a minimum`, 10*time.Second)
	})
}

// TestWaitTimeExpires (d): the members of a plan cannot all arrive, and the wait time expires. SPEC G-6, K-6, K-7.
func TestWaitTimeExpires(t *testing.T) {
	shared.installServing(t, guard, absent)
	stuck := func(w *world, options ...podOption) {
		options = append(options, gang("stuck", 3))
		w.pod("stuck-0", "4", append(options, withAbsentScheduler)...)
		w.podsFrom("stuck", 1, 2, "4", options...)
	}
	t.Run("fail marks every child", func(t *testing.T) {
		w := newWorld(t, shared)
		w.nodes(3, "4")
		stuck(w, withAnnotation(koord+"waiting-time", "4s"))
		w.must(waitFor(30*time.Second, "every child marked", func() (bool, string) {
			for _, pod := range w.list("stuck") {
				if pod.Annotations[koord+"timeout"] != "true" {
					return false, pod.Name + " is not marked"
				}
			}
			return true, ""
		}))
		w.gangSays("stuck", "wait time", 15*time.Second)
		w.podsStart("free", 3, "4", gang("free", 3))
	})
	t.Run("requeue tries again behind others", func(t *testing.T) {
		w := newWorld(t, shared)
		w.nodes(3, "4")
		stuck(w, withAnnotation(koord+"waiting-time", "3s"), withAnnotation("muster.dev/on-timeout", "requeue"))
		w.must(waitFor(10*time.Second, "a plan for the stuck gang", func() (bool, string) {
			return shared.metric("muster_reserved_holds") == 3, ""
		}))
		w.pods("other", 3, "4", gang("other", 3))
		w.staysBound("other", 0, 500*time.Millisecond)
		w.waitBound("other", 3, 30*time.Second)
		w.staysBound("stuck", 0, time.Second)
		for _, pod := range w.list("stuck") {
			if pod.Annotations[koord+"timeout"] != "" {
				t.Errorf("%s is marked as timed out under requeue", pod.Name)
			}
		}
	})
}

// TestPlainPodsBesideAGang (e): plain pods are scheduled while binds are held. In guard mode they cannot take reserved
// capacity; a plain pod of higher priority can, before the commit. SPEC K-3, K-4.
func TestPlainPodsBesideAGang(t *testing.T) {
	shared.installServing(t, guard, absent)
	w := newWorld(t, shared)
	w.nodes(4, "4")
	// One member can never arrive, so the plan stays and the others are held.
	w.pod("half-0", "4", gang("half", 3), withAbsentScheduler)
	w.pod("half-1", "4", gang("half", 3))
	w.pod("half-2", "4", gang("half", 3))
	w.must(waitFor(15*time.Second, "binds are held", func() (bool, string) { return w.metric("muster_held_binds") >= 1, "" }))
	w.pods("plain", 2, "2")
	w.waitBound("plain", 2, 5*time.Second)
	w.pod("blocked", "4")
	w.gangSays("blocked", "promised to a gang", 10*time.Second)
	w.staysBound("blocked", 0, time.Second)
	w.pod("urgent", "4", w.withPriority(1000))
	w.waitBound("urgent", 1, 15*time.Second)
	w.staysBound("half", 0, time.Second)
}

// TestNoEvictionForAGangThatCannotFit (f): a high-priority gang that cannot fit causes no eviction by kube-scheduler:
// neither at its arrival, when Muster may not have seen it yet, nor later. Victims stay listed without kubelets:
// disruptions are counted. SPEC K-9.
func TestNoEvictionForAGangThatCannotFit(t *testing.T) {
	rounds := func(t *testing.T, rounds int) (disrupted []string) {
		w := newWorld(t, shared)
		w.nodes(4, "4")
		w.podsStart("low", 4, "3")
		urgent := w.withPriority(100000)
		for round := 0; round < rounds && len(disrupted) == 0; round++ {
			name := fmt.Sprintf("high%d", round)
			w.pods(name, 6, "4", gang(name, 6), urgent)
			w.gangSays(name, "nodes are available", 15*time.Second)
			time.Sleep(time.Second)
			w.deletePods(name)
			disrupted = w.disrupted("low")
		}
		return disrupted
	}
	t.Run("as shipped", func(t *testing.T) {
		shared.install(t, guard, "")
		if disrupted := rounds(t, 8); len(disrupted) != 0 {
			t.Errorf("evicted for a gang that cannot start: %v", disrupted)
		}
	})
	// The count above would show an eviction.
	t.Run("without preemptVerb", func(t *testing.T) {
		shared.editScheduler = func(config map[string]any) {
			for _, extender := range config["extenders"].([]any) {
				delete(extender.(map[string]any), "preemptVerb")
			}
		}
		defer func() { shared.editScheduler = nil }()
		shared.install(t, guard, "")
		if disrupted := rounds(t, 8); len(disrupted) == 0 {
			t.Error("no pod was evicted: the test would not see an eviction")
		}
	})
}

// TestAGangThatCannotStartDelaysNoOther: kube-scheduler finds no node for a member, for reasons that Muster does not
// know: a claim that does not exist, a volume that no node can reach. Its gang delays no other gang, and its reason has
// the text of kube-scheduler. SPEC K-5, K-7, P-6.
func TestAGangThatCannotStartDelaysNoOther(t *testing.T) {
	shared.install(t, guard, "")
	hindrances := map[string]func(*world) podOption{
		"claim":  func(*world) podOption { return withClaim("missing") },
		"volume": (*world).withVolumeElsewhere,
	}
	for name, hindrance := range hindrances {
		gatedAndNot(t, name, func(w *world, gated bool) {
			w.nodes(4, "4")
			broken := gateIf(gated, gang("broken", 4), w.withPriority(100))
			w.pods("broken", 3, "4", broken...)
			w.pod("broken-3", "4", append(broken, hindrance(w))...)
			time.Sleep(2 * time.Second)
			// A stream of gangs that fit: none waits longer than moments, also when the broken one is tried again.
			var longest time.Duration
			for i := 0; i < 12; i++ {
				small := fmt.Sprintf("small%d", i)
				start := time.Now()
				w.pods(small, 2, "4", gateIf(gated, gang(small, 2))...)
				w.waitBound(small, 2, 10*time.Second)
				longest = max(longest, time.Since(start))
				w.deletePods(small)
			}
			fmt.Printf("FIGURE cannot start: %s, gated=%v: the longest of 12 gangs beside it waited %.2f s\n", name, gated,
				longest.Seconds())
			if longest > 4*time.Second {
				w.t.Errorf("a gang that fits waited %v", longest)
			}
			w.staysBound("broken", 0, time.Second)
			w.must(waitFor(10*time.Second, "the reason names the member and what kube-scheduler says", func() (bool, string) {
				why := w.why("broken")
				return strings.Contains(why, "broken-3") && strings.Contains(why, "nodes are available"), why
			}))
		})
	}
}

// TestDeletedWhileHeld (g): a member that is deleted while it is held frees its capacity at once. SPEC K-14.
func TestDeletedWhileHeld(t *testing.T) {
	shared.installServing(t, guard, absent)
	w := newWorld(t, shared)
	w.nodes(2, "4")
	w.pod("pair-0", "4", gang("pair", 2), withAbsentScheduler)
	w.pod("pair-1", "4", gang("pair", 2))
	w.must(waitFor(15*time.Second, "a held bind", func() (bool, string) { return w.metric("muster_held_binds") == 1, "" }))
	w.deletePods("pair-1")
	w.pods("plain", 2, "4")
	w.waitBound("plain", 2, 10*time.Second)
}

// TestKilled (h): musterd, and separately kube-scheduler, is killed while half a gang is held, and in the middle of a
// binding burst. SPEC K-4, K-13, K-14.
func TestKilled(t *testing.T) {
	victims := map[string]func(t *testing.T, w *world){
		"musterd": func(t *testing.T, w *world) {
			w.muster.kill()
			w.must(w.startMuster(""))
		},
		"kube-scheduler": func(t *testing.T, w *world) {
			w.scheduler.kill()
			w.must(w.startScheduler(guard))
		},
	}
	for name, kill := range victims {
		t.Run(name+" while half a gang is held", func(t *testing.T) {
			shared.installServing(t, guard, absent)
			w := newWorld(t, shared)
			w.nodes(8, "4")
			// No call comes for the eighth: the plan stays and the others are held.
			w.pods("half", 7, "4", gang("half", 8))
			w.pod("half-7", "4", gang("half", 8), withAbsentScheduler)
			w.must(waitFor(15*time.Second, "binds are held", func() (bool, string) { return w.metric("muster_held_binds") >= 3, "" }))
			watch.allow(30 * time.Second)
			defer watch.allow(0)
			kill(t, w)
			w.staysBound("half", 0, 500*time.Millisecond)
			w.deletePods("half-7")
			w.pod("half-8", "4", gang("half", 8))
			w.waitBound("half", 8, 60*time.Second)
		})
		t.Run(name+" while a binding burst is half done", func(t *testing.T) {
			w := newWorldWith(t, guard, "")
			w.nodes(40, "4")
			watch.allow(30 * time.Second)
			defer watch.allow(0)
			w.pods("burst", 40, "4", gang("burst", 40), withGate)
			w.awaitBurst("burst")
			kill(t, w)
			w.waitBound("burst", 40, 60*time.Second)
		})
	}
}

// TestKilledAgainAndAgain: kill -9 of musterd at any moment of a gang's start, repeatedly: each gang starts whole, and
// no action is taken for a deleted gang. The recordings of all lives replay to the same decisions. MUSTER_KILLS: number
// of kills (5).
func TestKilledAgainAndAgain(t *testing.T) {
	kills := 5
	if text := os.Getenv("MUSTER_KILLS"); text != "" {
		if _, err := fmt.Sscan(text, &kills); err != nil {
			t.Fatalf("MUSTER_KILLS=%q: expected a number", text)
		}
	}
	recording := filepath.Join(t.TempDir(), "muster.rec")
	record := fmt.Sprintf("\nrecording: {file: %s}\n", recording)
	w := newWorldWith(t, guard, record)
	w.nodes(24, "4")
	random := rand.New(rand.NewSource(int64(kills)))
	var slowest time.Duration
	for i := range kills {
		name := fmt.Sprintf("life%d", i)
		watch.allow(30 * time.Second)
		w.pods(name, 24, "4", gateIf(i%2 == 0, gang(name, 24))...)
		time.Sleep(time.Duration(random.Intn(600)) * time.Millisecond)
		w.muster.kill()
		begun := time.Now()
		w.must(w.startMuster(record))
		slowest = max(slowest, time.Since(begun))
		w.waitBound(name, 24, 60*time.Second)
		w.deletePods(name)
	}
	watch.allow(0)
	w.must(w.muster.stop())
	files, err := filepath.Glob(recording + "*")
	w.must(err)
	if len(files) != kills+1 {
		t.Errorf("%d recordings; expected one of each of %d lives: %v", len(files), kills+1, files)
	}
	last := fmt.Sprintf("%s/life%d", w.namespace, kills-1)
	musterctl := filepath.Join(filepath.Dir(shared.musterd), "musterctl")
	out, err := exec.Command(musterctl, append([]string{"replay", "--check", "--explain", last}, files...)...).CombinedOutput()
	for _, want := range []string{"outcomes are as recorded, and so is the state when musterd stopped", "Binding: permitted", "Satisfied: the minimum is placed"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("musterctl replay --check: %v; expected %q in:\n%s", err, want, out)
		}
	}
	fmt.Printf("FIGURE kill -9 under kube-scheduler: %d kills, every gang started whole, ready again within %v\n", kills, slowest.Round(time.Millisecond))
}

// TestTraced (S-4): from the first call to the last binding, a gang's start is one trace, and its spans show where the
// time went.
func TestTraced(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.nodes(4, "4")
	w.podsStart("traced", 4, "4", gang("traced", 4), withGate)
	type span struct {
		TraceID, SpanID, ParentSpanID, Name, Pod, Outcome string
		DurationUs, Pods                                  int64
		PartsUs                                           map[string]int64
	}
	var trace struct{ Spans []span }
	w.must(waitFor(10*time.Second, "the start is told", func() (bool, string) {
		body, status, err := httpGet(fmt.Sprintf("http://127.0.0.1:%d/traces?gang=%s/traced", w.adminPort, w.namespace))
		if err != nil || status != 200 {
			return false, fmt.Sprint(status, err)
		}
		trace.Spans = nil
		if err := json.Unmarshal([]byte(body), &trace); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(trace.Spans, func(s span) bool { return s.Name == "gang start" }), body
	}))
	by := map[string][]span{}
	for _, each := range trace.Spans {
		by[each.Name] = append(by[each.Name], each)
	}
	if len(by["gang start"]) != 1 || len(by["binding"]) != 4 || len(by["filter"]) < 4 {
		t.Fatalf("%d starts, %d bindings, %d filters; expected 1, 4, and 4 or more", len(by["gang start"]), len(by["binding"]), len(by["filter"]))
	}
	start := by["gang start"][0]
	if start.Pods != 4 {
		t.Errorf("%d pods were let go; expected 4", start.Pods)
	}
	bound := 0
	for _, bind := range by["bind"] {
		if bind.TraceID != start.TraceID || bind.ParentSpanID != start.SpanID {
			t.Errorf("bind of %s is not part of its gang's start", bind.Pod)
		}
		if bind.Outcome == "bound" {
			bound++
			if bind.PartsUs["bound"] <= 0 || bind.PartsUs["bound"] > bind.DurationUs {
				t.Errorf("bind of %s: %v of %d us", bind.Pod, bind.PartsUs, bind.DurationUs)
			}
		}
	}
	if bound != 4 {
		t.Errorf("%d binds say bound; expected 4", bound)
	}
}

// TestStoppedInABurst: a musterd that receives SIGTERM finishes the current burst, and its store has no open start when
// it starts again.
func TestStoppedInABurst(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.nodes(40, "4")
	w.pods("burst", 40, "4", gang("burst", 40), withGate)
	w.awaitBurst("burst")
	w.must(w.muster.stop())
	if bound := w.bound("burst"); bound != 40 {
		t.Errorf("%d of 40 are bound when musterd has ended", bound)
	}
	w.must(w.startMuster(""))
	w.pods("next", 40, "4", gang("next", 40), withGate)
	w.staysBound("next", 0, time.Second)
	w.deletePods("burst")
	w.waitBound("next", 40, 60*time.Second)
}

// TestStoppedWhileTheAPIServerHangs (docs/explanation/restarts.md): in the middle of a burst the API server stops
// answering. musterd still stops within 25 s, and the next one first completes the interrupted start.
func TestStoppedWhileTheAPIServerHangs(t *testing.T) {
	const size = 200
	w := newWorldWith(t, guard, "")
	w.nodes(20, "4")
	watch.allow(60 * time.Second)
	defer watch.allow(0)
	w.pods("half", size, "0.4", gang("half", size), withGate)
	w.awaitBurst("half")
	w.apiserver.pause()
	begun := time.Now()
	stopped := w.muster.stopWithin(25 * time.Second)
	took := time.Since(begun)
	w.apiserver.resume()
	w.must(stopped)
	fmt.Printf("FIGURE musterd stopped in %.1f s beside an API server that hangs (target < 25 s)\n", took.Seconds())
	if bound := w.bound("half"); bound == size {
		t.Fatalf("the burst was over before the API server hung: the test shows nothing")
	}
	w.pods("next", size, "0.4", gang("next", size), withGate)
	w.must(w.startMuster(""))
	w.waitBound("half", size, 60*time.Second)
	w.staysBound("next", 0, time.Second)
}

// TestContention (i): 20 gangs of 8 with room for 10. Ten start promptly; ten wait, say why, and start as room appears.
func TestContention(t *testing.T) {
	w := newWorldWith(t, guard, "")
	w.nodes(20, "4")
	start := time.Now()
	each(20, func(g int) {
		name := fmt.Sprintf("g%02d", g)
		for i := 0; i < 8; i++ {
			w.pod(fmt.Sprintf("%s-%d", name, i), "1", gang(name, 8))
		}
	})
	whole := func() (int, string) {
		bound := map[string]int{}
		for g := 0; g < 20; g++ {
			bound[fmt.Sprintf("g%02d", g)] = 0
		}
		for _, pod := range w.everyPod() {
			if pod.Spec.NodeName != "" {
				bound[strings.SplitN(pod.Name, "-", 2)[0]]++
			}
		}
		n := 0
		for _, count := range bound {
			if count == 8 {
				n++
			}
		}
		return n, fmt.Sprint(bound)
	}
	w.must(waitFor(30*time.Second, "ten gangs whole", func() (bool, string) { n, state := whole(); return n == 10, state }))
	fmt.Printf("FIGURE contention: 10 of 20 gangs of 8 in %.2f s (target < 3 s)\n", time.Since(start).Seconds())
	var waiting, running []string
	for g := 0; g < 20; g++ {
		name := fmt.Sprintf("g%02d", g)
		if w.bound(name) == 8 {
			running = append(running, name)
		} else {
			waiting = append(waiting, name)
		}
	}
	for _, name := range waiting {
		w.gangSays(name, "of 8 members", 15*time.Second)
	}
	for _, name := range running[:5] {
		w.deletePods(name)
	}
	w.must(waitFor(30*time.Second, "fifteen started in all", func() (bool, string) { n, state := whole(); return n == 10, state }))
}
