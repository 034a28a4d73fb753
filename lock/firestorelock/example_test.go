package firestorelock_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// A process has one client and one backend for all its locks.
func Example() {
	ctx := context.Background()
	// The work that the lock protects. It passes the fence along with each write.
	writeReport := func(context.Context, lock.Fence) error { return nil }

	client, err := firestore.NewClient(ctx, "my-project", option.WithGRPCDialOption(firestorelock.DialOption()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	backend, err := firestorelock.New(client, firestorelock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Close(ctx) // waits for what runs in the background

	err = lock.Do(ctx, backend, "reports:nightly", func(ctx context.Context, h *lock.Handle) error {
		return writeReport(ctx, h.Fence()) // ctx ends when the lease is lost
	}, lock.WithTTL(15*time.Second), lock.WithAutoExtend())
	if err != nil {
		log.Print(err)
	}
}

// Two processes, each with a client and a backend of its own, contend for one
// lock. Whoever comes second waits, and gets the higher fence.
func Example_twoProcesses() {
	ctx := context.Background()
	server, err := firestoreemu.Start(firestoreemu.Options{}) // stands for the database
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	var turns sync.Mutex
	var fences []lock.Fence
	process := func() error {
		conn, err := grpc.NewClient(server.Addr(), firestorelock.DialOption(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close()
		client, err := firestore.NewClient(ctx, "example", option.WithGRPCConn(conn))
		if err != nil {
			return err
		}
		defer client.Close()
		backend, err := firestorelock.New(client, firestorelock.Config{})
		if err != nil {
			return err
		}
		defer backend.Close(ctx)
		return lock.Do(ctx, backend, "depot:north", func(_ context.Context, h *lock.Handle) error {
			turns.Lock()
			defer turns.Unlock()
			fences = append(fences, h.Fence())
			return nil
		}, lock.WithAutoExtend())
	}

	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := process(); err != nil {
				fmt.Println(err)
			}
		})
	}
	both.Wait()
	fmt.Println(fences)
	// Output: [000000000000001 000000000000002]
}
