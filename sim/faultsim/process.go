package faultsim

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// connections join one simulated process to the servers. Once they are cut,
// nothing the process still does reaches a server: to the rest of the fleet it
// is as dead as a process killed with SIGKILL.
type connections struct {
	*connect.Clients
	conns []*grpc.ClientConn
	dead  atomic.Bool
	gate  gate
}

// gate lets everything pass unless it is shut. A process behind a shut gate is frozen
// as the rest of the fleet sees it: what it does arrives late, and it goes on without
// having noticed.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens; nil while it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// wait returns when the gate is open or ctx has ended.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return
	}
	select {
	case <-shut:
	case <-ctx.Done():
	}
}

// gatedStream is a stream through a gate.
type gatedStream struct {
	grpc.ClientStream
	gate *gate
}

func (s *gatedStream) SendMsg(m any) error {
	s.gate.wait(s.Context())
	return s.ClientStream.SendMsg(m)
}

func (s *gatedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.gate.wait(s.Context())
	return err
}

// dial opens connections for a process. Fault rules select it by owner; extra
// options apply to both servers.
func dial(ctx context.Context, hosts connect.Config, owner string, extra ...grpc.DialOption) (*connections, error) {
	c := &connections{}
	common := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
		connect.RenewPulls(),
	}, extra...)
	toFirestore, err := grpc.NewClient(hosts.FirestoreHost, append(common, append(fault.DialOptions(owner), firestorelock.DialOption())...)...)
	if err != nil {
		return nil, err
	}
	toPubSub, err := grpc.NewClient(hosts.PubSubHost, common...)
	if err != nil {
		return nil, errors.Join(err, toFirestore.Close())
	}
	c.conns = []*grpc.ClientConn{toFirestore, toPubSub}
	fs, err := firestore.NewClientWithDatabase(ctx, hosts.Project, firestore.DefaultDatabaseID, option.WithGRPCConn(toFirestore))
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	ps, err := pubsub.NewClient(ctx, hosts.Project, option.WithGRPCConn(toPubSub))
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.Clients = &connect.Clients{Firestore: fs, PubSub: ps, Meter: meter.New(), Config: hosts}
	return c, nil
}

// cut makes the process dead to everybody else.
func (c *connections) cut() {
	c.dead.Store(true)
	c.gate.open()
	_ = c.close() // in-flight calls are meant to fail
}

func (c *connections) close() error {
	var errs []error
	for _, conn := range c.conns {
		if err := conn.Close(); err != nil && status.Code(err) != codes.Canceled { // Canceled: closed before
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// errDead has a code that no client library retries, so that the goroutines of a
// dead process end soon.
var errDead = status.Error(codes.PermissionDenied, "this process is dead")

func (c *connections) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.gate.wait(ctx)
	if c.dead.Load() {
		return errDead
	}
	for {
		err := invoke(ctx, method, req, reply, cc, opts...)
		c.gate.wait(ctx)
		if !strings.HasSuffix(method, "/Publish") || status.Code(err) != codes.Unavailable || c.dead.Load() {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(publishPause):
		}
	}
}

// publishPause is the pause before a publish is retried. The client library's
// own backoff grows to a minute, longer than simulated outages last.
const publishPause = 100 * time.Millisecond

func (c *connections) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.gate.wait(ctx)
	if c.dead.Load() {
		return nil, errDead
	}
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &gatedStream{stream, &c.gate}, nil
}
