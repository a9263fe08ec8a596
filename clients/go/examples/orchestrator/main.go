// A complete orchestrator: announces its nodes, submits three gangs, and starts what Muster placed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	muster "muster.dev/clients/go"
	pb "muster.dev/clients/go/musterv1"
)

func main() {
	ctx := context.Background()
	client, err := muster.New(muster.Options{Server: os.Getenv("MUSTER_SERVER")})
	check(err)
	snapshot := &pb.SendSnapshotRequest{Source: "go-example", Version: 1}
	for _, name := range []string{"gpu-a", "gpu-b", "gpu-c"} {
		node := &pb.NodeFacts{Name: name, Allocatable: map[string]string{"cpu": "64", "nvidia.com/gpu": "8"}}
		snapshot.Nodes = append(snapshot.Nodes, node)
	}
	_, err = client.SendSnapshot(ctx, snapshot)
	check(err)
	for name, members := range map[string]int32{"train": 8, "serve": 4, "sweep": 10} {
		gang, err := client.SubmitGang(ctx, &pb.SubmitGangRequest{
			Gang:    &pb.GangSpec{Name: name, MinMember: members},
			Members: []*pb.MemberSet{{Count: members, Shape: &pb.PodShape{Requests: map[string]string{"nvidia.com/gpu": "1"}}}},
			Ttl:     durationpb.New(30 * time.Second)})
		check(err)
		gang, err = client.WaitPlanned(ctx, gang.GetId())
		check(err)
		gang, err = client.ConfirmGang(ctx, gang)
		check(err)
		fmt.Println(name, gang.GetState(), len(gang.GetPlacements()), "pods")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
