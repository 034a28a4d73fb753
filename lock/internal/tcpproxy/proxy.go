package tcpproxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// drainTimeout bounds how long a server may take to end a connection that the proxy has
// half closed.
const drainTimeout = 10 * time.Second

// Fault is what happens to a request. The zero value lets it pass.
type Fault struct {
	CutBefore bool          // cut the connection instead of forwarding the request
	CutAfter  bool          // forward it, and cut the connection instead of the reply
	BlackHole bool          // swallow the request, and all that follow on the connection
	HoldReply bool          // forward it, and swallow the reply and all that follow
	Delay     time.Duration // before the request is forwarded
	Reply     []byte        // answer this instead of forwarding
}

// Rule is what happens to matching requests.
type Rule struct {
	Match func(request []byte) bool // nil: all
	Skip  int                       // so many matching requests pass first
	Times int                       // then so many are affected; 0: all
	Do    Fault
	Hook  func() // called before the fault
	seen  int
}

// Proxy forwards connections to one server. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	upstream string
	rules    []*Rule
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
	mute Fault // what happens to the next reply
}

// Start begins to forward to the server at an address.
func Start(upstream string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("tcpproxy: listen: %w", err)
	}
	p := &Proxy{listener: listener, upstream: upstream, links: make(map[*link]struct{})}
	p.settled = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close breaks all connections and waits for their ends.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Refuse()
	p.running.Wait()
	return err
}

// Add puts a rule in force. Of several matching rules the first decides.
func (p *Proxy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &r)
}

// LoseSome makes a share of the requests get lost, the same of the replies, and the same
// late, drawn from a seed.
func (p *Proxy) LoseSome(seed uint64, share float64) {
	rng := rand.New(rand.NewPCG(seed, 0)) // used under the mutex
	for _, fault := range []Fault{{CutBefore: true}, {CutAfter: true}, {Delay: 30 * time.Millisecond}} {
		p.Add(Rule{Do: fault, Match: func([]byte) bool { return rng.Float64() < share }})
	}
}

// Clear drops all rules and lets connections in again. Connections on which requests or
// replies were swallowed stay silent.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.down = nil, false
}

// Requests is how many requests have arrived.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Redirect forwards further connections to another server.
func (p *Proxy) Redirect(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.hangUp(l)
	}
}

// hangUp ends a link's client, which ends the link's goroutines. Settle waits for the link
// from now on, before the client can notice: what was read from it may still be on its way
// to the server. The mutex is held.
func (p *Proxy) hangUp(l *link) {
	if !l.ended {
		l.ended = true
		p.draining++
	}
	_ = l.client.Close()
}

// Refuse breaks all connections, and every further one until Clear.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.Cut()
}

// Settle returns when nothing that came from connections that have ended can still take
// effect on the server.
func (p *Proxy) Settle(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer context.AfterFunc(ctx, p.settled.Broadcast)()
	for p.draining > 0 && ctx.Err() == nil {
		p.settled.Wait()
	}
	return ctx.Err()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.connect(client) })
	}
}

// connect serves one connection until either side ends it.
func (p *Proxy) connect(client net.Conn) {
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
func (p *Proxy) passRequests(l *link) {
	buffer := make([]byte, 1<<16)
	swallow := false
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			return
		}
		fault, hook := p.judge(buffer[:n])
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
func (p *Proxy) passReplies(l *link) {
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

// judge counts a request and finds what happens to it.
func (p *Proxy) judge(request []byte) (Fault, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	for _, r := range p.rules {
		if r.Match != nil && !r.Match(request) {
			continue
		}
		r.seen++
		if r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times) {
			return r.Do, r.Hook
		}
	}
	return Fault{}, nil
}
