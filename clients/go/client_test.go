// The Go client against a running musterd (SPEC S-1), whose path is in $MUSTERD.
package muster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	muster "muster.dev/clients/go"
	pb "muster.dev/clients/go/musterv1"
)

const gpu = "nvidia.com/gpu"

// startMusterd returns the gRPC address of a new musterd for this test.
func startMusterd(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MUSTERD")
	if path == "" {
		t.Fatal("$MUSTERD must be the path of a musterd")
	}
	folder := t.TempDir()
	config := filepath.Join(folder, "musterd.yaml")
	text := "log: {format: text}\nkubernetes: {enabled: false}\nqueues: {tree: [{name: team, limit: {cpu: 2}, namespaces: ['*']}]}\n" +
		"listen: {admin: 127.0.0.1:0, grpc: 127.0.0.1:0, extender: 127.0.0.1:0, bind: 127.0.0.1:0}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	logPath := filepath.Join(folder, "log")
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "--config", config)
	command.Stdout, command.Stderr = log, log
	command.Dir = folder // where its store is created
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for i := 0; i < 500; i++ {
		said, _ := os.ReadFile(logPath)
		if found := regexp.MustCompile(`gRPC (\d+)`).FindSubmatch(said); found != nil {
			return "127.0.0.1:" + string(found[1])
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("musterd does not come up")
	return ""
}

func newClient(t *testing.T, server string) *muster.Client {
	t.Helper()
	client, err := muster.New(muster.Options{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func context10(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func describe(t *testing.T, client *muster.Client) {
	t.Helper()
	part := &pb.SendSnapshotRequest{Source: "test", Version: 1}
	for _, name := range []string{"a", "b"} {
		part.Nodes = append(part.Nodes, &pb.NodeFacts{Name: name, Allocatable: map[string]string{"cpu": "8", gpu: "4"}})
	}
	if _, err := client.SendSnapshot(context10(t), part); err != nil {
		t.Fatal(err)
	}
}

func submission(name, id string, count int32, ttl time.Duration) *pb.SubmitGangRequest {
	return &pb.SubmitGangRequest{
		RequestId: id,
		Gang:      &pb.GangSpec{Name: name, MinMember: count},
		Members:   []*pb.MemberSet{{Count: count, Shape: &pb.PodShape{Requests: map[string]string{gpu: "1"}}}},
		Ttl:       durationpb.New(ttl),
	}
}

func charged(t *testing.T, client *muster.Client) (reserved, used int) {
	t.Helper()
	nodes, err := client.ListNodes(context10(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		var r, u int
		_, _ = fmt.Sscan(node.GetReserved()[gpu], &r)
		_, _ = fmt.Sscan(node.GetUsed()[gpu], &u)
		reserved, used = reserved+r, used+u
	}
	return reserved, used
}

func TestQueues_ReportTheirState(t *testing.T) {
	client := newClient(t, startMusterd(t))
	describe(t, client)
	queues, err := client.ListQueues(context10(t))
	if err != nil || len(queues) != 2 {
		t.Fatalf("%v, %v; want team and default", queues, err)
	}
	request := submission("g", "", 1, time.Minute)
	request.Gang.Queue = "team"
	if _, err := client.SubmitGang(context10(t), request); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		team, err := client.GetQueue(context10(t), "team")
		if err != nil {
			t.Fatal(err)
		}
		if team.GetLimit()["cpu"] == "2" && team.GetUsed()[gpu] == "1" && team.GetRunningGangs() == 1 {
			return
		}
	}
	t.Error("nothing of the gang is seen in its queue")
}

func TestTheExampleSchedulesThreeGangs(t *testing.T) {
	server := startMusterd(t)
	command := exec.Command("go", "run", "./examples/orchestrator")
	command.Env = append(os.Environ(), "MUSTER_SERVER="+server)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"train STATE_CONFIRMED 8 pods", "serve STATE_CONFIRMED 4 pods", "sweep STATE_CONFIRMED 10 pods"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if _, used := charged(t, newClient(t, server)); used != 22 {
		t.Errorf("%d GPUs are used, want 22", used)
	}
}

// TestHelperSubmitAndDie is the client that is killed: it runs in a process of its own.
func TestHelperSubmitAndDie(t *testing.T) {
	server := os.Getenv("MUSTER_TEST_SUBMIT_AND_DIE")
	if server == "" {
		return
	}
	client := newClient(t, server)
	if _, err := client.SubmitGang(context10(t), submission("left", "", 4, 1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	time.Sleep(time.Minute)
}

func TestAKilledClientLeavesNoReservationAfterTheTTL(t *testing.T) {
	server := startMusterd(t)
	client := newClient(t, server)
	describe(t, client)
	command := exec.Command(os.Args[0], "-test.run=TestHelperSubmitAndDie")
	command.Env = append(os.Environ(), "MUSTER_TEST_SUBMIT_AND_DIE="+server)
	if err := command.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the client was not killed: %v", err)
	}
	if reserved, _ := charged(t, client); reserved != 4 {
		t.Fatalf("%d reserved before the TTL, want 4", reserved)
	}
	for i := 0; i < 100; i++ {
		if reserved, _ := charged(t, client); reserved == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the reservation is still there")
}

func TestARepeatedRequestReservesOnce(t *testing.T) {
	client := newClient(t, startMusterd(t))
	describe(t, client)
	var wait sync.WaitGroup
	for i := 0; i < 20; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			if _, err := client.SubmitGang(context10(t), submission("once", "the-same", 3, time.Minute)); err != nil {
				t.Error(err)
			}
		}()
	}
	wait.Wait()
	if reserved, _ := charged(t, client); reserved != 3 {
		t.Errorf("%d reserved, want 3", reserved)
	}
}

func TestPermitPodByPod(t *testing.T) {
	client := newClient(t, startMusterd(t))
	describe(t, client)
	update := &pb.UpdateFactsRequest{}
	for _, uid := range []string{"u0", "u1"} {
		update.Pods = append(update.Pods, &pb.PodFacts{Uid: uid, Name: uid, Gang: "verbs",
			Declaration: &pb.GangSpec{MinMember: 2}, Shape: &pb.PodShape{Requests: map[string]string{"cpu": "1"}}})
	}
	if _, err := client.UpdateFacts(context10(t), update); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := client.PermitWait(short, "u0", "a"); err == nil {
		t.Fatal("half a gang was permitted")
	}
	verdict := make(chan pb.PermitEvent_Verdict, 1)
	go func() {
		event, err := client.PermitWait(context10(t), "u0", "a")
		if err != nil {
			t.Error(err)
		}
		verdict <- event.GetVerdict()
	}()
	for {
		gang, err := client.GetGang(context10(t), "default", "verbs")
		if err != nil {
			t.Fatal(err)
		}
		if gang.GetCounts().GetWaiting() == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	event, err := client.PermitWait(context10(t), "u1", "a")
	if err != nil || event.GetVerdict() != pb.PermitEvent_VERDICT_PERMIT || <-verdict != pb.PermitEvent_VERDICT_PERMIT {
		t.Errorf("%v, %v; want both permitted", event, err)
	}
	if err := client.PostBind(context10(t), "u0", "a"); err != nil {
		t.Error(err)
	}
}

func TestErrorsNameFieldsAndReasons(t *testing.T) {
	client := newClient(t, startMusterd(t))
	_, err := client.CreateGang(context10(t), &pb.CreateGangRequest{Gang: &pb.GangSpec{Name: "Not A Name"}})
	failure, ok := err.(*muster.Error)
	if !ok || failure.Code != codes.InvalidArgument || len(failure.Violations) != 1 || failure.Violations[0].Field != "gang.name" {
		t.Errorf("%#v", err)
	}
	if status.Code(err) != codes.InvalidArgument || len(status.Convert(err).Details()) != 1 || errors.Unwrap(err) == nil {
		t.Errorf("%#v is no status of gRPC with details", err)
	}
	if _, err := client.UpdateFacts(context10(t), &pb.UpdateFactsRequest{Source: "test", Version: 3}); !muster.NeedsSnapshot(err) {
		t.Errorf("%v; want a snapshot to be asked for", err)
	}
	begun := time.Now()
	_, err = client.UpdateFacts(context10(t), &pb.UpdateFactsRequest{Manifests: []string{strings.Repeat(" ", 5<<20)}})
	if failure, ok := err.(*muster.Error); !ok || failure.Code != codes.ResourceExhausted || failure.Again {
		t.Errorf("%#v", err)
	}
	if time.Since(begun) > 8*time.Second {
		t.Error("what stays too large was sent again until the time was over")
	}
	if _, err := muster.New(muster.Options{Server: "muster.example:9091", Token: "secret"}); err == nil {
		t.Error("the token would be sent unencrypted")
	}
}

func TestUpdateMask_ReplacesNamedFields(t *testing.T) {
	client := newClient(t, startMusterd(t))
	total := int32(4)
	spec := &pb.GangSpec{Name: "g", MinMember: 2, TotalNumber: &total}
	if _, err := client.CreateGang(context10(t), &pb.CreateGangRequest{Gang: spec}); err != nil {
		t.Fatal(err)
	}
	gang, err := client.UpdateGang(context10(t), &pb.UpdateGangRequest{Gang: &pb.GangSpec{Name: "g", MinMember: 3}}, "min_member")
	if err != nil || gang.GetRules().GetMinMember() != 3 || gang.GetRules().GetTotalNumber() != 4 {
		t.Errorf("%v, %v", gang, err)
	}
}

func TestSubmissions_AreListedAndWatched(t *testing.T) {
	client := newClient(t, startMusterd(t))
	describe(t, client)
	for _, name := range []string{"a", "b"} {
		if _, err := client.SubmitGang(context10(t), submission(name, "id-"+name, 2, time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := client.ListSubmissions(context10(t), "")
	if err != nil || len(list) != 2 || list[0].GetId() != "id-a" || list[1].GetGang() != "default/b" {
		t.Fatalf("%v, %v", list, err)
	}
	enough := errors.New("enough")
	open := 0
	err = client.WatchSubmissions(context10(t), "default", func(event *pb.SubmissionEvent) error {
		switch {
		case event.GetSynced():
			_, err := client.AbandonGang(context10(t), "id-a")
			return err
		case event.GetUpserted().GetState() == pb.Submission_STATE_PLANNED:
			open++
		case event.GetUpserted().GetState() == pb.Submission_STATE_ABANDONED:
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || open != 2 {
		t.Errorf("%v, %d were open, want 2", err, open)
	}
}

func TestVersion_IsTold(t *testing.T) {
	version, err := newClient(t, startMusterd(t)).Version(context10(t))
	if err != nil || version.GetApiVersion() != "muster.v1" || strings.Count(version.GetServerVersion(), ".") != 2 {
		t.Errorf("%v, %v", version, err)
	}
}

func TestPlaceGangs_AnswersInOrder(t *testing.T) {
	client := newClient(t, startMusterd(t))
	describe(t, client)
	submit := func(name, id string) *pb.PlacementCall {
		request := submission(name, id, 5, time.Minute)
		request.Confirm = true
		return &pb.PlacementCall{Call: &pb.PlacementCall_Submit{Submit: request}}
	}
	calls := make(chan []*pb.PlacementCall, 2)
	calls <- []*pb.PlacementCall{submit("a", "id-a"), submit("b", "")}
	calls <- []*pb.PlacementCall{submit("c", "id-c")}
	close(calls)
	var states []pb.Submission_State
	var failures []error
	err := client.PlaceGangs(context10(t), calls, func(result *pb.PlacementResult) error {
		states = append(states, result.GetSubmission().GetState())
		failures = append(failures, muster.ResultError(result))
		return nil
	})
	want := []pb.Submission_State{pb.Submission_STATE_CONFIRMED, pb.Submission_STATE_UNSPECIFIED, pb.Submission_STATE_WAITING}
	if err != nil || !slices.Equal(states, want) {
		t.Fatalf("%v, %v; want %v", states, err, want)
	}
	var refused *muster.Error
	if failures[0] != nil || !errors.As(failures[1], &refused) || len(refused.Violations) != 1 ||
		refused.Violations[0].Field != "submit.request_id" || failures[2] != nil {
		t.Errorf("%v", failures)
	}
	enough := errors.New("enough")
	calls = make(chan []*pb.PlacementCall, 1)
	calls <- []*pb.PlacementCall{submit("a", "id-a")}
	if err := client.PlaceGangs(context10(t), calls, func(*pb.PlacementResult) error { return enough }); err != enough {
		t.Errorf("%v; want what the callback returned", err)
	}
}

// The client offers every call of the contract.
func TestClient_OffersEveryCall(t *testing.T) {
	renamed := map[string]string{"GetFactsStatus": "FactsStatus", "GetVersion": "Version"}
	for _, service := range []any{(*pb.GangServiceClient)(nil), (*pb.NodeServiceClient)(nil), (*pb.QueueServiceClient)(nil),
		(*pb.FactsServiceClient)(nil), (*pb.DecisionServiceClient)(nil), (*pb.PlacementServiceClient)(nil),
		(*pb.EventServiceClient)(nil), (*pb.TraceServiceClient)(nil), (*pb.WhatIfServiceClient)(nil), (*pb.VersionServiceClient)(nil)} {
		calls := reflect.TypeOf(service).Elem()
		for i := 0; i < calls.NumMethod(); i++ {
			name := calls.Method(i).Name
			if to := renamed[name]; to != "" {
				name = to
			}
			if _, found := reflect.TypeOf((*muster.Client)(nil)).MethodByName(name); !found {
				t.Errorf("%s.%s is not offered", calls.Name(), name)
			}
		}
	}
}
