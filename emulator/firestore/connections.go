package firestoreemu

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/peer"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

// connections knows the open client connections, to cut them off on purpose.
type connections struct {
	net.Listener
	mu   sync.Mutex
	open map[string]*connection // by the client's address
}

type connection struct {
	net.Conn
	all    *connections
	owners map[string]bool // who has sent requests over it
}

func newConnections(l net.Listener) *connections {
	return &connections{Listener: l, open: map[string]*connection{}}
}

// Accept notes each new connection.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	noted := &connection{Conn: conn, all: c, owners: map[string]bool{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn.RemoteAddr().String()] = noted
	return noted, nil
}

// Close forgets the connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c.RemoteAddr().String())
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// note remembers that a client's owner uses the connection of this request.
func (c *connections) note(ctx context.Context) {
	owner := fault.OwnerOf(ctx)
	if owner == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.of(ctx); conn != nil {
		conn.owners[owner] = true
	}
}

// cut closes the connection a request came over.
func (c *connections) cut(ctx context.Context) {
	c.mu.Lock()
	conn := c.of(ctx)
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // it is to be broken
	}
}

func (c *connections) of(ctx context.Context) *connection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return c.open[p.Addr.String()]
}

// KillConnections closes the connections over which the owner has sent requests
// (see fault.DialOptions), or all of them if owner is empty, and returns how
// many. Locks of their transactions stay: only expiry frees them (E-TX-13).
func (s *Server) KillConnections(owner string) int {
	s.connections.mu.Lock()
	var doomed []*connection
	for _, conn := range s.connections.open {
		if owner == "" || conn.owners[owner] {
			doomed = append(doomed, conn)
		}
	}
	s.connections.mu.Unlock()
	for _, conn := range doomed {
		_ = conn.Close() // it is to be broken
	}
	return len(doomed)
}
