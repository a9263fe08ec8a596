//go:build beside

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Muster beside native gang scheduling and beside plain pods, on one machine in one run: make e2e-scale.
//
// Every contender runs each case once a round, in turn, so that what else the machine does meets all of them. The
// API server and kube-scheduler have native gangs switched on for all. A figure is the median of the rounds, with its
// range; the samples are in out/beside.jsonl. Nothing is asserted but that every pod is bound and no gang is torn.

func init() {
	controlPlaneFlags = []string{"--runtime-config=scheduling.k8s.io/v1beta1=true"}
	featureGates = "GenericWorkload=true"
}

// contender is one way to place the same pods.
type contender struct {
	name    string
	install string // configuration in deploy/; empty: kube-scheduler alone
	gangs   string // how members declare their gang: "", "native" or "annotations"
	gated   bool
	root    string // a tree with another musterd; empty: this one
}

var contenders = []contender{
	{name: "plain"},
	{name: "native", gangs: "native"},
	{name: "ungated", install: guard, gangs: "annotations"},
	{name: "gated", install: guard, gangs: "annotations", gated: true},
}

// sample is what one contender took in one round of one case.
type sample struct {
	Case      string             `json:"case"`
	Contender string             `json:"contender"`
	Round     int                `json:"round"`
	Figures   map[string]float64 `json:"figures"`
}

// contest is the world of one contender in one round.
type contest struct {
	*world
	contender
	bound chan *corev1.Pod
}

// contestants returns all contenders of this run: MUSTER_BESIDE_AGAINST names trees with older programs, and
// MUSTER_BESIDE_ONLY the contenders that take part, to run a part of a case.
func contestants(names ...string) (chosen []contender) {
	if only := strings.Fields(os.Getenv("MUSTER_BESIDE_ONLY")); len(only) > 0 {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(only, name) })
	}
	all := slices.Clone(contenders)
	for _, root := range strings.Fields(os.Getenv("MUSTER_BESIDE_AGAINST")) {
		for _, c := range contenders {
			if c.install != "" {
				c.name, c.root = c.name+"@"+filepath.Base(root), root
				all = append(all, c)
			}
		}
	}
	for _, c := range all {
		if name, _, _ := strings.Cut(c.name, "@"); slices.Contains(names, name) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// compare runs a case with these contenders in every round, the later rounds in another order, and prints the figures
// beside those of `reference`.
func compare(t *testing.T, name, reference string, names []string, run func(*contest) map[string]float64) {
	rounds, err := strconv.Atoi(envOr("MUSTER_BESIDE_ROUNDS", "5"))
	must(t, err)
	out, err := os.OpenFile(shared.path("beside.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(t, err)
	defer out.Close()
	chosen := contestants(names...)
	samples := map[string][]map[string]float64{}
	for round := range rounds {
		for i := range chosen {
			c := chosen[(i+round)%len(chosen)]
			figures := runContest(t, fmt.Sprintf("%s/%s", name, c.name), c, run)
			if figures == nil {
				return
			}
			samples[c.name] = append(samples[c.name], figures)
			line, err := json.Marshal(sample{Case: name, Contender: c.name, Round: round, Figures: figures})
			must(t, err)
			_, err = fmt.Fprintln(out, string(line))
			must(t, err)
		}
	}
	for _, figure := range figureNames(samples) {
		for _, c := range chosen {
			if _, has := samples[c.name][0][figure]; !has {
				continue
			}
			values, of := series(samples[c.name], figure), series(samples[reference], figure)
			text := fmt.Sprintf("%.2f (%.2f to %.2f)", median(values), slices.Min(values), slices.Max(values))
			if c.name != reference && len(of) > 0 && median(of) > 0 {
				text += fmt.Sprintf(", %.2fx of %s", median(values)/median(of), reference)
			}
			fmt.Printf("FIGURE beside: %s: %s: %s %s\n", name, figure, c.name, text)
		}
	}
}

// runContest returns nil if the case failed.
func runContest(t *testing.T, name string, c contender, run func(*contest) map[string]float64) (figures map[string]float64) {
	home, musterd := shared.root, shared.musterd
	if c.root != "" {
		shared.root, shared.musterd = c.root, filepath.Join(c.root, "build/release/musterd")
	}
	defer func() { shared.root, shared.musterd = home, musterd }()
	shared.install(t, c.install, "")
	t.Run(name, func(t *testing.T) {
		w := newWorld(t, shared)
		here := &contest{world: w, contender: c, bound: make(chan *corev1.Pod, 100_000)}
		watch.follow(w.namespace, here.bound)
		defer watch.follow(w.namespace, nil)
		result := run(here)
		if !t.Failed() {
			figures = result
		}
	})
	return figures
}

// measured returns the CPU seconds of the processes, and the writes to the API server, while `run` runs. It adds them
// to the figures of `run`. `pods` is what the writes are divided by.
func (c *contest) measured(pods int, run func(figures map[string]float64)) map[string]float64 {
	time.Sleep(2 * time.Second) // until every watcher has seen the nodes
	used := map[string]float64{}
	for name, p := range c.processes() {
		used[name] = -cpuSeconds(p)
	}
	before := c.writes()
	figures := map[string]float64{}
	run(figures)
	time.Sleep(2 * time.Second) // Events and statuses that are written later count too
	total := 0.0
	for name, p := range c.processes() {
		used[name] += cpuSeconds(p)
		total += used[name]
		figures["CPU s of "+name] = used[name]
	}
	figures["CPU s"] = total
	if c.install != "" {
		figures["filter calls a pod"] = c.metric("muster_decision_seconds_count", "filter") / float64(pods)
	}
	for what, count := range c.writes() {
		figures[what+" a pod"] = (count - before[what]) / float64(pods)
	}
	return figures
}

// writes returns the number of writes that the API server has answered so far, by what concerns scheduling.
func (c *contest) writes() map[string]float64 {
	body, err := c.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	c.must(err)
	counts := map[string]float64{"binds": 0, "Events": 0, "status patches": 0, "pod patches": 0}
	for _, line := range strings.Split(string(body), "\n") {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		has := func(label, value string) bool { return strings.Contains(line, label+`="`+value+`"`) }
		var value float64
		_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &value)
		c.must(err)
		switch {
		case has("resource", "pods") && has("subresource", "binding"):
			counts["binds"] += value
		case has("resource", "events") && (has("verb", "POST") || has("verb", "PATCH") || has("verb", "PUT")):
			counts["Events"] += value
		case has("resource", "pods") && has("subresource", "status") && has("verb", "PATCH"):
			counts["status patches"] += value
		case has("resource", "pods") && has("subresource", "") && has("verb", "PATCH"):
			counts["pod patches"] += value
		}
	}
	return counts
}

// createGangs creates gangs of these sizes, named by their number from `first`; several at a time, each in the order of
// its members.
func (c *contest) createGangs(first int, sizes []int, cpu string) {
	each(len(sizes), func(i int) {
		name := fmt.Sprintf("g%05d", first+i)
		c.podsFrom(name, 0, sizes[i], cpu, c.membership(name, sizes[i])...)
	})
}

// membership makes pods members of a gang, as the contender declares it.
func (c *contest) membership(name string, size int) []podOption {
	switch c.contender.gangs {
	case "native":
		_, err := c.client.SchedulingV1beta1().PodGroups(c.namespace).Create(context.Background(), &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)}}},
		}, metav1.CreateOptions{})
		c.must(err)
		return []podOption{func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }}
	case "annotations":
		return gateIf(c.gated, gang(name, size))
	}
	return nil
}

// awaitBound returns when this many pods of the world have been bound; `each` is called for every one of them.
func (c *contest) awaitBound(pods int, limit time.Duration, each func(*corev1.Pod)) {
	timeout := time.After(limit)
	for n := range pods {
		select {
		case pod := <-c.bound:
			if each != nil {
				each(pod)
			}
		case <-timeout:
			c.t.Fatalf("%s: %d of %d pods were bound within %s", c.name, n, pods, limit)
		}
	}
}

// events watches the Events of the world.
func (c *contest) events() apiwatch.Interface {
	events, err := c.client.CoreV1().Events(c.namespace).Watch(context.Background(), metav1.ListOptions{})
	c.must(err)
	c.t.Cleanup(events.Stop)
	return events
}

func sizes(gangs, size int) []int { return slices.Repeat([]int{size}, gangs) }

// TestBesideStart: 20 gangs of 50 on 1,000 nodes with room for all.
func TestBesideStart(t *testing.T) {
	compare(t, "start 20 x 50, 1,000 nodes", "native", []string{"plain", "native", "ungated", "gated"}, func(c *contest) map[string]float64 {
		c.nodes(1000, "32")
		return c.start(sizes(20, 50), 3*time.Minute)
	})
}

// start measures from the first creation until all members are bound.
func (c *contest) start(sizes []int, limit time.Duration) map[string]float64 {
	pods := 0
	for _, size := range sizes {
		pods += size
	}
	return c.measured(pods, func(figures map[string]float64) {
		start := time.Now()
		c.createGangs(0, sizes, "1")
		figures["created s"] = time.Since(start).Seconds()
		c.awaitBound(pods, limit, nil)
		figures["s"] = time.Since(start).Seconds()
	})
}

// TestBesideContention: 20 gangs of 8 with room for 10; the first ten end, and the others take their place.
func TestBesideContention(t *testing.T) {
	compare(t, "contention 20 x 8, room for 10", "native", []string{"native", "ungated", "gated"}, func(c *contest) map[string]float64 {
		c.nodes(20, "4")
		return c.measured(160, func(figures map[string]float64) {
			start := time.Now()
			c.createGangs(0, sizes(20, 8), "1")
			first := []string{}
			c.awaitBound(80, time.Minute, func(pod *corev1.Pod) { first = append(first, pod.Name) })
			figures["first ten, s"] = time.Since(start).Seconds()
			time.Sleep(2 * time.Second) // all others have been refused
			freed := time.Now()
			each(len(first), func(i int) { c.must(c.deletePod(first[i], 0)) })
			c.awaitBound(80, time.Minute, nil)
			figures["refill, s"] = time.Since(freed).Seconds()
		})
	})
}

// TestBesideChurn: 200 gangs of 4 with room for 40; a gang ends two seconds after all of its members are bound.
func TestBesideChurn(t *testing.T) {
	compare(t, "churn 200 x 4 of 2 s, room for 40", "native", []string{"native", "ungated", "gated"}, func(c *contest) map[string]float64 {
		c.nodes(40, "4")
		return c.measured(800, func(figures map[string]float64) {
			start := time.Now()
			created := make(chan struct{})
			go func() {
				defer close(created)
				c.createGangs(0, sizes(200, 4), "1")
			}()
			c.t.Cleanup(func() { <-created })
			members := map[string][]string{}
			c.awaitBound(800, 5*time.Minute, func(pod *corev1.Pod) {
				gang := pod.Name[:strings.LastIndex(pod.Name, "-")]
				members[gang] = append(members[gang], pod.Name)
				if whole := members[gang]; len(whole) == 4 {
					time.AfterFunc(2*time.Second, func() { each(4, func(i int) { _ = c.deletePod(whole[i], 0) }) })
				}
			})
			figures["s"] = time.Since(start).Seconds()
		})
	})
}

// largeSizes are 120 gangs of 8 to 256 members, 10,000 in all.
func largeSizes() (sizes []int) {
	left := 10_000
	for i := range 120 {
		size := 8 + (i*37)%249
		if i%3 != 0 {
			size = 8 + (i*13)%80
		}
		size = min(size, left-(119-i)*8)
		if i == 119 {
			size = min(left, 256)
		}
		sizes = append(sizes, size)
		left -= size
	}
	for i := 0; left > 0; i = (i + 1) % len(sizes) {
		more := min(left, 256-sizes[i])
		sizes[i] += more
		left -= more
	}
	return sizes
}

// TestBesideLarge: 10,000 pods in gangs of 8 to 256 on 5,000 nodes with room for all.
func TestBesideLarge(t *testing.T) {
	compare(t, "10,000 pods in gangs of 8 to 256, 5,000 nodes", "native", []string{"native", "ungated", "gated"}, func(c *contest) map[string]float64 {
		c.nodes(5000, "32")
		return c.start(largeSizes(), 15*time.Minute)
	})
}

// TestBesideLargeWhileOthersWait: the same while 15,000 more pods, in gangs of 50, wait for nodes that do not exist.
// Ungated pods take no part: kube-scheduler itself then tries each of the 15,000 on all nodes, and again every five
// minutes, before it asks Muster about any; that alone takes all of its time.
func TestBesideLargeWhileOthersWait(t *testing.T) {
	compare(t, "10,000 pods in gangs of 8 to 256, 5,000 nodes, 15,000 more wait", "native", []string{"native", "gated"}, func(c *contest) map[string]float64 {
		c.nodes(5000, "32")
		const waiting = 300
		c.createGangs(1000, sizes(waiting, 50), "64")
		time.Sleep(30 * time.Second) // all have been refused
		return c.start(largeSizes(), 15*time.Minute)
	})
}

// TestBesideShapes: the shapes of the independent benchmark kube-scheduling-perf: 10,000 pods of one CPU on 1,000 nodes, as
// jobs of these sizes. The rate is of the bindings between the first and the last; the wait is from a pod's creation until
// its binding, both as the API server's watch shows them.
func TestBesideShapes(t *testing.T) {
	shared.holds = 12_000 // one of the gangs has 10,000 members
	defer func() { shared.holds = 0 }()
	for _, shape := range []struct{ gangs, size int }{{10_000, 1}, {500, 20}, {20, 500}, {1, 10_000}} {
		name := fmt.Sprintf("shape %d x %d, 1,000 nodes", shape.gangs, shape.size)
		compare(t, name, "native", []string{"plain", "native", "ungated", "gated"}, func(c *contest) map[string]float64 {
			c.nodes(1000, "16")
			return c.startShape(sizes(shape.gangs, shape.size))
		})
	}
}

// startShape is start with the rate of bindings and the wait of pods.
func (c *contest) startShape(sizes []int) map[string]float64 {
	const pods = 10_000
	return c.measured(pods, func(figures map[string]float64) {
		start := time.Now()
		created := make(chan struct{})
		go func() {
			defer close(created)
			c.createGangs(0, sizes, "1")
		}()
		c.t.Cleanup(func() { <-created })
		var first, last time.Time
		waits := make([]float64, 0, pods)
		c.awaitBound(pods, 15*time.Minute, func(pod *corev1.Pod) {
			last = time.Now()
			if first.IsZero() {
				first = last
			}
			waits = append(waits, last.Sub(pod.CreationTimestamp.Time).Seconds())
		})
		slices.Sort(waits)
		figures["s"] = last.Sub(start).Seconds()
		figures["bindings/s"] = pods / max(last.Sub(first).Seconds(), 0.001)
		figures["wait of a pod, p50, s"], figures["wait of a pod, p99, s"] = waits[pods/2], waits[pods*99/100]
	})
}

// TestBesideWaiting: 1,250 gangs of 4 wait without room: the time until a pod of each gang has an Event of Muster with
// the reason. SPEC K-11.
func TestBesideWaiting(t *testing.T) {
	const gangs = 1250
	compare(t, "reasons of 1,250 gangs of 4 without room", "gated", []string{"ungated", "gated"}, func(c *contest) map[string]float64 {
		c.nodes(100, "4")
		c.podsFrom("filler", 0, 100, "4")
		c.awaitBound(100, time.Minute, nil)
		told := c.events()
		return c.measured(gangs*4, func(figures map[string]float64) {
			start := time.Now()
			c.createGangs(0, sizes(gangs, 4), "1")
			figures["created s"] = time.Since(start).Seconds()
			seen := map[string]bool{}
			timeout := time.After(5 * time.Minute)
			for len(seen) < gangs {
				select {
				case event := <-told.ResultChan():
					if event, ok := event.Object.(*corev1.Event); ok && event.ReportingController == "muster.dev/musterd" &&
						strings.Contains(event.Message, "insufficient cpu") {
						name := event.InvolvedObject.Name
						seen[name[:strings.LastIndex(name, "-")]] = true
					}
				case <-timeout:
					c.t.Fatalf("%s: %d of %d gangs have their reason after 5 minutes", c.name, len(seen), gangs)
				}
			}
			figures["s after the last creation"] = time.Since(start).Seconds() - figures["created s"]
		})
	})
}

// TestBesidePlain: 2,000 plain pods on 1,000 nodes, without an extender and in guard mode.
func TestBesidePlain(t *testing.T) {
	guarded := contender{name: "guard", install: guard}
	contenders = append(contenders, guarded)
	defer func() { contenders = contenders[:len(contenders)-1] }()
	compare(t, "2,000 plain pods, 1,000 nodes", "plain", []string{"plain", "guard"}, func(c *contest) map[string]float64 {
		c.nodes(1000, "32")
		return c.start(sizes(20, 100), 3*time.Minute)
	})
}

// figureNames returns the figures that any contender has.
func figureNames(samples map[string][]map[string]float64) (names []string) {
	for _, rounds := range samples {
		for _, figures := range rounds {
			for name := range figures {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func series(samples []map[string]float64, figure string) (values []float64) {
	for _, figures := range samples {
		values = append(values, figures[figure])
	}
	if len(values) == 0 {
		values = []float64{0}
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
