package firestoreemu_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

func Example() {
	server, err := firestoreemu.Start(firestoreemu.Options{}) // in memory, on a free port
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "my-project")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	drone := client.Doc("drones/d1")
	if _, err := drone.Create(ctx, map[string]any{"battery": 90}); err != nil {
		log.Fatal(err)
	}
	err = client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		snapshot, err := tx.Get(drone)
		if err != nil {
			return err
		}
		return tx.Set(drone, map[string]any{"battery": snapshot.Data()["battery"].(int64) - 5})
	})
	if err != nil {
		log.Fatal(err)
	}
	snapshot, err := drone.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(snapshot.Data())
	// Output: map[battery:85]
}

// In a test, NewClient starts a server and closes both at the end.
func ExampleNewClient() {
	test := func(t *testing.T) {
		client := firestoreemu.NewClient(t)
		if _, err := client.Doc("drones/d1").Create(t.Context(), map[string]any{"battery": 90}); err != nil {
			t.Fatal(err)
		}
	}
	_ = test // go test calls it
}

// The answer to an applied commit is lost once. The client cannot know whether
// its document was stored.
func ExampleOptions_faults() {
	faults := fault.New(1) // the seed of rules with a probability
	server, err := firestoreemu.Start(firestoreemu.Options{Faults: faults})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "my-project")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	rule := faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "drones/", Times: 1, At: fault.After, Do: fault.Fail(codes.Internal)})
	_, err = client.Doc("drones/d1").Create(ctx, map[string]any{"battery": 90})
	fmt.Println("first:", status.Code(err))
	_, err = client.Doc("drones/d1").Create(ctx, map[string]any{"battery": 90})
	fmt.Println("second:", status.Code(err))
	fmt.Println("injected:", rule.Fired())
	// Output:
	// first: Internal
	// second: AlreadyExists
	// injected: 1
}

// Documents in a data directory survive a restart of the server.
func ExampleOptions_dataDir() {
	dir, err := os.MkdirTemp("", "firestore")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for range 2 {
		server, err := firestoreemu.Start(firestoreemu.Options{DataDir: dir})
		if err != nil {
			log.Fatal(err)
		}
		client, err := server.Client(ctx, "my-project")
		if err != nil {
			log.Fatal(err)
		}
		if _, err := client.Doc("starts/count").Set(ctx, map[string]any{"n": firestore.Increment(1)}, firestore.MergeAll); err != nil {
			log.Fatal(err)
		}
		snapshot, err := client.Doc("starts/count").Get(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("starts:", snapshot.Data()["n"])
		if err := client.Close(); err != nil {
			log.Fatal(err)
		}
		if err := server.Close(); err != nil { // fails if something could not be written
			log.Fatal(err)
		}
	}
	// Output:
	// starts: 1
	// starts: 2
}

// Counters show what a client really sends.
func ExampleServer_Counters() {
	server, err := firestoreemu.Start(firestoreemu.Options{InProcess: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "my-project")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		_, err := tx.GetAll([]*firestore.DocumentRef{client.Doc("drones/d1"), client.Doc("drones/d2")})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	counters := server.Counters()
	fmt.Println("RPCs:", counters.RPCs)
	fmt.Println("documents read:", counters.Read)
	// Output:
	// RPCs: map[BatchGetDocuments:1 BeginTransaction:1 Commit:1]
	// documents read: 2
}

// A run of concurrent transactions can be checked for serializability.
func ExampleServer_CheckSerializable() {
	server, err := firestoreemu.Start(firestoreemu.Options{RecordHistory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	client, err := server.Client(ctx, "my-project")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			if _, err := client.Doc("counters/c").Set(ctx, map[string]any{"n": firestore.Increment(1)}, firestore.MergeAll); err != nil {
				log.Fatal(err)
			}
		})
	}
	workers.Wait()
	fmt.Println(server.CheckSerializable())
	// Output: <nil>
}
