package faultsim

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// supervisor keeps one process of the product running: whenever it ends or is
// killed, another one takes its place.
type supervisor struct {
	name  string
	hosts connect.Config
	clock *simclock.Clock // of the process, with its error
	log   *slog.Logger
	extra []grpc.DialOption
	// work is the process: it runs until ctx ends and then shuts down cleanly.
	work func(ctx context.Context, c *connections, clock *simclock.Clock) error

	mu      sync.Mutex
	current *connections
	stop    context.CancelFunc
	starts  int
}

// productOwner names the product's connections to the fault rules. The simulated
// world and the checker have none of its faults.
const productOwner = "product"

// restartAfter is how long a dead process takes to come back, in simulated time.
const restartAfter = 4 * time.Second

// run restarts the process until ctx ends.
func (s *supervisor) run(ctx context.Context) error {
	for ctx.Err() == nil {
		c, err := dial(context.WithoutCancel(ctx), s.hosts, productOwner, s.extra...)
		if err != nil {
			return err
		}
		life, end := context.WithCancel(ctx)
		s.mu.Lock()
		s.current, s.stop = c, end
		s.starts++
		s.mu.Unlock()
		err = s.work(life, c, s.clock)
		end()
		if err := c.close(); err != nil {
			return err
		}
		if err != nil {
			s.log.DebugContext(ctx, "process ended", slog.String("process", s.name), slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
		case <-s.clock.After(restartAfter):
		}
	}
	return nil
}

// kill ends the current process without warning: its connections are cut first,
// so that nothing it does while it ends reaches a server.
func (s *supervisor) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.cut()
		s.stop()
	}
}

// freeze lets the current process stand still until thaw is called. The process that
// takes its place if it is killed meanwhile is not frozen.
func (s *supervisor) freeze() (thaw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return func() {}
	}
	s.current.gate.close()
	return s.current.gate.open
}

// restart asks the current process to shut down cleanly.
func (s *supervisor) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}
