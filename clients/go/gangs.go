package muster

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	pb "muster.dev/clients/go/musterv1"
)

// CreateGang declares a gang.
func (c *Client) CreateGang(ctx context.Context, request *pb.CreateGangRequest) (*pb.Gang, error) {
	withID(&request.RequestId)
	return call(ctx, c, request, c.gangs.CreateGang)
}

// UpdateGang replaces the declaration of a gang, or only the named fields of it, for example "min_member".
func (c *Client) UpdateGang(ctx context.Context, request *pb.UpdateGangRequest, fields ...string) (*pb.Gang, error) {
	withID(&request.RequestId)
	if len(fields) > 0 {
		request.UpdateMask = &fieldmaskpb.FieldMask{Paths: fields}
	}
	return call(ctx, c, request, c.gangs.UpdateGang)
}

// DeleteGang removes a declaration.
func (c *Client) DeleteGang(ctx context.Context, request *pb.DeleteGangRequest) error {
	withID(&request.RequestId)
	_, err := call(ctx, c, request, c.gangs.DeleteGang)
	return err
}

// GetGang returns the gang with its members.
func (c *Client) GetGang(ctx context.Context, namespace, name string) (*pb.Gang, error) {
	return call(ctx, c, &pb.GetGangRequest{Namespace: namespace, Name: name}, c.gangs.GetGang)
}

// ExplainGang returns why the gang waits, since when, and what would end the wait.
func (c *Client) ExplainGang(ctx context.Context, namespace, name string) (*pb.ExplainGangResponse, error) {
	return call(ctx, c, &pb.ExplainGangRequest{Namespace: namespace, Name: name}, c.gangs.ExplainGang)
}

// ExplainPod returns why a pod waits, and the state of its gang.
func (c *Client) ExplainPod(ctx context.Context, namespace, name string) (*pb.ExplainPodResponse, error) {
	return call(ctx, c, &pb.ExplainPodRequest{Namespace: namespace, Name: name}, c.gangs.ExplainPod)
}

// ListGangs lists the gangs of a namespace, or of all when it is empty, without their members.
func (c *Client) ListGangs(ctx context.Context, namespace string) ([]*pb.Gang, error) {
	return pages(ctx, c, &pb.ListGangsRequest{Namespace: namespace}, c.gangs.ListGangs,
		(*pb.ListGangsResponse).GetGangs, func(r *pb.ListGangsRequest, token string) { r.PageToken = token })
}

// GetNode returns a node with its used, reserved and free capacity.
func (c *Client) GetNode(ctx context.Context, name string) (*pb.Node, error) {
	return call(ctx, c, &pb.GetNodeRequest{Name: name}, c.nodes.GetNode)
}

// ListNodes lists nodes with their used, reserved and free capacity.
func (c *Client) ListNodes(ctx context.Context) ([]*pb.Node, error) {
	return pages(ctx, c, &pb.ListNodesRequest{}, c.nodes.ListNodes,
		(*pb.ListNodesResponse).GetNodes, func(r *pb.ListNodesRequest, token string) { r.PageToken = token })
}

// WatchNodes calls event with every node and then with every change, until ctx ends or event returns an error.
func (c *Client) WatchNodes(ctx context.Context, event func(*pb.NodeEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.nodes.WatchNodes(ctx, &pb.WatchNodesRequest{})
	return each(stream, err, event)
}

// GetQueue returns a queue's declaration and current state.
func (c *Client) GetQueue(ctx context.Context, name string) (*pb.Queue, error) {
	return call(ctx, c, &pb.GetQueueRequest{Name: name}, c.queues.GetQueue)
}

// ExplainQueue returns the queue's entitlement and usage, its first waiting gang, and why that gang waits.
func (c *Client) ExplainQueue(ctx context.Context, name string) (*pb.ExplainQueueResponse, error) {
	return call(ctx, c, &pb.ExplainQueueRequest{Name: name}, c.queues.ExplainQueue)
}

// ListQueues lists the queues, parents before their children.
func (c *Client) ListQueues(ctx context.Context) ([]*pb.Queue, error) {
	return pages(ctx, c, &pb.ListQueuesRequest{}, c.queues.ListQueues,
		(*pb.ListQueuesResponse).GetQueues, func(r *pb.ListQueuesRequest, token string) { r.PageToken = token })
}

// WatchQueues calls event with every queue and then with every change, until ctx ends or event returns an error.
func (c *Client) WatchQueues(ctx context.Context, event func(*pb.QueueEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.queues.WatchQueues(ctx, &pb.WatchQueuesRequest{})
	return each(stream, err, event)
}

// ApplyQueues creates or replaces queues in one step; with Prune, it deletes all others.
func (c *Client) ApplyQueues(ctx context.Context, request *pb.ApplyQueuesRequest) error {
	withID(&request.RequestId)
	_, err := call(ctx, c, request, c.queues.ApplyQueues)
	return err
}

// DeleteQueue removes a queue.
func (c *Client) DeleteQueue(ctx context.Context, name string) error {
	_, err := call(ctx, c, &pb.DeleteQueueRequest{RequestId: NewRequestID(), Name: name}, c.queues.DeleteQueue)
	return err
}

// WatchGangs calls event with what exists and then with every change, until ctx ends or event returns an error.
func (c *Client) WatchGangs(ctx context.Context, namespace string, event func(*pb.GangEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.gangs.WatchGangs(ctx, &pb.WatchGangsRequest{Namespace: namespace})
	return each(stream, err, event)
}

// SendSnapshot announces all existing nodes and pods in one step; parts[0] names source and version. The last part is
// marked automatically: without the mark nothing is applied.
func (c *Client) SendSnapshot(ctx context.Context, parts ...*pb.SendSnapshotRequest) (*pb.FactsStatus, error) {
	if len(parts) > 0 {
		parts[len(parts)-1].Last = true
	}
	return call(ctx, c, parts, func(ctx context.Context, parts []*pb.SendSnapshotRequest, options ...grpc.CallOption) (*pb.FactsStatus, error) {
		stream, err := c.facts.SendSnapshot(ctx, options...)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if stream.Send(part) != nil {
				break // CloseAndRecv returns the reason
			}
		}
		return stream.CloseAndRecv()
	})
}

// UpdateFacts applies one step of facts, as a whole or not at all. See NeedsSnapshot.
func (c *Client) UpdateFacts(ctx context.Context, request *pb.UpdateFactsRequest) (*pb.FactsStatus, error) {
	withID(&request.RequestId)
	return call(ctx, c, request, c.facts.UpdateFacts)
}

// FactsStatus returns the current version and its announcer.
func (c *Client) FactsStatus(ctx context.Context) (*pb.FactsStatus, error) {
	return call(ctx, c, &pb.GetFactsStatusRequest{}, c.facts.GetFactsStatus)
}

// PlanGang returns where a gang would be placed, now or after a change of the cluster, or what prevents it. The
// question has no effect.
func (c *Client) PlanGang(ctx context.Context, request *pb.PlanGangRequest) (*pb.PlanGangResponse, error) {
	return call(ctx, c, request, c.whatIfs.PlanGang)
}

// GetTrace returns the decisions about a gang or a pod, and how the time was spent.
func (c *Client) GetTrace(ctx context.Context, namespace, gang, pod string) (*pb.GetTraceResponse, error) {
	return call(ctx, c, &pb.GetTraceRequest{Namespace: namespace, Gang: gang, Pod: pod}, c.traces.GetTrace)
}

// ListEvents returns Muster's decisions about pods. DroppedEvents of the response counts those before the first one that
// are no longer retained.
func (c *Client) ListEvents(ctx context.Context, namespace string, after int64) (*pb.ListEventsResponse, error) {
	all := &pb.ListEventsResponse{}
	request := &pb.ListEventsRequest{Namespace: namespace, AfterSequence: after}
	for {
		response, err := call(ctx, c, request, c.events.ListEvents)
		if err != nil {
			return nil, err
		}
		if request.PageToken == "" {
			all.DroppedEvents = response.GetDroppedEvents()
		}
		all.Events = append(all.Events, response.GetEvents()...)
		request.PageToken = response.GetNextPageToken()
		if request.PageToken == "" {
			return all, nil
		}
	}
}

// Version returns the version of the server.
func (c *Client) Version(ctx context.Context) (*pb.Version, error) {
	return call(ctx, c, &pb.GetVersionRequest{}, c.versions.GetVersion)
}

// WatchEvents calls event with the retained events and then with new ones.
func (c *Client) WatchEvents(ctx context.Context, namespace string, after int64, event func(*pb.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.events.WatchEvents(ctx, &pb.WatchEventsRequest{Namespace: namespace, AfterSequence: after})
	return each(stream, err, event)
}
