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

// slot keeps one process of the product running: whenever it ends or is killed,
// another one takes its place.
type slot struct {
	name  string
	hosts connect.Config
	clock *simclock.Clock // of the process, with its error
	log   *slog.Logger
	extra []grpc.DialOption
	// work is the process: it runs until ctx ends and then stops in good order.
	work func(ctx context.Context, c *connections, clock *simclock.Clock) error

	mu      sync.Mutex
	current *connections
	stop    context.CancelFunc
	starts  int
}

// productOwner is what all processes of the product call themselves to the
// fault rules; the world and the judge are not struck.
const productOwner = "product"

// restartAfter is how long a dead process takes to come back, simulated.
const restartAfter = 4 * time.Second

// run restarts the process until ctx ends.
func (s *slot) run(ctx context.Context) error {
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

// kill ends the present process without warning: its connections are cut first,
// so that nothing it does on its way out reaches anybody.
func (s *slot) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.cut()
		s.stop()
	}
}

// restart asks the present process to stop in good order.
func (s *slot) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}
