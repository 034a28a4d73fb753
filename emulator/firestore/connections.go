package firestoreemu

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/peer"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

// connections is a listener that knows its open connections, so that they can be
// closed on purpose.
type connections struct {
	net.Listener
	mu       sync.Mutex
	accepted int
	open     map[string]*connection // by the client's address
}

type connection struct {
	net.Conn
	all    *connections
	client net.Addr
	owners map[string]bool // clients that have sent requests over it
}

func newConnections(l net.Listener) *connections {
	return &connections{Listener: l, open: map[string]*connection{}}
}

// Accept registers each new connection.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted++
	registered := &connection{Conn: conn, all: c, client: conn.RemoteAddr(), owners: map[string]bool{}}
	if _, tcp := registered.client.(*net.TCPAddr); !tcp { // in process all addresses are equal
		registered.client = inProcessClient(c.accepted)
	}
	c.open[registered.client.String()] = registered
	return registered, nil
}

// inProcessAddr is the address that in-process clients dial.
const inProcessAddr = "in-process"

// inProcessClient is the address of an in-process connection's client.
type inProcessClient int

// Network names the kind of address.
func (inProcessClient) Network() string { return inProcessAddr }

// String is different for each connection.
func (n inProcessClient) String() string { return fmt.Sprintf("%s-%d", inProcessAddr, int(n)) }

// RemoteAddr is the client's address.
func (c *connection) RemoteAddr() net.Addr { return c.client }

// Close unregisters and closes the connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c.client.String())
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// note records that the owner of a request uses its connection.
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

// drop closes the connection of a request.
func (c *connections) drop(ctx context.Context) {
	c.mu.Lock()
	conn := c.of(ctx)
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // breaking it is the purpose
	}
}

// of returns the connection of a request. Callers hold mu.
func (c *connections) of(ctx context.Context) *connection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return c.open[p.Addr.String()]
}

// KillConnections closes the connections over which the owner has sent requests
// (see fault.DialOptions), or all if owner is empty, and returns how many. The
// locks of their transactions stay until the transactions expire (E-TX-13).
func (s *Server) KillConnections(owner string) int {
	s.connections.mu.Lock()
	var killed []*connection
	for _, conn := range s.connections.open {
		if owner == "" || conn.owners[owner] {
			killed = append(killed, conn)
		}
	}
	s.connections.mu.Unlock()
	for _, conn := range killed {
		_ = conn.Close() // breaking it is the purpose
	}
	return len(killed)
}
