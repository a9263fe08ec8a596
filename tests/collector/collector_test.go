// Package collector tests the spans of a real musterd with the receiver of a real OpenTelemetry collector (SPEC S-4).
package collector

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

// spans collects the received spans, by name.
type spans struct {
	mu  sync.Mutex
	all []taken
}

type taken struct {
	service string
	span    ptrace.Span
}

func (s *spans) add(_ context.Context, traces ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		service, _ := resource.Resource().Attributes().Get("service.name")
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				copied := ptrace.NewSpan()
				span.CopyTo(copied)
				s.all = append(s.all, taken{service.AsString(), copied})
			}
		}
	}
	return nil
}

func (s *spans) named(name string) []taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []taken
	for _, each := range s.all {
		if each.span.Name() == name {
			out = append(out, each)
		}
	}
	return out
}

func attribute(span ptrace.Span, key string) string {
	value, there := span.Attributes().Get(key)
	if !there {
		return ""
	}
	return value.AsString()
}

// startReceiver runs the collector's own OTLP receiver, HTTP only, on a free port.
func startReceiver(t *testing.T, into *spans) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.GRPC = configoptional.None[configgrpc.ServerConfig]()
	config.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	next, err := consumer.NewTraces(into.add)
	if err != nil {
		t.Fatal(err)
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	traces, err := factory.CreateTraces(context.Background(), settings, config, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := traces.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traces.Shutdown(context.Background()) })
	return address
}

// startMusterd runs musterd without Kubernetes; returns its extender's port and its gRPC address.
func startMusterd(t *testing.T, collector string) (extender, rpc string) {
	t.Helper()
	folder := t.TempDir()
	config := fmt.Sprintf(`kubernetes: {enabled: false}
log: {format: text}
listen: {admin: "127.0.0.1:0", grpc: "127.0.0.1:0", extender: "127.0.0.1:0", bind: "127.0.0.1:0"}
tracing: {otlp: "http://%s"}
`, collector)
	file := filepath.Join(folder, "musterd.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	logged := func() string {
		text, _ := os.ReadFile(log.Name())
		return string(text)
	}
	musterd := exec.Command(os.Getenv("MUSTERD"), "--config", file)
	musterd.Dir, musterd.Stdout, musterd.Stderr = folder, log, log
	if err := musterd.Start(); err != nil {
		t.Fatalf("MUSTERD=%q: %v; expected the path of a musterd", os.Getenv("MUSTERD"), err)
	}
	t.Cleanup(func() {
		_ = musterd.Process.Signal(os.Interrupt)
		_ = musterd.Wait()
		if t.Failed() {
			t.Log(logged())
		}
	})
	serves := regexp.MustCompile(`serves: extender (\d+), bind \d+, gRPC (\d+)`)
	for range 200 {
		if found := serves.FindStringSubmatch(logged()); found != nil {
			return found[1], "127.0.0.1:" + found[2]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("musterd does not serve:\n%s", logged())
	return "", ""
}

func musterctl(t *testing.T, rpc, input string, args ...string) {
	t.Helper()
	command := exec.Command(filepath.Join(filepath.Dir(os.Getenv("MUSTERD")), "musterctl"), append(args, "--server", rpc)...)
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("musterctl %v: %v\n%s", args, err, out)
	}
}

const cluster = `
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: w-1, namespace: d, uid: u-1, annotations: {gang.scheduling.koordinator.sh/name: waits, gang.scheduling.koordinator.sh/min-available: "2"}}
spec: {schedulerName: default-scheduler, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
`

const job = `
apiVersion: v1
kind: Pod
metadata: {name: s-1, namespace: d, uid: s-1, annotations: {gang.scheduling.koordinator.sh/name: whole, gang.scheduling.koordinator.sh/min-available: "1"}}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
`

func TestCollectorReceivesSpans(t *testing.T) {
	var got spans
	extender, rpc := startMusterd(t, startReceiver(t, &got))
	musterctl(t, rpc, cluster, "apply", "-f", "-")
	musterctl(t, rpc, job, "submit", "-f", "-", "--confirm")
	// The trace and span of a caller with its own tracing.
	const callersTrace, callersSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	ask, err := http.NewRequest("POST", "http://127.0.0.1:"+extender+"/filter",
		strings.NewReader(`{"Pod":{"metadata":{"name":"w-1","namespace":"d","uid":"u-1"}},"NodeNames":["n1"]}`))
	if err != nil {
		t.Fatal(err)
	}
	ask.Header.Set("traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()

	for range 200 {
		if len(got.named("gang start")) > 0 && len(got.named("filter")) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	start, confirm, filter := got.named("gang start"), got.named("confirm"), got.named("filter")
	if len(start) != 1 || len(confirm) != 1 || len(filter) != 1 {
		t.Fatalf("%d starts, %d confirmations, %d filters; expected one of each", len(start), len(confirm), len(filter))
	}
	root := start[0].span
	if start[0].service != "musterd" || attribute(root, "muster.gang") != "d/whole" || attribute(root, "muster.pods") != "1" {
		t.Errorf("service %q, attributes %v", start[0].service, root.Attributes().AsRaw())
	}
	for _, each := range append(got.named("submit"), confirm...) {
		if each.span.TraceID() != root.TraceID() || each.span.ParentSpanID() != root.SpanID() {
			t.Errorf("%s is not part of its gang's start", each.span.Name())
		}
		if each.span.StartTimestamp() < root.StartTimestamp() || each.span.EndTimestamp() > root.EndTimestamp() {
			t.Errorf("%s is not within its gang's start", each.span.Name())
		}
		if attribute(each.span, "muster.decided_us") == "" {
			t.Errorf("%s does not say where its time went: %v", each.span.Name(), each.span.Attributes().AsRaw())
		}
	}
	asked := filter[0].span
	if asked.TraceID().String() != callersTrace || asked.ParentSpanID().String() != callersSpan {
		t.Errorf("filter is in trace %s below %s; expected its caller's", asked.TraceID(), asked.ParentSpanID())
	}
	if asked.Links().Len() != 1 || asked.Links().At(0).TraceID() == root.TraceID() {
		t.Errorf("filter has %d links; expected one, with the start of its own gang", asked.Links().Len())
	}
	if attribute(asked, "muster.outcome") != "refused" || attribute(asked, "muster.reason") != "NotEnoughPods" ||
		attribute(asked, "k8s.pod.name") != "w-1" || attribute(asked, "k8s.namespace.name") != "d" {
		t.Errorf("filter: %v", asked.Attributes().AsRaw())
	}
}
