package pubsubemu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/dronefleet/dronefleet/emulator/internal/grpconly"
	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// maxRequestBytes is above the documented publish limit, so that a publish that is
// too large gets INVALID_ARGUMENT and not a transport error.
const maxRequestBytes = 32 << 20

// A connection over which nothing has come for askAfter is closed, and its streams
// break, unless its client answers a ping within answerWithin.
const (
	askAfter     = 5 * time.Second
	answerWithin = 15 * time.Second
)

// Server is a running embedded Pub/Sub. Its methods are safe for concurrent use.
type Server struct {
	pubsubpb.UnimplementedPublisherServer
	pubsubpb.UnimplementedSubscriberServer

	opts      Options
	faults    *fault.Injector
	listener  net.Listener
	inProcess *bufconn.Listener // nil: listens on a port
	grpc      *grpc.Server
	serving   sync.WaitGroup // the accept loop, housekeeping and one timer loop per subscription
	closing   chan struct{}  // closed when Close begins
	closed    sync.Once
	closeErr  error

	published    atomic.Uint64    // messages accepted so far
	lastMessage  atomic.Uint64    // id of the newest message
	lastInstance atomic.Uint64    // subscriptions opened since the start
	lastHolder   atomic.Uint64    // newest holder id in the journal
	instances    uint64           // first subscription instance of this start
	journal      *journal.Journal // nil without a data directory

	mu            sync.RWMutex
	topics        map[string]*topic
	subscriptions map[string]*subscription
	snapshots     map[string]*snapshot
}

// Start starts a server. It is ready to serve when Start returns. Start fails when
// the address is taken, or when DataDir is unusable, in use (ErrInUse) or damaged
// (ErrDamaged).
func Start(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	s := &Server{
		opts:          opts,
		faults:        fault.New(opts.Seed),
		closing:       make(chan struct{}),
		topics:        map[string]*topic{},
		subscriptions: map[string]*subscription{},
		snapshots:     map[string]*snapshot{},
	}
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("pubsub emulator: %w", err)
	}
	if err := s.restore(); err != nil {
		return nil, errors.Join(fmt.Errorf("pubsub emulator: %w", err), s.Close())
	}
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(maxRequestBytes),
		grpc.InitialWindowSize(1<<20),
		grpc.InitialConnWindowSize(4<<20),
		grpc.WaitForHandlers(true),
		// Clients of any language may ping as often as they like.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		// A client that is frozen keeps its connection open and answers nothing.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: askAfter, Timeout: answerWithin}),
		grpc.UnaryInterceptor(s.guardUnary),
		grpc.StreamInterceptor(s.guardStream),
	)
	pubsubpb.RegisterPublisherServer(s.grpc, s)
	pubsubpb.RegisterSubscriberServer(s.grpc, s)
	pubsubpb.RegisterSchemaServiceServer(s.grpc, schemas{})
	s.serving.Go(func() {
		err := s.grpc.Serve(s.listener)
		if err != nil && !errors.Is(err, grpc.ErrServerStopped) { // Close may come before Serve
			opts.Logger.Error("pubsub emulator stopped serving", slog.Any("err", err))
		}
	})
	s.serving.Go(s.keepHouse)
	return s, nil
}

// inProcessAddr is the address that in-process clients dial, and inProcessBuffer
// the bytes that a connection holds in each direction.
const (
	inProcessAddr   = "in-process"
	inProcessBuffer = 1 << 20
)

func (s *Server) listen() error {
	if s.opts.InProcess {
		s.inProcess = bufconn.Listen(inProcessBuffer)
		s.listener = s.inProcess
		return nil
	}
	l, err := net.Listen("tcp", s.opts.Addr)
	if err != nil {
		return err
	}
	hint := "The embedded Pub/Sub speaks gRPC only: publishing by HTTP (messages/publish, :publish) is not served. " +
		"Use a gRPC client library with PUBSUB_EMULATOR_HOST=" + l.Addr().String() + "."
	s.listener = grpconly.Listen(l, strings.TrimSpace(hint+" "+s.opts.HTTPHint))
	return nil
}

// housekeeping is how often, on the injected clock, expired snapshots and retained
// messages are removed.
const housekeeping = time.Minute

// keepHouse removes what has expired of topics and snapshots that nobody uses. It
// sets a timer and no ticker: a clock that jumps must wake it only once.
func (s *Server) keepHouse() {
	for {
		timer := s.opts.Clock.NewTimer(housekeeping)
		select {
		case <-s.closing:
			timer.Stop()
			return
		case <-timer.Chan():
		}
		s.dropExpiredSnapshots()
		s.mu.RLock()
		for _, t := range s.topics {
			t.tidy(s.now())
		}
		s.mu.RUnlock()
	}
}

// Addr is host:port, the value for PUBSUB_EMULATOR_HOST. With InProcess it is no
// address: use Dial or Client.
func (s *Server) Addr() string {
	if s.inProcess != nil {
		return inProcessAddr
	}
	return s.listener.Addr().String()
}

// errClosing is what subscribers get once Close has begun.
var errClosing = status.Error(codes.Unavailable, "the server is shutting down")

// Close ends all streams and calls and returns when none of the server's
// goroutines runs any more. Closing twice is allowed. It fails when DataDir could
// not be written.
func (s *Server) Close() error {
	s.closed.Do(func() {
		close(s.closing)
		s.mu.Lock()
		for _, sub := range s.subscriptions {
			sub.end(errClosing)
		}
		s.mu.Unlock()
		if s.grpc != nil {
			s.grpc.Stop()
		} else {
			s.closeErr = s.listener.Close()
		}
		s.serving.Wait()
		if s.journal != nil {
			if err := s.journal.Close(); err != nil {
				s.closeErr = errors.Join(s.closeErr, fmt.Errorf("pubsub emulator: DataDir %q: nothing is kept since a write failed: %w", s.opts.DataDir, err))
			}
		}
	})
	return s.closeErr
}

// now is the time of leases and retention in Clock nanoseconds.
func (s *Server) now() int64 { return s.opts.Clock.Now().UnixNano() }

// timerAt fires when Clock reaches due. If a test moves the clock while the timer is
// being set, the timer would be late by that much, so it is set again.
func (s *Server) timerAt(due int64) clockwork.Timer {
	now := s.now()
	timer := s.opts.Clock.NewTimer(time.Duration(due - now))
	moved := s.now()
	if moved-now < int64(time.Millisecond) {
		return timer
	}
	timer.Stop()
	return s.opts.Clock.NewTimer(time.Duration(due - moved))
}

func (s *Server) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	defer func() { err = s.finish(info.FullMethod, recover(), err) }()
	if err := s.outage(); err != nil {
		return nil, err
	}
	return handle(ctx, req)
}

func (s *Server) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer func() { err = s.finish(info.FullMethod, recover(), err) }()
	if err := s.outage(); err != nil {
		return err
	}
	return handle(srv, stream)
}

// finish turns a panic into an INTERNAL answer, so that a bug in one call does not
// end the whole test run.
func (s *Server) finish(method string, panicked any, err error) error {
	if panicked != nil {
		s.opts.Logger.Error("pubsub emulator call panicked", slog.String("method", method),
			slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
		return status.Errorf(codes.Internal, "%s panicked: %v", method, panicked)
	}
	if err != nil {
		s.opts.Logger.Debug("pubsub emulator call refused", slog.String("method", method), slog.Any("err", err))
	}
	return err
}

func (s *Server) topic(field, name string) (*topic, error) {
	if err := checkName(field, name, topics); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.topics[name]
	if t == nil {
		return nil, notFound(name)
	}
	return t, nil
}

func (s *Server) subscription(field, name string) (*subscription, error) {
	if err := checkName(field, name, subscriptions); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	sub := s.subscriptions[name]
	if sub == nil {
		return nil, notFound(name)
	}
	return sub, nil
}
