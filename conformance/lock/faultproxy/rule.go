package faultproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// RuleFor says what happens to matching requests; F is the proxy's type of fault.
type RuleFor[F any] struct {
	RPC   string            // of gRPC, such as "Commit"
	Match func([]byte) bool // looks at the encoded request; nil: all
	Skip  int               // let this many matching requests pass first
	Times int               // then affect this many; 0: all
	Do    F
	Hook  func() // called before the fault; of a gRPC HoldReply, when the server has answered
	seen  int
}

// core is what both proxies share: the listener and the rules.
type core[F any] struct {
	listener net.Listener

	mu    sync.Mutex
	rules []*RuleFor[F]
}

func (c *core[F]) listen() (err error) {
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("faultproxy: listen: %w", err)
	}
	return nil
}

// Addr is where the proxy listens.
func (c *core[F]) Addr() string { return c.listener.Addr().String() }

// Add puts a rule in force. Of several matching rules the first decides.
func (c *core[F]) Add(r RuleFor[F]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = append(c.rules, &r)
}

// addRandom makes each fault happen to a share of the requests, drawn from a seed.
func (c *core[F]) addRandom(rpc string, seed uint64, share float64, faults ...F) {
	rng := rand.New(rand.NewPCG(seed, 0)) // used under the mutex
	for _, fault := range faults {
		c.Add(RuleFor[F]{RPC: rpc, Do: fault, Match: func([]byte) bool { return rng.Float64() < share }})
	}
}

// judge finds what happens to a request. The caller holds the mutex.
func (c *core[F]) judge(rpc string, request []byte) (fault F, hook func()) {
	for _, r := range c.rules {
		if r.RPC != rpc || (r.Match != nil && !r.Match(request)) {
			continue
		}
		r.seen++
		if r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times) {
			return r.Do, r.Hook
		}
	}
	return fault, nil
}
