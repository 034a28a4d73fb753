package firestoreemu

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
)

// maxRequestBytes is what the transport takes. It is above the service's own
// limit of 10 MiB, so that a large commit gets the service's answer and not
// RESOURCE_EXHAUSTED, which clients retry (E-RPC-04).
const maxRequestBytes = 16 << 20

// Server is a running embedded Firestore.
type Server struct {
	pb.UnimplementedFirestoreServer
	opts     Options
	epoch    uint64
	listener net.Listener
	grpc     *grpc.Server
	counters counters
	stop     chan struct{}  // closed by Close
	running  sync.WaitGroup // serving and housekeeping

	mu        sync.RWMutex
	databases map[string]*database
	closing   sync.Once
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
		opts:      opts,
		epoch:     rand.Uint64(),
		listener:  listener,
		stop:      make(chan struct{}),
		databases: map[string]*database{},
	}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(maxRequestBytes),
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(s.interceptStream),
	)
	pb.RegisterFirestoreServer(s.grpc, s)
	s.running.Go(func() { _ = s.grpc.Serve(listener) }) // ends with Close, which has nothing to do about its error
	s.running.Go(s.keepHouse)
	return s, nil
}

// Addr is the host:port to put into FIRESTORE_EMULATOR_HOST.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close breaks all connections and stops the server; no goroutine of it is left
// when it returns. Closing twice is harmless.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.grpc.Stop()
		s.running.Wait()
	})
	return nil
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
		s.mu.RLock()
		all := make([]*database, 0, len(s.databases))
		for _, d := range s.databases {
			all = append(all, d)
		}
		s.mu.RUnlock()
		for _, d := range all {
			d.locks.Tick()
			d.transactions.expireLapsed()
		}
	}
}
