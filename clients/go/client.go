// Package muster is the Go client of Muster, the gang-scheduling decision service.
//
// Every call takes a context; its deadline bounds the call with all retries. A call that cannot reach musterd, or that
// musterd asks to repeat, is retried with a growing pause. Mutating calls carry a request id (generated if the caller
// gives none), so that a retry has no second effect. Errors are *Error, with the invalid fields; status.Code and
// status.Convert read them too. Lists return all pages.
package muster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "muster.dev/clients/go/musterv1"
)

// Options describes the connection to musterd. CA, Cert and Key are paths of PEM files; any of them enables TLS.
type Options struct {
	// Server is "host:port"; empty: 127.0.0.1:9091.
	Server string
	CA     string
	Cert   string
	Key    string
	// ServerName is the name in the server's certificate if it differs from the host.
	ServerName string
	// Token is a bearer token; it is only sent over TLS or to a loopback address.
	Token string
	// Timeout bounds calls whose context has no deadline; 0: 10 s.
	Timeout time.Duration
}

// Client is a connection to one musterd. It is safe for concurrent use.
type Client struct {
	options    Options
	connection *grpc.ClientConn
	gangs      pb.GangServiceClient
	nodes      pb.NodeServiceClient
	queues     pb.QueueServiceClient
	facts      pb.FactsServiceClient
	decisions  pb.DecisionServiceClient
	placements pb.PlacementServiceClient
	events     pb.EventServiceClient
	traces     pb.TraceServiceClient
	whatIfs    pb.WhatIfServiceClient
	versions   pb.VersionServiceClient
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// NewRequestID returns a new request id.
func NewRequestID() string {
	var bytes [16]byte
	_, _ = rand.Read(bytes[:]) // never fails
	return hex.EncodeToString(bytes[:])
}

// New prepares a client; it connects with the first call. The error names the option that is invalid.
func New(options Options) (*Client, error) {
	if options.Server == "" {
		options.Server = "127.0.0.1:9091"
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	transport, err := options.transport()
	if err != nil {
		return nil, err
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		// Large clusters have large answers, and this server is trusted.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	}
	if options.Token != "" {
		dial = append(dial, grpc.WithPerRPCCredentials(bearer(options.Token)))
	}
	connection, err := grpc.NewClient(options.Server, dial...)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", options.Server, err)
	}
	return &Client{
		options:    options,
		connection: connection,
		gangs:      pb.NewGangServiceClient(connection),
		nodes:      pb.NewNodeServiceClient(connection),
		queues:     pb.NewQueueServiceClient(connection),
		facts:      pb.NewFactsServiceClient(connection),
		decisions:  pb.NewDecisionServiceClient(connection),
		placements: pb.NewPlacementServiceClient(connection),
		events:     pb.NewEventServiceClient(connection),
		traces:     pb.NewTraceServiceClient(connection),
		whatIfs:    pb.NewWhatIfServiceClient(connection),
		versions:   pb.NewVersionServiceClient(connection),
	}, nil
}

// Close ends every call in progress.
func (c *Client) Close() error { return c.connection.Close() }

type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// New has checked that the token is not sent in plain text to another host.
func (bearer) RequireTransportSecurity() bool { return false }

func (o Options) transport() (credentials.TransportCredentials, error) {
	if o.CA == "" && o.Cert == "" && o.Key == "" {
		host, _, err := net.SplitHostPort(o.Server)
		if err != nil {
			return nil, fmt.Errorf("server %q: %w; expected host:port", o.Server, err)
		}
		ip := net.ParseIP(host)
		if o.Token != "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("token: would be sent to %s unencrypted; expected a CA file, or a loopback address", o.Server)
		}
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA: %s has no certificate", o.CA)
		}
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("Key: expected together with Cert, both or neither")
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("Cert, Key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}

// call makes one unary call and retries it while that may help.
func call[Request, Response any](ctx context.Context, c *Client, request Request,
	method func(context.Context, Request, ...grpc.CallOption) (Response, error)) (Response, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.Timeout)
		defer cancel()
	}
	for pause := firstPause; ; pause = min(pause*2, longestPause) {
		response, err := method(ctx, request)
		if err == nil {
			return response, nil
		}
		failure := errorOf(err)
		deadline, _ := ctx.Deadline()
		if !failure.Again || time.Now().Add(pause).After(deadline) {
			return response, failure
		}
		select {
		case <-ctx.Done():
			return response, failure
		case <-time.After(pause):
		}
	}
}

// page is a response of a List call.
type page interface{ GetNextPageToken() string }

// pages makes the call for every page; next puts the token of the next one into the request.
func pages[Request any, Response page, Object any](ctx context.Context, c *Client, request Request,
	method func(context.Context, Request, ...grpc.CallOption) (Response, error),
	objects func(Response) []Object, next func(Request, string)) ([]Object, error) {
	var all []Object
	for {
		response, err := call(ctx, c, request, method)
		if err != nil {
			return nil, err
		}
		all = append(all, objects(response)...)
		if response.GetNextPageToken() == "" {
			return all, nil
		}
		next(request, response.GetNextPageToken())
	}
}

// withID fills an empty request id.
func withID(id *string) {
	if *id == "" {
		*id = NewRequestID()
	}
}
