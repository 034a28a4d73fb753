// Command lock measures the lock library: how many pairs of acquire and release a
// second, and how long an acquire takes, for one key and for many, with one worker
// and with many. At the same time it checks that a lock never has two holders, that
// fences strictly rise and that no worker starves.
//
// It runs against an embedded Firestore, or against the server that
// FIRESTORE_EMULATOR_HOST names, and against the stores of --store.
//
//	go run ./bench/lock --duration 5s
//	go run ./bench/lock --keys 1 --workers 64 --duration 10s
//	go run ./bench/lock --keys 1 --workers 8 --store redis://localhost:6379/0 --store postgres://postgres@localhost:5432/postgres
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// run is one measurement.
type run struct {
	keys, workers int
	duration      time.Duration
	processes     int // backends that share only the server
}

// matrix lists the measurements without flags.
var matrix = []run{
	{keys: 1, workers: 1}, {keys: 1, workers: 8}, {keys: 1, workers: 64},
	{keys: 64, workers: 1}, {keys: 64, workers: 8}, {keys: 64, workers: 64},
}

type command struct {
	Keys     int           `help:"Number of keys; default 1 if --workers is set. Without both flags, several combinations are measured." placeholder:"N" check:"min 0 max 100000"`
	Workers  int           `help:"Number of workers; default 1 if --keys is set." placeholder:"N" check:"min 0 max 100000"`
	Backends int           `help:"Number of backends that the workers share, each like one process." default:"1" check:"min 1 max 1000"`
	Duration time.Duration `help:"Length of each measurement." default:"3s" check:"over 0s"`
	Store    []string      `help:"Further store to measure, such as redis://HOST:PORT/DB or postgres://USER@HOST:PORT/DB, where the tables of the locks are created; repeat it for more." placeholder:"URL" secret:"" sep:"none"`
}

// Check implements config.Checker.
func (c *command) Check(r *config.Refuser) {
	for _, text := range c.Store {
		if _, err := connect.ParseLockStore(text); err != nil {
			r.Refuse("store", "%s", err)
		}
	}
}

func main() {
	cli.Main(&command{}, "Measures the lock library.")
}

// Run measures one combination or the whole matrix.
func (c *command) Run(ctx context.Context) error {
	if err := measureFirestore(ctx, cli.Stdout, c.runs()); err != nil {
		return err
	}
	for _, text := range c.Store {
		if err := measureStore(ctx, cli.Stdout, text, c.runs()); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) runs() []run {
	runs := slices.Clone(matrix)
	if c.Keys > 0 || c.Workers > 0 {
		runs = []run{{keys: max(1, c.Keys), workers: max(1, c.Workers)}}
	}
	for i := range runs {
		runs[i].duration, runs[i].processes = c.Duration, c.Backends
	}
	return runs
}

// dialer opens a backend of its own, like that of one process, with what releases it. It
// counts the requests to the store, if it can.
type dialer func(ctx context.Context, requests *atomic.Int64) (lock.Backend, func(), error)

// measureFirestore makes the runs on Firestore.
func measureFirestore(ctx context.Context, w io.Writer, runs []run) (err error) {
	addr, name := os.Getenv("FIRESTORE_EMULATOR_HOST"), "Firestore, server of FIRESTORE_EMULATOR_HOST"
	if addr == "" {
		server, err := firestoreemu.Start(firestoreemu.Options{})
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, server.Close()) }()
		addr, name = server.Addr(), "Firestore, embedded server"
	} else if err := os.Unsetenv("FIRESTORE_EMULATOR_HOST"); err != nil { // dial connects; the client must not
		return err
	}
	return measure(ctx, w, name, runs, func(ctx context.Context, requests *atomic.Int64) (lock.Backend, func(), error) {
		return dialFirestore(ctx, addr, requests)
	})
}

// measureStore makes the runs on a store of an address.
func measureStore(ctx context.Context, w io.Writer, text string, runs []run) error {
	store, err := connect.ParseLockStore(text)
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return fmt.Errorf("prepare %s: %w", store, err)
	}
	return measure(ctx, w, store.String(), runs, func(ctx context.Context, _ *atomic.Int64) (lock.Backend, func(), error) {
		b, stop, err := store.Open(ctx, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, nil, err
		}
		return b, func() {
			_ = b.Close(context.WithoutCancel(ctx))
			_ = stop()
		}, nil
	})
}

// measure makes the runs and prints a line for each.
func measure(ctx context.Context, w io.Writer, name string, runs []run, dial dialer) error {
	fmt.Fprintf(w, "%s\n%5s %7s %8s %9s %11s %9s %9s %9s %8s %8s\n", name,
		"keys", "workers", "backends", "pairs/s", "hand-overs", "p50", "p99", "max", "fewest", "RPCs/pair")
	for _, r := range runs {
		if err := measureOne(ctx, w, dial, r); err != nil {
			return fmt.Errorf("%s: %d keys, %d workers: %w", name, r.keys, r.workers, err)
		}
	}
	return nil
}

// resource is what a lock guards. It detects a lock that fails, and counts how often the
// lock went from one worker to another.
type resource struct {
	mu        sync.Mutex
	holder    int
	fence     lock.Fence
	last      int // worker
	handOvers int
}

func (r *resource) enter(worker int, fence lock.Fence) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder != 0 {
		return fmt.Errorf("workers %d and %d hold the lock at the same time", r.holder, worker)
	}
	if fence <= r.fence {
		return fmt.Errorf("fence %s follows %s", fence, r.fence)
	}
	if r.last != 0 && r.last != worker {
		r.handOvers++
	}
	r.holder, r.fence, r.last = worker, fence, worker
	return nil
}

func (r *resource) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder = 0
}

func measureOne(ctx context.Context, w io.Writer, dial dialer, r run) error {
	var requests atomic.Int64
	var backends []lock.Backend
	for range r.processes {
		b, closeClient, err := dial(ctx, &requests)
		if err != nil {
			return err
		}
		defer closeClient()
		backends = append(backends, b)
	}
	prefix := lock.NewLockID()
	key := func(i int) string { return fmt.Sprintf("%s-%d", prefix, i%r.keys) }
	for i := range r.keys { // the first acquire of a key is a special case
		if err := lock.Do(ctx, backends[0], key(i), func(context.Context, *lock.Handle) error { return nil }); err != nil {
			return err
		}
	}
	requests.Store(0)

	resources := make([]resource, r.keys)
	latencies := make([][]time.Duration, r.workers)
	failures := make([]error, r.workers)
	start := time.Now()
	var wg sync.WaitGroup
	for worker := range r.workers {
		wg.Go(func() {
			b := backends[worker%len(backends)]
			for i := worker; ctx.Err() == nil && time.Since(start) < r.duration; i++ {
				took, err := pair(ctx, b, key(i), &resources[i%r.keys], worker+1)
				if err != nil {
					failures[worker] = err
					return
				}
				latencies[worker] = append(latencies[worker], took)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	handOvers := 0
	for i := range resources {
		handOvers += resources[i].handOvers
	}
	printRun(w, r, latencies, elapsed, handOvers, requests.Load())
	for worker, l := range latencies {
		if len(l) == 0 {
			return fmt.Errorf("worker %d starved: it never got a lock", worker+1)
		}
	}
	return nil
}

// pair acquires and releases once and returns how long the acquire took.
func pair(ctx context.Context, b lock.Backend, key string, guarded *resource, worker int) (time.Duration, error) {
	start := time.Now()
	h, err := lock.Acquire(ctx, b, key, lock.WithTimeout(time.Minute), lock.WithMaxRetries(1<<30),
		lock.WithRetryDelay(20*time.Millisecond))
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if err := guarded.enter(worker, h.Fence()); err != nil {
		return 0, err
	}
	guarded.leave()
	if ok, err := h.Release(ctx); err != nil || !ok {
		return 0, fmt.Errorf("release: %v, %w", ok, err)
	}
	return took, nil
}

func printRun(w io.Writer, r run, latencies [][]time.Duration, elapsed time.Duration, handOvers int, requests int64) {
	fewest := len(latencies[0])
	for _, l := range latencies {
		fewest = min(fewest, len(l))
	}
	all := slices.Concat(latencies...)
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	each := "-"
	if requests > 0 {
		each = fmt.Sprintf("%.2f", float64(requests)/float64(len(all)))
	}
	fmt.Fprintf(w, "%5d %7d %8d %9.0f %9.0f/s %9v %9v %9v %8d %8s\n", r.keys, r.workers, r.processes,
		float64(len(all))/elapsed.Seconds(), float64(handOvers)/elapsed.Seconds(), at(0.5), at(0.99), at(1), fewest, each)
}

// dialFirestore returns a backend with its own connection, which counts requests.
func dialFirestore(ctx context.Context, addr string, requests *atomic.Int64) (lock.Backend, func(), error) {
	count := func(ctx context.Context) context.Context {
		requests.Add(1)
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner") // for Google's emulator
	}
	conn, err := grpc.NewClient(addr,
		firestorelock.DialOption(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(count(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return stream(count(ctx), desc, cc, method, opts...)
		}))
	if err != nil {
		return nil, nil, err
	}
	client, err := firestore.NewClient(ctx, "lock-benchmark", option.WithGRPCConn(conn))
	if err != nil {
		return nil, nil, err
	}
	b, err := firestorelock.New(client, firestorelock.Config{})
	if err != nil {
		return nil, nil, err
	}
	return b, func() {
		_ = b.Close(context.WithoutCancel(ctx))
		_ = client.Close()
		_ = conn.Close()
	}, nil
}
