// Command orders measures how long an order over HTTP takes until it is answered and until its
// document is there, at a steady rate. The callers, the State Manager and the embedded servers run in
// one process; emulators that the environment names are used instead of the embedded servers. Every
// order has a connection of its own, as with curl.
//
//	go run ./bench/orders
//	go run ./bench/orders --rate 400 --duration 1m --again 0.1   # a tenth of the orders is sent twice
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

type command struct {
	Rate     float64       `help:"Orders per second." default:"200" check:"over 0 max 10000"`
	Duration time.Duration `help:"How long orders are sent." default:"30s" check:"over 0s max 1h"`
	Drones   int           `help:"Size of the fleet, of three types." default:"300" check:"min 0 max 100000"`
	Again    float64       `help:"Share of the orders that is sent a second time at once." default:"0.05" check:"min 0 max 1"`
}

func main() {
	cli.Main(&command{}, "Measures orders over HTTP: from sending one to its answer and to its document.")
}

// settleFor is how long documents may come after the last order was sent.
const settleFor = 15 * time.Second

// Run measures once and prints a table.
func (c *command) Run(ctx context.Context) error { return c.measure(ctx, cli.Stdout) }

func (c *command) measure(ctx context.Context, out io.Writer) error {
	hosts := connect.Config{Project: fmt.Sprintf("bench-%d", time.Now().UnixNano())}.FromEnvironment()
	if hosts.FirestoreHost == "" {
		s, err := firestoreemu.Start(firestoreemu.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		hosts.FirestoreHost = s.Addr()
	}
	if hosts.PubSubHost == "" {
		s, err := pubsubemu.Start(pubsubemu.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		hosts.PubSubHost = s.Addr()
	}
	clients, err := connect.Open(ctx, hosts, meter.New())
	if err != nil {
		return err
	}
	defer clients.Close()
	if err := errors.Join(pubsubio.Ensure(ctx, clients.PubSub), c.setup(ctx, clients)); err != nil {
		return err
	}
	m, err := manager.New(clients, simclock.Real(), manager.Config{}, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	by := m.Operator
	by.By = "bench"
	key, _, err := by.CreateKey(ctx, operator.KeyUse{Role: domain.KeyRequester, Requester: "H1", ExpiresAt: time.Now().Add(24 * time.Hour)}, "to measure")
	if err != nil {
		return err
	}
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	g, working := errgroup.WithContext(serving)
	g.Go(func() error {
		return httpapi.ServeManager(working, m, httpapi.Site{Access: httpapi.Access{APIKeys: httpapi.KeysRequired}}, listener)
	})
	r := &run{url: listener.URL() + "/api/v1/orders", key: key, sentAt: map[domain.OrderID]time.Time{}, answer: &meter.Histogram{}, document: &meter.Histogram{}}
	g.Go(func() error { return r.follow(working, m.Store) })
	g.Go(func() error {
		defer stop()
		if err := r.send(working, c); err != nil {
			return err
		}
		return r.print(out, c, clients.Meter)
	})
	if err := g.Wait(); err != nil && serving.Err() == nil {
		return err
	}
	return r.failed
}

// setup makes three depots, a warehouse and the fleet.
func (c *command) setup(ctx context.Context, clients *connect.Clients) error {
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	var depots []domain.Depot
	for i := range 3 {
		depots = append(depots, domain.Depot{ID: domain.DepotID(fmt.Sprint("DEPOT-", i)), Position: domain.Position{Lat: 48.8 + 0.05*float64(i), Lon: 2.3}})
	}
	warehouses := []domain.Warehouse{{ID: "W1", Position: domain.Position{Lat: 48.85, Lon: 2.35}, ProductTypes: []string{"BLOOD"}}}
	if err := store.Setup(ctx, depots, warehouses, nil); err != nil {
		return err
	}
	g, registering := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for d := range c.Drones {
		g.Go(func() error {
			_, err := store.ApplyDrone(registering, domain.DroneRegistration{
				ID: domain.DroneID(fmt.Sprintf("DRONE-%05d", d)), HomeDepotID: depots[d%3].ID,
				Own: domain.DroneProperties{PayloadCapacityKg: float64(3 + d%3), ConsumptionPerKm: 1.5, MaxFlightTimeMinutes: 45},
			}, firestoretx.Change{By: "bench", Why: "to measure"})
			return err
		})
	}
	return g.Wait()
}

// run is one measurement.
type run struct {
	url, key         string
	answer, document *meter.Histogram
	answered         atomic.Int64
	refused          atomic.Int64
	failed           error

	mu     sync.Mutex
	sentAt map[domain.OrderID]time.Time // those without a document
	made   int
	twice  int // events or revisions that a repeat has caused
}

// follow notes when the documents of orders appear.
func (r *run) follow(ctx context.Context, store *firestoretx.Store) error {
	err := store.FollowOpenOrders(ctx, nil, func(s firestoretx.Sight[domain.Order]) {
		now := time.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range s.Now {
			if o.Revision != 1 {
				r.twice++
			}
			if at, is := r.sentAt[o.ID]; is {
				r.document.Record(now.Sub(at))
				r.made++
				delete(r.sentAt, o.ID)
			}
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// send sends orders at the rate, each when it is due, and waits for their documents.
func (r *run) send(ctx context.Context, c *command) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	total := int(c.Rate * c.Duration.Seconds())
	var sending sync.WaitGroup
	began := time.Now()
	for n := range total {
		timer := time.NewTimer(time.Until(began.Add(time.Duration(float64(n) / c.Rate * float64(time.Second)))))
		select {
		case <-ctx.Done():
			timer.Stop()
			sending.Wait()
			return ctx.Err()
		case <-timer.C:
		}
		id := domain.OrderID(fmt.Sprintf("ORDER-%06d", n))
		r.mu.Lock()
		r.sentAt[id] = time.Now()
		r.mu.Unlock()
		sending.Go(func() { r.order(ctx, client, id) })
		if rand.Float64() < c.Again {
			sending.Go(func() { r.order(ctx, client, id) })
		}
	}
	sending.Wait()
	for end := time.Now().Add(settleFor); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r.mu.Lock()
		left := len(r.sentAt)
		r.mu.Unlock()
		if left == 0 {
			break
		}
	}
	return nil
}

// order sends one order.
func (r *run) order(ctx context.Context, client *http.Client, id domain.OrderID) {
	body := fmt.Sprintf(`{"id": %q, "productType": "BLOOD", "packageWeightKg": 1.5, "deliveryLocation": {"lat": %.4f, "lon": %.4f}}`,
		id, 48.80+float64(len(id)%7)/100, 2.30)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.refused.Add(1)
		return
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		r.refused.Add(1)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // shown if it is not as expected
	if resp.StatusCode != http.StatusAccepted {
		if r.refused.Add(1) == 1 {
			fmt.Fprintf(os.Stderr, "order %s: %s %s", id, resp.Status, text)
		}
		return
	}
	r.answer.Record(time.Since(began))
	r.answered.Add(1)
}

// print prints what was measured. Orders that were lost or made twice are an error.
func (r *run) print(out io.Writer, c *command, m *meter.Meter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(out, "%.0f orders/s for %s, %.0f %% sent twice, %d drones, %d processors\n\n", c.Rate, c.Duration, c.Again*100, c.Drones, runtime.GOMAXPROCS(0))
	fmt.Fprintf(out, "%-10s %10s %10s %10s\n", "", "number", "p50", "p99")
	for _, row := range []struct {
		name   string
		number int64
		h      *meter.Histogram
	}{{"answers", r.answered.Load(), r.answer}, {"documents", int64(r.made), r.document}} {
		fmt.Fprintf(out, "%-10s %10d %10s %10s\n", row.name, row.number, row.h.Quantile(0.5).Round(time.Millisecond), row.h.Quantile(0.99).Round(time.Millisecond))
	}
	http := m.FirestoreByOperation()["http"]
	fmt.Fprintf(out, "\n%.2f RPCs and %.2f reads of Firestore for each request\n", float64(http.RPCs)/float64(r.answered.Load()), float64(http.Reads)/float64(r.answered.Load()))
	if r.refused.Load() > 0 || len(r.sentAt) > 0 || r.twice > 0 {
		r.failed = fmt.Errorf("%d requests were not accepted, %d orders have no document, %d were changed by a repeat", r.refused.Load(), len(r.sentAt), r.twice)
	}
	return nil
}
