// Command kube contains the Kubernetes of the end-to-end tests in one binary: an embedded etcd, the real kube-apiserver
// and the real, unmodified kube-scheduler; the first argument selects one. One binary means one link step. Each part
// still runs as its own process, so that a test can kill it with SIGKILL.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kube etcd DIR CLIENT_URL PEER_URL | kube kube-apiserver FLAGS | kube kube-scheduler FLAGS")
		os.Exit(2)
	}
	part := os.Args[1]
	os.Args = append([]string{part}, os.Args[2:]...)
	switch part {
	case "etcd":
		if err := runEtcd(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "kube: unknown part %q: expected etcd, kube-apiserver or kube-scheduler\n", part)
		os.Exit(2)
	}
}

// runEtcd serves a single-member etcd until a signal. Its data need not survive the test, so fsync is off.
func runEtcd(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("expected DIR CLIENT_URL PEER_URL, got %q", args)
	}
	client, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	peer, err := url.Parse(args[2])
	if err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir = args[0]
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{*client}
	config.ListenPeerUrls = []url.URL{*peer}
	config.AdvertisePeerUrls = []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = 2 << 30
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
