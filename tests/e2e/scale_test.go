package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	scaleNodes = 1000
	scaleGangs = 20
	scaleSize  = 50
)

// (j) 1,000 nodes with kube-scheduler's default sampling: 20 gangs of 50 all start. Time from the first creation until all
// are bound, with gates and without, beside plain pods without any extender and plain pods in guard mode, in one run on
// one machine. The figures are reported, whatever they are (DESIGN.md, "Figures to reach").
func TestScale(t *testing.T) {
	plain := scaleRun(t, "plain pods, no extender", "")
	guarded := scaleRun(t, "plain pods, guard mode", guard)
	ungated := scaleRun(t, "gangs, ungated", guard, gangOptions)
	gated := scaleRun(t, "gangs, gated", guard, gangOptions, gateOptions)
	fmt.Printf("FIGURE scale: plain pods without extender %.2f s\n", plain.Seconds())
	fmt.Printf("FIGURE scale: plain pods in guard mode    %.2f s = %.2fx the rate (target >= 0.65x)\n", guarded.Seconds(), plain.Seconds()/guarded.Seconds())
	fmt.Printf("FIGURE scale: gangs, ungated              %.2f s = %.2fx the time (target <= 1.2x)\n", ungated.Seconds(), ungated.Seconds()/plain.Seconds())
	fmt.Printf("FIGURE scale: gangs, gated                %.2f s = %.2fx the time (target <= 0.8x)\n", gated.Seconds(), gated.Seconds()/plain.Seconds())
}

func gangOptions(g int) podOption { return gang(fmt.Sprintf("g%02d", g), scaleSize) }
func gateOptions(int) podOption   { return withGate }

func scaleRun(t *testing.T, name, install string, options ...func(int) podOption) time.Duration {
	shared.install(t, install, "")
	var took time.Duration
	t.Run(name, func(t *testing.T) {
		w := newWorld(t, shared)
		w.nodes(scaleNodes, "32")
		time.Sleep(2 * time.Second) // until every watcher has seen the nodes
		start := time.Now()
		each(scaleGangs, func(g int) {
			var chosen []podOption
			for _, option := range options {
				chosen = append(chosen, option(g))
			}
			w.pods(fmt.Sprintf("g%02d", g), scaleSize, "1", chosen...)
		})
		created := time.Since(start)
		w.must(waitFor(120*time.Second, "all bound", func() (bool, string) {
			bound := watch.everBound(w.namespace)
			return bound == scaleGangs*scaleSize, fmt.Sprint(bound, " bound")
		}))
		took = time.Since(start)
		if install != "" {
			for _, verb := range []string{"filter", "preempt", "bind"} {
				count := w.metric("muster_decision_seconds_count", verb)
				fmt.Printf("FIGURE scale: %s: %s called %.0f times, %.2f ms each\n", name, verb, count,
					1000*w.metric("muster_decision_seconds_sum", verb)/max(count, 1))
			}
			fmt.Printf("FIGURE scale: %s: %.0f wake-ups, musterd used %.2f s of CPU\n", name, w.metric("muster_calls_total"), cpuSeconds(w.muster))
		}
		fmt.Printf("FIGURE scale: %s: created in %.2f s, all bound after %.2f s\n", name, created.Seconds(), took.Seconds())
	})
	return took
}

// cpuSeconds is the user and system time that a process has used.
func cpuSeconds(p *process) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	var user, system float64
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return (user + system) / 100 // clock ticks of 10 ms
}
