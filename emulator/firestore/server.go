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
	"google.golang.org/grpc/test/bufconn"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/datafile"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/history"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/index"
	"github.com/dronefleet/dronefleet/emulator/internal/grpconly"
)

// maxRequestBytes is the largest request that the transport accepts. It is above
// the service's own limit of 10 MiB, so that a large commit gets the service's
// answer and not RESOURCE_EXHAUSTED, which clients retry (E-RPC-04).
const maxRequestBytes = 16 << 20

// Server is a running embedded Firestore. Its methods are safe for concurrent
// use.
type Server struct {
	pb.UnimplementedFirestoreServer
	opts        Options
	epoch       uint64            // random, tells this start of the server from others
	inProcess   *bufconn.Listener // nil: listens on a port
	connections *connections
	grpc        *grpc.Server
	counters    counters
	stop        chan struct{}  // closed by Close
	running     sync.WaitGroup // serving and housekeeping
	indexes     *index.Set     // nil: queries are not checked and nothing expires
	history     *history.Log   // nil: not recorded
	file        *datafile.File // nil: memory only
	unwritable  sync.Once      // the first failed save has been reported

	mu        sync.RWMutex
	databases map[string]*database
	closing   sync.Once
	closed    error // what Close returns
}

// Start starts a server. It is ready to serve when Start returns. Start fails if
// an option is invalid, the address is taken, or DataDir is in use (ErrInUse) or
// damaged (ErrDamaged).
func Start(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		opts:      opts,
		epoch:     rand.Uint64(),
		stop:      make(chan struct{}),
		databases: map[string]*database{},
	}
	if opts.RecordHistory {
		s.history = &history.Log{}
	}
	listener, err := s.listen()
	if err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		_ = listener.Close() // the first error is the one to return
		return nil, err
	}
	s.connections = newConnections(listener)
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(maxRequestBytes),
		grpc.WaitForHandlers(true),
		// Clients may ping as often as they like; the default would disconnect them.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(s.interceptStream),
	)
	pb.RegisterFirestoreServer(s.grpc, s)
	s.running.Go(func() { _ = s.grpc.Serve(s.connections) }) // returns when Close stops it
	s.running.Go(s.keepHouse)
	return s, nil
}

// inProcessBuffer is how many bytes an in-process connection buffers, about what
// a loopback connection does.
const inProcessBuffer = 256 << 10

// listen opens the port, or the in-process listener.
func (s *Server) listen() (net.Listener, error) {
	if s.opts.InProcess {
		s.inProcess = bufconn.Listen(inProcessBuffer)
		return s.inProcess, nil
	}
	listener, err := net.Listen("tcp", s.opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("firestoreemu: cannot listen on Addr %q: %w", s.opts.Addr, err)
	}
	return grpconly.Listen(listener, "The embedded Firestore speaks gRPC only, no REST. Use a gRPC client library with FIRESTORE_EMULATOR_HOST="+listener.Addr().String()+"."), nil
}

// load reads the index configuration and the data directory.
func (s *Server) load() error {
	if err := s.loadIndexes(); err != nil {
		return err
	}
	return s.openDataDir()
}

// Addr returns the host:port to set FIRESTORE_EMULATOR_HOST to, or "" if the
// server is in process.
func (s *Server) Addr() string {
	if s.inProcess != nil {
		return ""
	}
	return s.connections.Addr().String()
}

// Close closes all connections and stops the server. When it returns, none of the
// server's goroutines is left. It fails if documents could not be written to
// DataDir. Further calls return the same.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.grpc.Stop()
		s.running.Wait()
		s.closed = s.closeDataDir()
	})
	return s.closed
}

// housekeepingInterval is how often, by the server's clock, timeouts are checked.
const housekeepingInterval = 500 * time.Millisecond

// keepHouse ends transactions and lock waits that have exceeded their limits.
func (s *Server) keepHouse() {
	ticker := s.opts.Clock.NewTicker(housekeepingInterval)
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
