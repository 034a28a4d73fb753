package dronelink

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/adapters/wire"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// MaxFrame is the largest message of a drone, in bytes.
const MaxFrame = 32 << 10

// Credentials are what a connection shows. One of them may be missing.
type Credentials struct {
	TLS    *credentials.TLSInfo // nil without TLS
	Bearer string               // the token of "authorization: Bearer"
}

// Authenticator finds out which drone a connection belongs to. The error is a *Refusal.
type Authenticator interface {
	Authenticate(ctx context.Context, c Credentials) (Identity, error)
}

// pings finds connections whose drone is gone without a word, within half a minute.
var pings = keepalive.ServerParameters{
	Time: 20 * time.Second, Timeout: 10 * time.Second,
	MaxConnectionIdle: time.Minute, // of a connection without a session
}

// flowWindow is how much a drone may send before the gateway reads it: the least that gRPC allows.
const flowWindow = 64 << 10

// newGRPC returns a server of DroneLink. Connections have small buffers, since thousands
// of drones send little, and windows of a fixed size: to measure one takes a ping for each report.
func newGRPC(g Gateway, auth Authenticator, opts ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(opts,
		grpc.MaxRecvMsgSize(MaxFrame), grpc.ReadBufferSize(1<<10), grpc.WriteBufferSize(1<<10), grpc.HeaderTableSize(0),
		grpc.StaticStreamWindowSize(flowWindow), grpc.StaticConnWindowSize(flowWindow), grpc.InTapHandle(interruptible),
		grpc.MaxConcurrentStreams(100), grpc.MaxHeaderListSize(16<<10), grpc.ConnectionTimeout(helloWithin),
		grpc.KeepaliveParams(pings), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)...)
	pb.RegisterDroneLinkServer(server, &grpcLink{gateway: g, auth: auth})
	return server
}

// grpcLink is the service DroneLink.
type grpcLink struct {
	pb.UnimplementedDroneLinkServer
	gateway Gateway
	auth    Authenticator
}

// Fly implements DroneLink.
func (l *grpcLink) Fly(stream grpc.BidiStreamingServer[pb.DroneMessage, pb.GatewayMessage]) error {
	ctx := stream.Context()
	who, err := l.auth.Authenticate(ctx, credentialsOf(ctx))
	if err != nil {
		return statusOf(refuse(grpcFrames{stream}, err))
	}
	return statusOf(serve(ctx, l.gateway, who, grpcFrames{stream}))
}

// interruptKey is the key of a call's context.CancelFunc in its context.
type interruptKey struct{}

// interruptible begins each call with a context that can be cancelled. That ends a Recv that
// waits for the drone, and leaves the handler to say how the call ends.
func interruptible(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, interruptKey{}, cancel), nil
}

// credentialsOf reads what a call shows.
func credentialsOf(ctx context.Context) (c Credentials) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			c.TLS = &info
		}
	}
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) > 0 {
		c.Bearer = bearer(values[0])
	}
	return c
}

// grpcFrames are the messages of a stream.
type grpcFrames struct {
	stream grpc.BidiStreamingServer[pb.DroneMessage, pb.GatewayMessage]
}

func (f grpcFrames) Receive() (upward, error) {
	m, err := f.stream.Recv()
	if code := status.Code(err); code == codes.Internal || code == codes.ResourceExhausted {
		return upward{}, &Refusal{Reason: Undecodable, Text: status.Convert(err).Message()}
	}
	if err != nil {
		return upward{}, err
	}
	switch m := m.GetMessage().(type) {
	case *pb.DroneMessage_Hello:
		return upward{hello: m.Hello}, nil
	case *pb.DroneMessage_Goodbye:
		return upward{goodbye: true}, nil
	case *pb.DroneMessage_Report:
		// Fields that this version does not know are kept.
		data, err := proto.Marshal(m.Report.GetTelemetry())
		if err != nil {
			return upward{}, &Refusal{Reason: Undecodable, Text: err.Error()}
		}
		return upward{report: &Report{Sequence: m.Report.GetSequence(), Data: data, ContentType: wire.Protobuf.ContentType()}}, nil
	}
	return upward{}, nil
}

func (f grpcFrames) Send(m *pb.GatewayMessage) error { return f.stream.Send(m) }

// Close implements frames.
func (f grpcFrames) Close(*Refusal) {
	if cancel, is := f.stream.Context().Value(interruptKey{}).(context.CancelFunc); is {
		cancel()
	}
}

// statusOf is how a call ends: with the reason that the drone was told.
func statusOf(why *Refusal) error {
	if why == nil {
		return nil
	}
	code := codes.InvalidArgument
	switch why.Reason {
	case Unauthenticated, Expired, Revoked:
		code = codes.Unauthenticated
	case IdentityMismatch:
		code = codes.PermissionDenied
	case Superseded:
		code = codes.Aborted
	case Unavailable, Reconnect:
		code = codes.Unavailable
	case Full, SlowDown, NotReading:
		code = codes.ResourceExhausted
	case NoHello, Invalid, Undecodable, Unregistered, FutureTimestamp:
	}
	return status.Error(code, why.Error())
}
