//go:build beside

package e2e

import (
	"fmt"
	"math/rand"
	"os/exec"
	"runtime"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestStorm: 2,000 nodes under creations, deletions, replacements, cordons, kills of either process, and half of the CPU
// taken away, for MUSTER_STORM (30m). No gang is torn at any event of the API server's watch. Afterwards everything that
// fits runs. SPEC P-2, P-6, K-13, K-14.
func TestStorm(t *testing.T) {
	const nodes = 2000
	lasts, err := time.ParseDuration(envOr("MUSTER_STORM", "30m"))
	must(t, err)
	w := newWorldWith(t, guard, "")
	w.nodes(nodes, "8")
	defer watch.allow(0)
	s := &storm{world: w, random: rand.New(rand.NewSource(time.Now().UnixNano())), nodes: nodes}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		s.step()
	}
	s.calm()
	fmt.Printf("FIGURE storm: %s, steps: %v; %d gangs ran at the end, the last of them whole after %.1f s\n", lasts, s.steps, len(s.gangs), s.settled.Seconds())
}

type stormGang struct {
	name    string
	members []string
	cpu     int
	gated   bool
}

type storm struct {
	*world
	random   *rand.Rand
	nodes    int
	gangs    []*stormGang
	made     int
	demand   int // CPU that all gangs request
	cordoned map[int]bool
	steps    map[string]int
	settled  time.Duration

	lenientUntil, burnsUntil time.Time
}

func (s *storm) capacity() int { return s.nodes * 8 }

// lenient lets bursts last longer while a process is killed and started again.
func (s *storm) lenient() {
	watch.allow(60 * time.Second)
	s.lenientUntil = time.Now().Add(45 * time.Second)
}

// burn takes half of the CPU away for 20 s.
func (s *storm) burn() {
	if time.Now().Before(s.burnsUntil) {
		return
	}
	s.burnsUntil = time.Now().Add(20 * time.Second)
	for range max(1, runtime.NumCPU()/2) {
		busy := exec.Command("timeout", "20", "sh", "-c", "while :; do :; done")
		s.must(busy.Start())
		go func() { _ = busy.Wait() }()
	}
}

func (s *storm) remove(pod string) {
	s.must(waitForErr(30*time.Second, func() error {
		err := s.deletePod(pod, 0)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}))
}

// step does one of the storm's things. Demand swings around the capacity.
func (s *storm) step() {
	if s.steps == nil {
		s.steps, s.cordoned = map[string]int{}, map[int]bool{}
	}
	if time.Now().After(s.lenientUntil) {
		watch.allow(10 * time.Second) // the machine is busy
	}
	count := func(what string) { s.steps[what]++ }
	roll := s.random.Intn(1000)
	switch {
	case roll < 3:
		count("musterd killed")
		s.lenient()
		s.muster.kill()
		time.Sleep(time.Duration(s.random.Intn(2000)) * time.Millisecond)
		s.must(s.startMuster(""))
	case roll < 6:
		count("kube-scheduler killed")
		s.lenient()
		s.scheduler.kill()
		time.Sleep(time.Duration(s.random.Intn(2000)) * time.Millisecond)
		s.must(s.startScheduler(guard))
	case roll < 9:
		count("half of the CPU taken away")
		s.burn()
	case roll < 150:
		count("cordons")
		node := s.random.Intn(s.nodes)
		s.cordoned[node] = !s.cordoned[node]
		s.cordon(node, s.cordoned[node])
	case roll < 250 && len(s.gangs) > 0:
		count("members replaced")
		gang := s.gangs[s.random.Intn(len(s.gangs))]
		i := s.random.Intn(len(gang.members))
		s.remove(gang.members[i])
		gang.members[i] = fmt.Sprintf("%s-r%d", gang.name, s.made)
		s.made++
		s.member(gang, gang.members[i])
	case roll < 600 && s.demand > s.capacity()/2 || s.demand > s.capacity()*5/4:
		count("gangs deleted")
		s.drop(s.random.Intn(len(s.gangs)))
	default:
		count("gangs created")
		gang := &stormGang{name: fmt.Sprintf("s%05d", s.made), cpu: 1 + s.random.Intn(4), gated: s.random.Intn(2) == 0}
		s.made++
		for i := range 1 + s.random.Intn(24) {
			gang.members = append(gang.members, fmt.Sprintf("%s-%d", gang.name, i))
		}
		for _, name := range gang.members {
			s.member(gang, name)
		}
		s.gangs = append(s.gangs, gang)
		s.demand += gang.cpu * len(gang.members)
	}
}

func (s *storm) member(of *stormGang, name string) {
	s.pod(name, fmt.Sprint(of.cpu), gateIf(of.gated, gang(of.name, len(of.members)))...)
}

func (s *storm) cordon(node int, cordoned bool) {
	s.must(s.patchNode(fmt.Sprintf("node-%04d", node), fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, cordoned)))
}

func (s *storm) drop(i int) {
	gang := s.gangs[i]
	each(len(gang.members), func(m int) { s.remove(gang.members[m]) })
	s.demand -= gang.cpu * len(gang.members)
	s.gangs = append(s.gangs[:i], s.gangs[i+1:]...)
}

// calm ends the storm: nodes are open, and what is left fits however it is packed. All of it must run.
func (s *storm) calm() {
	time.Sleep(time.Until(s.burnsUntil))
	for node, cordoned := range s.cordoned {
		if cordoned {
			s.cordon(node, false)
		}
	}
	for s.demand > s.capacity()*6/10 {
		s.drop(0)
	}
	begun := time.Now()
	wanted := 0
	for _, gang := range s.gangs {
		wanted += len(gang.members)
	}
	s.must(waitFor(3*time.Minute, "everything that fits runs", func() (bool, string) {
		bound := 0
		for _, pod := range s.everyPod() {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		s.settled = time.Since(begun)
		if bound == wanted {
			return true, ""
		}
		time.Sleep(time.Second)
		return false, fmt.Sprintf("%d of %d pods are bound; %s", bound, wanted, s.why(""))
	}))
}
