package conform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/fleetlink"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// FleetConfig describes the fleet in which a program is examined.
type FleetConfig struct {
	// Clients are connections to servers that hold nothing else.
	Clients *connect.Clients
	Clock   *simclock.Clock
	API     *httpapi.Listener // serves the HTTP API; nil for none
	// AllowUnfenced takes decisions without a fence.
	AllowUnfenced bool
	Progress      func(string) // nil for nobody
	Log           *slog.Logger
}

// practice is a fleet: the real State Manager, simulated drones, and a look at one topic.
type practice struct {
	cfg       FleetConfig
	manager   *manager.Manager
	drones    *fleetsim.Fleet
	publisher *pubsubio.Publisher
	commands  operator.Commands
	watched   string // the subscription of the topic

	stop    context.CancelFunc
	running *errgroup.Group

	mu   sync.Mutex
	seen []seen
}

// seen is a message of the program under examination.
type seen struct {
	id, key string
	data    []byte
	attrs   map[string]string
	at      time.Time // published
}

// Depot is the depot of the fleet in which a program is examined.
const Depot domain.DepotID = "DEPOT-PARIS-01"

const reason = "an examination"

// startPractice starts a fleet with these drones, which it registers but for strangers, and looks
// at a topic.
func startPractice(ctx context.Context, cfg FleetConfig, world *fleetsim.World, strangers map[domain.DroneID]bool, topic string) (p *practice, err error) {
	p = &practice{cfg: cfg, publisher: pubsubio.NewPublisher(cfg.Clients.PubSub), watched: topic + "-conform-" + uuid.NewString()[:8]}
	if err := fleetlink.Prepare(ctx, cfg.Clients.PubSub); err != nil {
		return nil, err
	}
	if p.manager, err = manager.New(cfg.Clients, cfg.Clock, manager.Config{AllowUnfenced: cfg.AllowUnfenced}, cfg.Log); err != nil {
		return nil, err
	}
	p.commands = p.manager.Operator
	p.commands.By = "dronefleet conform"
	if err := p.manager.Store.Setup(ctx, world.Depots, world.Warehouses, nil); err != nil {
		return nil, err
	}
	for _, d := range world.Drones {
		if strangers[d.ID] {
			continue
		}
		r := d.Registration()
		r.Own = d.Properties()
		if _, err := p.commands.ApplyDrones(ctx, []domain.DroneRegistration{r}, reason, false); err != nil {
			return nil, err
		}
	}
	if p.drones, err = fleetsim.NewFleet(world, fleetsim.FleetConfig{}, cfg.Clock, fleetlink.Publisher{Publisher: p.publisher}, fleetsim.NewConfirmations()); err != nil {
		return nil, err
	}
	if err := pubsubio.CreateTemporaryOrdered(ctx, cfg.Clients.PubSub, p.watched, topic, ""); err != nil {
		return nil, err
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.running, ctx = errgroup.WithContext(ctx)
	p.running.Go(func() error { return httpapi.ServeManager(ctx, p.manager, httpapi.Site{}, cfg.API) })
	p.running.Go(func() error { p.drones.Run(ctx); return nil })
	p.running.Go(func() error {
		return fleetlink.ReceiveCommands(ctx, cfg.Clients.PubSub, fleetlink.Missions, func(c domain.Command) { p.drones.Deliver(c) },
			func(err error) { cfg.Log.ErrorContext(ctx, "mission command cannot be decoded", slog.Any("err", err)) })
	})
	p.running.Go(func() error {
		return cfg.Clients.PubSub.Subscriber(p.watched).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
			p.mu.Lock()
			p.seen = append(p.seen, seen{m.ID, m.OrderingKey, m.Data, m.Attributes, m.PublishTime})
			p.mu.Unlock()
			m.Ack()
		})
	})
	return p, nil
}

// Close stops the fleet.
func (p *practice) Close() error {
	p.stop()
	err := p.running.Wait()
	p.publisher.Stop()
	return errors.Join(err, pubsubio.DeleteTemporary(context.Background(), p.cfg.Clients.PubSub, p.watched))
}

// messages are those that were seen after the first n.
func (p *practice) messages(n int) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]seen{}, p.seen[n:]...)
}

// order orders as a hospital does.
func (p *practice) order(ctx context.Context, r domain.OrderRequest) error {
	data, attrs, err := wire.EncodeOrder(r, wire.Protobuf)
	if err == nil {
		_, err = p.publisher.Publish(ctx, pubsubio.TopicOrders, data, attrs, string(r.ID)).Wait(ctx)
	}
	return err
}

// pause is how often the state of the fleet is looked at, in the machine's time.
const pause = 20 * time.Millisecond

// wait looks until met is true, at most limit of the machine's time, and reports whether it
// became true. The error is that of met, or of the end of ctx.
func wait(ctx context.Context, limit time.Duration, met func() (bool, error)) (bool, error) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for end := time.Now().Add(limit); ; {
		if ok, err := met(); ok || err != nil {
			return ok, err
		}
		if time.Now().After(end) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-ticker.C:
		}
	}
}

// startTime bounds how long the fleet may take to be ready, in the machine's time.
const startTime = 30 * time.Second

// ready waits until these drones are IDLE and these orders wait.
func (p *practice) ready(ctx context.Context, drones []domain.DroneID, orders []domain.OrderID) error {
	met, err := wait(ctx, startTime, func() (bool, error) {
		found, err := p.manager.Store.DronesOf(ctx, drones)
		if err != nil {
			return false, err
		}
		for _, d := range found {
			if d.Status != domain.DroneIdle {
				return false, nil
			}
		}
		waiting, err := p.manager.Store.OrdersOf(ctx, orders)
		return len(found) == len(drones) && len(waiting) == len(orders), err
	})
	if err == nil && !met {
		err = fmt.Errorf("the fleet is not ready after %s", startTime)
	}
	return err
}

// notPending counts the orders that are no longer PENDING.
func notPending(ctx context.Context, s *firestoretx.Store, ids []domain.OrderID) (n int, left []domain.OrderID, _ error) {
	orders, err := s.OrdersOf(ctx, ids)
	for _, o := range orders {
		if o.Status == domain.OrderPending {
			left = append(left, o.ID)
		}
	}
	return len(orders) - len(left), left, err
}
