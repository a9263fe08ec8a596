package muster

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "muster.dev/clients/go/musterv1"
)

// SubmitGang places a gang as a whole. The same request id again returns its current state.
func (c *Client) SubmitGang(ctx context.Context, request *pb.SubmitGangRequest) (*pb.Submission, error) {
	withID(&request.RequestId)
	return call(ctx, c, request, c.placements.SubmitGang)
}

// ConfirmGang accepts the plan that the submission shows.
func (c *Client) ConfirmGang(ctx context.Context, submission *pb.Submission) (*pb.Submission, error) {
	return call(ctx, c, &pb.ConfirmGangRequest{Id: submission.GetId(), Plan: submission.GetPlan()}, c.placements.ConfirmGang)
}

// AbandonGang releases the plan.
func (c *Client) AbandonGang(ctx context.Context, id string) (*pb.Submission, error) {
	return call(ctx, c, &pb.AbandonGangRequest{Id: id}, c.placements.AbandonGang)
}

// GetSubmission returns the current state of a submitted gang. The call renews a waiting gang.
func (c *Client) GetSubmission(ctx context.Context, id string) (*pb.Submission, error) {
	return call(ctx, c, &pb.GetSubmissionRequest{Id: id}, c.placements.GetSubmission)
}

// ListSubmissions lists the submissions of a namespace, or of all when it is empty, that have not ended, and the last ones
// that have. The call renews none.
func (c *Client) ListSubmissions(ctx context.Context, namespace string) ([]*pb.Submission, error) {
	return pages(ctx, c, &pb.ListSubmissionsRequest{Namespace: namespace}, c.placements.ListSubmissions,
		(*pb.ListSubmissionsResponse).GetSubmissions, func(r *pb.ListSubmissionsRequest, token string) { r.PageToken = token })
}

// WatchSubmission calls event with the state of a submitted gang and then with every change, until it ends. Meanwhile a
// waiting gang does not expire.
func (c *Client) WatchSubmission(ctx context.Context, id string, event func(*pb.Submission) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.placements.WatchSubmission(ctx, &pb.WatchSubmissionRequest{Id: id})
	return each(stream, err, event)
}

// WatchSubmissions calls event with every submission that has not ended and then with every change. It renews none.
func (c *Client) WatchSubmissions(ctx context.Context, namespace string, event func(*pb.SubmissionEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.placements.WatchSubmissions(ctx, &pb.WatchSubmissionsRequest{Namespace: namespace})
	return each(stream, err, event)
}

// PlaceGangs makes many calls on one stream, at a fraction of the cost of a call each. Each element of calls is sent as
// one message. result receives the answers in the order of the calls; an answer is an error or a submission (ResultError
// returns the error). It returns nil when calls is closed and everything is answered. After a broken stream, send again
// what was not answered: a call with the same id has no second effect. Submissions need a RequestId. When PlaceGangs
// returns, it reads no more from calls; their sender must not block then.
func (c *Client) PlaceGangs(ctx context.Context, calls <-chan []*pb.PlacementCall, result func(*pb.PlacementResult) error) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.placements.PlaceGangs(ctx)
	if err != nil {
		cancel()
		return errorOf(err)
	}
	var unanswered atomic.Int64
	writer := make(chan struct{})
	defer func() {
		cancel()
		<-writer
	}()
	go func() {
		defer close(writer)
		for {
			select {
			case <-ctx.Done():
				return
			case batch, more := <-calls:
				// The reader returns the error of a stream that breaks.
				if !more {
					_ = stream.CloseSend()
					return
				}
				unanswered.Add(int64(len(batch)))
				if stream.Send(&pb.PlaceGangsRequest{Calls: batch}) != nil {
					return
				}
			}
		}
	}()
	err = each(stream, nil, func(response *pb.PlaceGangsResponse) error {
		unanswered.Add(-int64(len(response.GetResults())))
		for _, one := range response.GetResults() {
			if failure := result(one); failure != nil {
				return failure
			}
		}
		return nil
	})
	if left := unanswered.Load(); err == nil && left != 0 {
		return errorOf(status.Errorf(codes.Internal, "%d calls have no answer: musterd could not read them", left))
	}
	return err
}

// ResultError returns why a call of PlaceGangs was refused; nil: it was not.
func ResultError(result *pb.PlacementResult) error {
	if result.GetError() == nil {
		return nil
	}
	return errorOf(status.ErrorProto(result.GetError()))
}

// WaitPlanned returns when a submitted gang has a plan, or has ended. Meanwhile a waiting gang does not expire.
func (c *Client) WaitPlanned(ctx context.Context, id string) (*pb.Submission, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.placements.WatchSubmission(ctx, &pb.WatchSubmissionRequest{Id: id})
	if err != nil {
		return nil, errorOf(err)
	}
	for {
		now, err := stream.Recv()
		if err != nil {
			return nil, errorOf(err)
		}
		if now.GetState() != pb.Submission_STATE_WAITING {
			return now, nil
		}
	}
}

// PreFilter asks whether the pod may be tried in this cycle.
func (c *Client) PreFilter(ctx context.Context, podUID string) (*pb.PreFilterResponse, error) {
	return call(ctx, c, &pb.PreFilterRequest{RequestId: NewRequestID(), PodUid: podUID}, c.decisions.PreFilter)
}

// Filter returns the nodes on which the pod fits now, best first; without nodes, it considers all.
func (c *Client) Filter(ctx context.Context, podUID string, nodes ...string) (*pb.FilterResponse, error) {
	return call(ctx, c, &pb.FilterRequest{PodUid: podUID, Nodes: nodes}, c.decisions.Filter)
}

// Prioritize returns scores from 0 to 100.
func (c *Client) Prioritize(ctx context.Context, podUID string, nodes ...string) (*pb.PrioritizeResponse, error) {
	return call(ctx, c, &pb.PrioritizeRequest{PodUid: podUID, Nodes: nodes}, c.decisions.Prioritize)
}

// Permit calls event with WAIT, then with PERMIT or REJECT. When ctx ends or event returns an error, the slot is
// released.
func (c *Client) Permit(ctx context.Context, request *pb.PermitRequest, event func(*pb.PermitEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.decisions.Permit(ctx, request)
	return each(stream, err, event)
}

// PermitWait returns the PERMIT or REJECT that ends a Permit.
func (c *Client) PermitWait(ctx context.Context, podUID, node string) (*pb.PermitEvent, error) {
	var last *pb.PermitEvent
	err := c.Permit(ctx, &pb.PermitRequest{PodUid: podUID, Node: node}, func(event *pb.PermitEvent) error {
		last = event
		return nil
	})
	return last, err
}

// PostFilter reports that no node was found for the pod.
func (c *Client) PostFilter(ctx context.Context, podUID, message string) error {
	request := &pb.PostFilterRequest{RequestId: NewRequestID(), PodUid: podUID, Message: message}
	_, err := call(ctx, c, request, c.decisions.PostFilter)
	return err
}

// Unreserve releases the pod's slot.
func (c *Client) Unreserve(ctx context.Context, podUID string, cause pb.UnreserveRequest_Cause) error {
	request := &pb.UnreserveRequest{RequestId: NewRequestID(), PodUid: podUID, Cause: cause}
	_, err := call(ctx, c, request, c.decisions.Unreserve)
	return err
}

// PostBind reports that the pod is bound.
func (c *Client) PostBind(ctx context.Context, podUID, node string) error {
	request := &pb.PostBindRequest{RequestId: NewRequestID(), PodUid: podUID, Node: node}
	_, err := call(ctx, c, request, c.decisions.PostBind)
	return err
}

type receiver[Message any] interface{ Recv() (*Message, error) }

// each calls use with every message of a stream.
func each[Message any](stream receiver[Message], err error, use func(*Message) error) error {
	for {
		if err != nil {
			return errorOf(err)
		}
		var message *Message
		message, err = stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			continue
		}
		if failure := use(message); failure != nil {
			return failure
		}
	}
}
