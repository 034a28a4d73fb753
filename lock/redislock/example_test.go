package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/redislock"
)

// A process has one client and one backend for all its locks.
func Example() {
	ctx := context.Background()
	// The work that the lock protects. It passes the fence along with each write.
	writeReport := func(_ context.Context, fence lock.Fence) error {
		fmt.Println("writing with fence", fence)
		return nil
	}

	options, err := redis.ParseURL(os.Getenv("REDIS_URL")) // such as redis://localhost:6379/0
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	backend, err := redislock.New(client, redislock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Close(ctx) // waits for what runs in the background

	err = lock.Do(ctx, backend, "reports:nightly", func(ctx context.Context, h *lock.Handle) error {
		return writeReport(ctx, h.Fence()) // ctx ends when the lease is lost
	}, lock.WithTTL(15*time.Second), lock.WithAutoExtend())
	fmt.Println("done:", err)
	// Prints:
	// writing with fence 000000000000001
	// done: <nil>
}

// process connects as each process does, and returns how to disconnect.
func process() (client *redis.Client, backend *redislock.Backend, disconnect func()) {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	client = redis.NewClient(options)
	backend, err = redislock.New(client, redislock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return client, backend, func() {
		if err := errors.Join(backend.Close(context.Background()), client.Close()); err != nil {
			log.Print(err)
		}
	}
}

// Who waits is told of the release by the server, long before the next try.
func Example_waiting() {
	ctx := context.Background()
	_, ours, disconnect := process()
	defer disconnect()
	_, theirs, disconnectTheirs := process()
	defer disconnectTheirs()

	holder, err := lock.Acquire(ctx, theirs, "depot:north")
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = holder.Close() }) // its work is done

	waiter, err := lock.Acquire(ctx, ours, "depot:north",
		lock.WithTimeout(time.Minute), lock.WithMaxRetries(math.MaxInt))
	if err != nil {
		log.Fatal(err)
	}
	defer waiter.Close()
	fmt.Println(waiter.Fence() > holder.Fence())
	// Prints:
	// true
}

// write stores a value unless a later holder has written: one script, so that nobody
// writes between the comparison and the write.
var write = redis.NewScript(`
if (redis.call('HGET', KEYS[1], 'fence') or '') > ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
return 1`)

// A holder that lost its lease without noticing writes late. The resource compares fences
// and refuses the write.
func Example_fencedWrite() {
	ctx := context.Background()
	client, backend, disconnect := process()
	defer disconnect()

	paused, err := lock.Acquire(ctx, backend, "reports:today")
	if err != nil {
		log.Fatal(err)
	}
	defer paused.Close()
	// Its lease ends while it is paused; here an operator ends it.
	if _, err := lock.Break(ctx, backend, "reports:today", nil); err != nil {
		log.Fatal(err)
	}
	next, err := lock.Acquire(ctx, backend, "reports:today")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Close()

	for _, w := range []struct {
		holder *lock.Handle
		value  string
	}{{next, "written by the holder"}, {paused, "written late"}} {
		written, err := write.Run(ctx, client, []string{"report"}, string(w.holder.Fence()), w.value).Bool()
		fmt.Println(w.value, written, err)
	}
	fmt.Println(client.HGet(ctx, "report", "value").Val())
	// Prints:
	// written by the holder true <nil>
	// written late false <nil>
	// written by the holder
}

// Of several processes one leads, and the next one does when it ends.
func Example_leader() {
	ctx := context.Background()
	lead := func(name string, work func()) error {
		_, backend, disconnect := process()
		defer disconnect()
		return lock.Do(ctx, backend, "billing:leader", func(_ context.Context, h *lock.Handle) error {
			fmt.Println(name, "leads with fence", h.Fence())
			work()
			return nil
		}, lock.WithTTL(15*time.Second), lock.WithAutoExtend(),
			lock.WithTimeout(time.Hour), lock.WithMaxRetries(math.MaxInt), lock.WithRetryTransient()) // stand by
	}

	second := make(chan error, 1)
	err := lead("a", func() {
		go func() { second <- lead("b", func() {}) }()
		fmt.Println("a has done its work")
	})
	fmt.Println(err, <-second)
	// Prints:
	// a leads with fence 000000000000001
	// a has done its work
	// b leads with fence 000000000000002
	// <nil> <nil>
}
