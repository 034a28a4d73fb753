// Command telemetry measures how many reports a second the State Manager commits,
// how many Firestore operations each takes and how long it takes. It compares that
// with a plain worker, which commits every message in its own transaction. The
// publisher, the worker and the embedded servers run in one process; emulators that
// the environment names are used instead of the embedded servers.
//
//	go run ./bench/telemetry                      # both workers drain a backlog, then the sustained load
//	go run ./bench/telemetry --drones 10000 --hz 1
//	go run ./bench/telemetry --skip plain,drain --drones 5000 --hz 1 --changes 30   # how fast a status is committed
//	go run ./bench/telemetry --skip plain,drain --viewers 10   # beside ten clients of the live stream
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
)

type command struct {
	Drones        int           `help:"Size of the fleet." default:"2000" check:"min 1 max 100000"`
	Hz            float64       `help:"Reports per second and drone in the sustained load." default:"5" check:"over 0 max 100"`
	Duration      time.Duration `help:"How long the sustained load lasts." default:"60s" check:"over 0s"`
	Backlog       int           `help:"Reports in the backlog of the State Manager; the plain worker gets a twentieth." default:"400000" check:"min 20 max 10000000"`
	PositionError float64       `help:"How many metres a drone may be from where readers foretell it before its document is written, as the flag of statemanager serve; 0 writes every report." default:"25" check:"min 0 max 1000"`
	Changes       int           `help:"Number of reports of a drone between two changes of its status; 0 for no changes." default:"300" check:"min 0"`
	Burst         float64       `help:"Multiply the load by this in the first half of the run, and publish nothing in the second half." default:"1" check:"min 1 max 1000"`
	Viewers       int           `help:"Clients of the live stream during the sustained load." default:"0" check:"min 0 max 500"`
	Profile       string        `help:"Write a CPU profile of the run to this file." placeholder:"FILE"`
	Skip          []string      `help:"Parts to leave out: plain, drain, sustain." enum:"plain,drain,sustain" placeholder:"PART"`
}

func main() {
	cli.Main(&command{}, "Measures how fast the State Manager commits telemetry, compared with a plain worker.")
}

// Run runs the parts and prints a table.
func (c *command) Run(ctx context.Context) error {
	if c.Profile == "" {
		return c.measure(ctx)
	}
	out, err := cli.Create(c.Profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	err = c.measure(ctx)
	pprof.StopCPUProfile()
	if unwritten := out.Close(); unwritten != nil {
		err = errors.Join(err, fmt.Errorf("--profile: %w", unwritten))
	}
	return err
}

func (c *command) measure(ctx context.Context) error {
	skip := map[string]bool{}
	for _, part := range c.Skip {
		skip[part] = true
	}
	fmt.Fprintf(cli.Stdout, "%d drones, a change of status every %d reports, positions foretold to %g m, %d processors\n\n", c.Drones, c.Changes, c.PositionError, runtime.GOMAXPROCS(0))
	fmt.Fprintf(cli.Stdout, "%-24s %10s %12s %8s %8s %8s %12s %12s %8s\n", "", "messages", "messages/s", "RPCs", "reads", "writes", "p99 status", "p99 position", "heap")
	var plain, grouped float64
	var err error
	if !skip["plain"] {
		if plain, err = c.drain(ctx, "plain, backlog", c.Backlog/20, runPlain); err != nil {
			return err
		}
	}
	if !skip["drain"] {
		if grouped, err = c.drain(ctx, "grouped, backlog", c.Backlog, c.runGrouped); err != nil {
			return err
		}
	}
	if plain > 0 && grouped > 0 {
		fmt.Fprintf(cli.Stdout, "%-24s %23.1f\n", "grouped / plain", grouped/plain)
	}
	if skip["sustain"] {
		return nil
	}
	if c.Viewers > 0 {
		return c.sustain(ctx, c.runWatched)
	}
	return c.sustain(ctx, c.runGrouped)
}

// manager is the State Manager under test.
func (c *command) manager(clients *connect.Clients) (*manager.Manager, error) {
	cfg := manager.Config{Foretelling: policy.DefaultForetelling()}
	cfg.Foretelling.ErrorMetres = c.PositionError
	return manager.New(clients, simclock.Real(), cfg, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// worker settles telemetry until its context ends.
type worker func(ctx context.Context, clients *connect.Clients) error

func (c *command) runGrouped(ctx context.Context, clients *connect.Clients) error {
	m, err := c.manager(clients)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// runWatched is runGrouped with clients of the live stream.
func (c *command) runWatched(ctx context.Context, clients *connect.Clients) error {
	m, err := c.manager(clients)
	if err != nil {
		return err
	}
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	var received atomic.Int64
	watching, ctx := errgroup.WithContext(ctx)
	watching.Go(func() error { return httpapi.ServeManager(ctx, m, httpapi.Site{}, listener) })
	for range c.Viewers {
		watching.Go(func() error {
			n, err := watch(ctx, listener.URL())
			received.Add(n)
			return err
		})
	}
	err = watching.Wait()
	f := clients.Meter.FirestoreByOperation()["live"]
	fmt.Fprintf(cli.Stdout, "%-24s %d viewers received %d MB; the feed made %d calls and %d reads, and got %d reports of %d MB\n", "", c.Viewers, received.Load()>>20, f.RPCs, f.Reads,
		clients.Meter.LiveReports.Value(), clients.Meter.LiveReportsBytes.Value()>>20)
	return err
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watch receives the live stream until it or ctx ends, and returns its size in bytes.
func watch(ctx context.Context, url string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/stream", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if ctx.Err() != nil {
		return n, nil
	}
	return n, err
}

// runPlain is the simplest State Manager: it commits every message in its own
// transaction.
func runPlain(ctx context.Context, clients *connect.Clients) error {
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	ctx = meter.WithOperation(ctx, pubsubio.TopicTelemetry)
	sub := clients.PubSub.Subscriber(pubsubio.Subscription(pubsubio.TopicTelemetry))
	return sub.Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
		report, err := wire.DecodeTelemetry(msg.Data, msg.Attributes)
		if err == nil {
			err = store.NewTelemetryApplier().Apply(context.WithoutCancel(ctx), []domain.Telemetry{report})[0]
		}
		if err != nil && firestoretx.Retryable(err) {
			msg.Nack()
			return
		}
		clients.Meter.Settle(meter.Settlement{Kind: pubsubio.TopicTelemetry, Outcome: meter.Applied})
		clients.Meter.Latency(pubsubio.TopicTelemetry).Record(time.Since(msg.PublishTime))
		msg.Ack()
	})
}

// bed is a pair of fresh servers with a publisher.
type bed struct {
	closers   []io.Closer
	warm      map[string]*meter.Histogram // latencies recorded before the measurement began
	clients   *connect.Clients
	publisher *pubsubio.Publisher
	pubsub    *pubsubemu.Server // nil when the environment names a Pub/Sub host
}

type closer func() error

func (c closer) Close() error { return c() }

// newBed starts servers for a run with that many registered drones.
func newBed(ctx context.Context, drones int) (*bed, error) {
	b := &bed{}
	hosts := connect.Config{}.FromEnvironment()
	if hosts.FirestoreHost == "" {
		s, err := firestoreemu.Start(firestoreemu.Options{})
		if err != nil {
			return nil, err
		}
		hosts.FirestoreHost, b.closers = s.Addr(), append(b.closers, s)
	}
	if hosts.PubSubHost == "" {
		s, err := pubsubemu.Start(pubsubemu.Options{})
		if err != nil {
			return nil, err
		}
		hosts.PubSubHost, b.pubsub, b.closers = s.Addr(), s, append(b.closers, s)
	}
	hosts.Project = fmt.Sprintf("bench-%d", time.Now().UnixNano())
	var err error
	if b.clients, err = connect.Open(ctx, hosts, meter.New()); err != nil {
		return nil, err
	}
	b.publisher = pubsubio.NewPublisher(b.clients.PubSub)
	b.closers = append([]io.Closer{closer(func() error { b.publisher.Stop(); return nil }), b.clients}, b.closers...)
	return b, errors.Join(pubsubio.Ensure(ctx, b.clients.PubSub), b.register(ctx, drones))
}

// register tells the store of the drones, which it would refuse as strangers.
func (b *bed) register(ctx context.Context, drones int) error {
	store, by := firestoretx.New(b.clients.Firestore, firestoretx.Config{}), firestoretx.Change{By: "bench", Why: "to measure"}
	if _, err := store.ApplyDepot(ctx, domain.Depot{ID: "DEPOT", Name: "Depot", Position: domain.Position{Lat: 48.8, Lon: 2.3}}, by); err != nil {
		return err
	}
	own := domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60}
	var g errgroup.Group
	g.SetLimit(16)
	for d := range drones {
		g.Go(func() error {
			_, err := store.ApplyDrone(ctx, domain.DroneRegistration{ID: droneID(d), HomeDepotID: "DEPOT", Own: own}, by)
			return err
		})
	}
	return g.Wait()
}

func droneID(d int) domain.DroneID { return domain.DroneID(fmt.Sprintf("DRONE-%05d", d)) }

func (b *bed) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// report is the n-th report of drone d.
func (c *command) report(d, n int, at time.Time) domain.Telemetry {
	t := domain.Telemetry{
		DroneID: droneID(d), Timestamp: at, Battery: 80, SpeedKmh: 50, Status: domain.DroneMoving,
		Position: domain.Position{Lat: 48.9 - math.Abs(float64(n%2000-1000))/1e4, Lon: 2.3 + float64(d%1000)/1e4}, // there and back
	}
	if n == 0 {
		t.Status = domain.DroneIdle // a drone is UNKNOWN until its first IDLE report
		return t
	}
	if c.Changes > 0 && ((n+d)/c.Changes)%2 == 1 {
		t.Status = domain.DroneDelivering
	}
	return t
}

func (b *bed) publish(ctx context.Context, t domain.Telemetry) (pubsubio.Published, error) {
	data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
	if err != nil {
		return pubsubio.Published{}, err
	}
	return b.publisher.Publish(ctx, pubsubio.TopicTelemetry, data, attrs, string(t.DroneID)), nil
}

// drain fills a backlog and measures how fast the worker drains it, in messages a
// second.
func (c *command) drain(ctx context.Context, name string, messages int, work worker) (rate float64, err error) {
	b, err := newBed(ctx, c.Drones)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	began := time.Now().Add(-time.Hour)
	var sent []pubsubio.Published
	for i := range messages {
		p, err := b.publish(ctx, c.report(i%c.Drones, i/c.Drones, began.Add(time.Duration(i/c.Drones)*200*time.Millisecond)))
		if err != nil {
			return 0, err
		}
		sent = append(sent, p)
	}
	for _, p := range sent {
		if _, err := p.Wait(ctx); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	working, stop := b.start(ctx, work)
	b.await(working, int64(messages))
	elapsed := time.Since(start)
	if err := errors.Join(stop(), ctx.Err()); err != nil {
		return 0, err
	}
	rate = float64(messages) / elapsed.Seconds()
	b.row(name, rate)
	return rate, nil
}

// start runs the worker until stop is called. If the worker fails, working ends
// early and stop returns the error.
func (b *bed) start(ctx context.Context, work worker) (working context.Context, stop func() error) {
	running, working := errgroup.WithContext(ctx)
	until, cancel := context.WithCancel(working)
	running.Go(func() error { return work(until, b.clients) })
	return working, func() error { cancel(); return running.Wait() }
}

func (b *bed) settled() int64 {
	var n int64
	for s, count := range b.clients.Meter.Settled() {
		if s.Kind == pubsubio.TopicTelemetry && s.Outcome != meter.Nacked {
			n += count
		}
	}
	return n
}

// await waits until n messages are settled or the worker has ended, and prints the
// progress.
func (b *bed) await(working context.Context, n int64) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	shown := time.Now()
	for b.settled() < n {
		select {
		case <-working.Done():
			return
		case <-ticker.C:
		}
		if time.Since(shown) > 5*time.Second {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "  %d of %d settled\n", b.settled(), n)
		}
	}
}

func (b *bed) row(name string, rate float64) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	n := float64(b.settled())
	f := b.clients.Meter.FirestoreByOperation()[pubsubio.TopicTelemetry]
	p99 := func(kind string) string {
		h := b.clients.Meter.Latency(kind)
		if warm := b.warm[kind]; warm != nil {
			h = h.Since(warm)
		}
		if h.Count() == 0 {
			return "-"
		}
		return h.Quantile(0.99).Round(time.Millisecond).String()
	}
	fmt.Fprintf(cli.Stdout, "%-24s %10.0f %12.0f %8.4f %8.4f %8.4f %12s %12s %5d MB\n", name, n, rate,
		float64(f.RPCs)/n, float64(f.Reads)/n, float64(f.Writes)/n,
		p99(pubsubio.LatencyStatus), p99(pubsubio.LatencyPosition), mem.HeapInuse>>20)
}

// sustain publishes at a steady rate and measures during that time.
func (c *command) sustain(ctx context.Context, work worker) (err error) {
	b, err := newBed(ctx, c.Drones)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	used := processorTime()
	working, stop := b.start(ctx, work)
	confirmed, offering := errgroup.WithContext(working)
	var sent, maxBacklog int64
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	start := time.Now()
	next := make([]int, c.Drones) // reports sent of each drone
	credit, last := 0.0, start
	at := 0
	shown := start
	// Every drone's first reports make the State Manager read it and are not part of the load.
	warmUp := start.Add(8 * time.Second)
	for now := start; now.Sub(start) < c.Duration && offering.Err() == nil; now = <-ticker.C {
		rate := float64(c.Drones) * c.Hz
		if c.Burst > 1 && now.Sub(start) < c.Duration/2 {
			rate *= c.Burst
		} else if c.Burst > 1 {
			rate = 0
		}
		credit += rate * now.Sub(last).Seconds()
		last = now
		for ; credit >= 1; credit-- {
			p, err := b.publish(ctx, c.report(at, next[at], time.Now()))
			if err != nil {
				return err
			}
			confirmed.Go(func() error { _, err := p.Wait(ctx); return err })
			next[at]++
			at = (at + 1) % c.Drones
			sent++
		}
		maxBacklog = max(maxBacklog, sent-b.settled())
		if b.warm == nil && now.After(warmUp) {
			b.warm = map[string]*meter.Histogram{}
			for _, kind := range []string{pubsubio.LatencyStatus, pubsubio.LatencyPosition} {
				b.warm[kind] = b.clients.Meter.Latency(kind).Since(&meter.Histogram{})
			}
		}
		if now.Sub(shown) > 5*time.Second {
			shown = now
			fmt.Fprintf(os.Stderr, "  %.0f s: %d sent, %d not settled\n", now.Sub(start).Seconds(), sent, sent-b.settled())
		}
	}
	offered := float64(sent) / time.Since(start).Seconds()
	if err := confirmed.Wait(); err != nil { // what was not published will not be settled
		return errors.Join(err, stop())
	}
	behind := sent - b.settled()
	b.await(working, sent)
	if err := errors.Join(stop(), ctx.Err()); err != nil {
		return err
	}
	b.row(fmt.Sprintf("grouped, %.0f/s offered", offered), float64(sent)/time.Since(start).Seconds())
	fmt.Fprintf(cli.Stdout, "%-24s %d unsettled at the end of the load, at most %d at any time; a position update waits up to a second by design\n", "", behind, maxBacklog)
	fmt.Fprintf(cli.Stdout, "%-24s %d µs of processor time for each report, publisher and embedded servers included\n", "", (processorTime()-used).Microseconds()/sent)
	return nil
}
