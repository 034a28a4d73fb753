package faultproxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// drainTimeout bounds how long a server may take to end a connection that the proxy has
// half closed.
const drainTimeout = 10 * time.Second

// TCPFault is what happens to a request. The zero value lets it pass.
type TCPFault struct {
	CutBefore bool          // cut the connection instead of forwarding the request
	CutAfter  bool          // forward it, and cut the connection instead of the reply
	BlackHole bool          // swallow the request, and all that follow on the connection
	HoldReply bool          // forward it, and swallow the reply and all that follow
	Delay     time.Duration // before the request is forwarded
	Reply     []byte        // answer this instead of forwarding
}

// TCPRule is what happens to matching requests.
type TCPRule = RuleFor[TCPFault]

// TCPProxy forwards connections to one server of requests and replies. A request is what
// arrives in one piece. Its methods are safe for concurrent use.
type TCPProxy struct {
	core[TCPFault]
	running sync.WaitGroup

	// Under core's mutex.
	upstream string
	links    map[*link]struct{}
	down     bool
	draining int // links whose client is gone, and whose server may still be at work
	settled  *sync.Cond
	requests int
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	ended          bool // the client is gone or cut off; under the proxy's mutex

	mu   sync.Mutex
	mute TCPFault // what happens to the next reply
}

// StartTCP begins to forward to the server at an address.
func StartTCP(upstream string) (*TCPProxy, error) {
	p := &TCPProxy{upstream: upstream, links: make(map[*link]struct{})}
	if err := p.listen(); err != nil {
		return nil, err
	}
	p.settled = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

// Close breaks all connections and waits for their ends.
func (p *TCPProxy) Close() error {
	err := p.listener.Close()
	p.Refuse()
	p.running.Wait()
	return err
}

// LoseSome loses a share of the requests, loses the same share of the replies, and delays as
// many, drawn from a seed.
func (p *TCPProxy) LoseSome(seed uint64, share float64) {
	p.addRandom("", seed, share, TCPFault{CutBefore: true}, TCPFault{CutAfter: true}, TCPFault{Delay: 30 * time.Millisecond})
}

// Clear drops all rules and lets connections in again. Connections on which requests or
// replies were swallowed stay silent.
func (p *TCPProxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.down = nil, false
}

// Requests is how many requests have arrived.
func (p *TCPProxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Redirect forwards further connections to another server.
func (p *TCPProxy) Redirect(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Cut breaks all connections.
func (p *TCPProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.hangUp(l)
	}
}

// hangUp closes a link's client, which ends the link's goroutines. What was read from it may
// still be on its way to the server, so Settle waits for the link from now on. The caller
// holds the mutex.
func (p *TCPProxy) hangUp(l *link) {
	if !l.ended {
		l.ended = true
		p.draining++
	}
	_ = l.client.Close()
}

// Refuse breaks all connections, and every further one until Clear.
func (p *TCPProxy) Refuse() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.Cut()
}

// Settle returns when nothing that came from connections that have ended can still take
// effect on the server.
func (p *TCPProxy) Settle(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer context.AfterFunc(ctx, p.settled.Broadcast)()
	for p.draining > 0 && ctx.Err() == nil {
		p.settled.Wait()
	}
	return ctx.Err()
}

func (p *TCPProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.connect(client) })
	}
}

// connect serves one connection until either side ends it.
func (p *TCPProxy) connect(client net.Conn) {
	defer func() { _ = client.Close() }()
	p.mu.Lock()
	upstream := p.upstream
	p.mu.Unlock()
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	l := &link{client: client, server: server}
	p.mu.Lock()
	down := p.down
	if !down {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	if down {
		return
	}

	replies := make(chan struct{})
	p.running.Go(func() {
		defer close(replies)
		p.passReplies(l)
	})
	p.passRequests(l)
	p.mu.Lock()
	delete(p.links, l)
	p.hangUp(l)
	p.mu.Unlock()
	// The server ends the connection when it is done with what it got.
	_ = server.(*net.TCPConn).CloseWrite()
	_ = server.SetReadDeadline(time.Now().Add(drainTimeout))
	<-replies
	p.mu.Lock()
	p.draining--
	p.settled.Broadcast()
	p.mu.Unlock()
}

// passRequests forwards what the client sends, as the rules say, until the connection
// ends.
func (p *TCPProxy) passRequests(l *link) {
	buffer := make([]byte, 1<<16)
	swallow := false
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.requests++
		fault, hook := p.judge("", buffer[:n])
		p.mu.Unlock()
		if hook != nil {
			hook()
		}
		switch {
		case fault.CutBefore:
			return
		case swallow || fault.BlackHole:
			swallow = true
			continue
		case fault.Reply != nil:
			if _, err := l.client.Write(fault.Reply); err != nil {
				return
			}
			continue
		}
		time.Sleep(fault.Delay)
		l.mu.Lock()
		l.mute.CutAfter = l.mute.CutAfter || fault.CutAfter
		l.mute.HoldReply = l.mute.HoldReply || fault.HoldReply
		l.mu.Unlock()
		if _, err := l.server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// passReplies forwards what the server sends until it ends the connection. It reads on
// when the client is gone.
func (p *TCPProxy) passReplies(l *link) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buffer)
		if err != nil {
			p.mu.Lock()
			p.hangUp(l)
			p.mu.Unlock()
			return
		}
		l.mu.Lock()
		mute := l.mute
		l.mu.Unlock()
		switch {
		case mute.CutAfter:
			p.mu.Lock()
			p.hangUp(l)
			p.mu.Unlock()
		case mute.HoldReply:
		default:
			_, _ = l.client.Write(buffer[:n]) // if it is gone, reading its requests has ended too
		}
	}
}
