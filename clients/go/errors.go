package muster

import (
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Violation is an invalid field, with what was expected.
type Violation struct {
	Field       string
	Description string
}

// Error is a call that musterd refused, or that did not reach it.
type Error struct {
	Code       codes.Code
	Message    string
	Violations []Violation
	// Reason is for programs, for example SEND_SNAPSHOT; often empty.
	Reason string
	// Again reports that the same call may succeed later: nothing happened, or musterd asks for a retry.
	Again bool
	// The error of the call, as gRPC returned it.
	cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// GRPCStatus returns the status with its details, for status.FromError, status.Convert and status.Code.
func (e *Error) GRPCStatus() *status.Status {
	if e.cause == nil {
		return status.New(e.Code, e.Message)
	}
	return status.Convert(e.cause)
}

// Unwrap returns the error of the call, as gRPC returned it.
func (e *Error) Unwrap() error { return e.cause }

// NeedsSnapshot reports that a snapshot is required: an update came after a gap, musterd's store does not have the
// earlier steps, or another announcer took over.
func NeedsSnapshot(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Reason == "SEND_SNAPSHOT"
}

func errorOf(err error) *Error {
	s := status.Convert(err)
	out := &Error{Code: s.Code(), Message: s.Message(), Again: s.Code() == codes.Unavailable, cause: err}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				out.Violations = append(out.Violations, Violation{Field: v.GetField(), Description: v.GetDescription()})
			}
		case *errdetails.ErrorInfo:
			out.Reason = d.GetReason()
		case *errdetails.RetryInfo:
			out.Again = true
		}
	}
	return out
}
