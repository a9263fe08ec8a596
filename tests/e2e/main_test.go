package e2e

import (
	"fmt"
	"os"
	"testing"
)

// shared is the control plane of all tests; each test has its own namespace and nodes.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	c, err := newCluster()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the control plane does not start:", err)
		return 1
	}
	defer c.stopAll()
	stop := make(chan struct{})
	defer close(stop)
	shared = c
	if watch, err = startWatcher(c.client, stop); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	fmt.Printf("longest binding burst: %s (%s)\n", watch.longest, watch.longestOf)
	return code
}
