package firestoreemu

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/dronefleet/dronefleet/emulator/firestore/index"
	"github.com/dronefleet/dronefleet/emulator/firestore/wal"
)

// maxRequestBytes is what the transport takes. It is above the service's own
// limit of 10 MiB, so that a large commit gets the service's answer and not
// RESOURCE_EXHAUSTED, which clients retry (E-RPC-04).
const maxRequestBytes = 16 << 20

// Server is a running embedded Firestore.
type Server struct {
	pb.UnimplementedFirestoreServer
	opts        Options
	epoch       uint64
	connections *connections
	grpc        *grpc.Server
	counters    counters
	stop        chan struct{}  // closed by Close
	running     sync.WaitGroup // serving and housekeeping
	indexes     *index.Checker
	ttl         *index.Set // nil: nothing expires
	file        *wal.File  // nil: memory only

	mu        sync.RWMutex
	databases map[string]*database
	closing   sync.Once
	closed    error // what Close returns
}

// Start returns a server that is already listening.
func Start(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("firestoreemu: cannot listen on Addr %q: %w", opts.Addr, err)
	}
	s := &Server{
		opts:        opts,
		epoch:       rand.Uint64(),
		connections: newConnections(listener),
		stop:        make(chan struct{}),
		databases:   map[string]*database{},
	}
	if err := s.prepare(); err != nil {
		_ = listener.Close() // the failure to start is the error to tell
		return nil, err
	}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(maxRequestBytes),
		grpc.WaitForHandlers(true),
		// Clients may ping as often as they like; the default cuts them off.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(s.interceptStream),
	)
	pb.RegisterFirestoreServer(s.grpc, s)
	s.running.Go(func() { _ = s.grpc.Serve(s.connections) }) // ends with Close, which has nothing to do about its error
	s.running.Go(s.keepHouse)
	return s, nil
}

// prepare loads what the server serves from.
func (s *Server) prepare() error {
	set, mode := (*index.Set)(nil), index.Off
	if s.opts.Indexes != nil {
		var err error
		if set, err = index.Load(s.opts.Indexes); err != nil {
			return fmt.Errorf("firestoreemu: Indexes: %w", err)
		}
		mode, s.ttl = s.opts.IndexMode, set
	}
	s.indexes = index.NewChecker(set, mode, s.opts.Logger)
	return s.recover()
}

// Addr is the host:port to put into FIRESTORE_EMULATOR_HOST.
func (s *Server) Addr() string { return s.connections.Addr().String() }

// Close breaks all connections and stops the server; no goroutine of it is left
// when it returns. Closing twice is harmless.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.grpc.Stop()
		s.running.Wait()
		s.closed = s.stopLogs()
	})
	return s.closed
}

// housekeeping is how often, on the injected clock, timeouts are looked for.
const housekeeping = 500 * time.Millisecond

// keepHouse ends transactions and lock waits that have outlived their limits.
func (s *Server) keepHouse() {
	ticker := s.opts.Clock.NewTicker(housekeeping)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.Chan():
		}
		for _, d := range s.allDatabases() {
			d.locks.Tick()
			d.transactions.expireLapsed()
		}
	}
}
