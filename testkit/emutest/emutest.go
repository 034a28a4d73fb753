package emutest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// Hosts starts the servers that the environment does not name, with the indexes of production, and returns the
// addresses of both. They stop with the test.
func Hosts(t testing.TB) connect.Config {
	t.Helper()
	c := connect.Config{
		// Project ids are short and begin with a letter.
		Project:       "t" + strings.ReplaceAll(uuid.NewString(), "-", "")[:20],
		FirestoreHost: os.Getenv(connect.FirestoreHost),
		PubSubHost:    os.Getenv(connect.PubSubHost),
	}
	if c.FirestoreHost == "" {
		c.FirestoreHost = firestoreemu.StartT(t, firestoreemu.Options{Indexes: deploy.FirestoreIndexes}).Addr()
	}
	if c.PubSubHost == "" {
		c.PubSubHost = pubsubemu.StartT(t, pubsubemu.Options{}).Addr()
	}
	return c
}

// ServeFirestore makes Hosts return an embedded Firestore with these options, for tests
// that cannot use another server.
func ServeFirestore(t testing.TB, o firestoreemu.Options) {
	t.Helper()
	t.Setenv(connect.FirestoreHost, firestoreemu.StartT(t, o).Addr())
}

// Clients returns connections to the servers of Hosts, closed at the end of the test.
func Clients(t testing.TB) *connect.Clients { return Connect(t, Hosts(t)) }

// Connect opens more connections to hosts, closed at the end of the test.
func Connect(t testing.TB, hosts connect.Config) *connect.Clients {
	t.Helper()
	c, err := connect.Open(context.Background(), hosts, meter.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close clients: %v", err)
		}
	})
	return c
}

// IssueFences makes it so that the locks of the depots have handed out the fences up to
// highest, as if there had been that many cycles.
func IssueFences(t testing.TB, client *firestore.Client, highest string, depots ...domain.DepotID) {
	t.Helper()
	for _, depot := range depots {
		key := domain.CycleLockKey(depot)
		counter, err := firestorelock.Config{}.CounterPath(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Doc(counter).Set(context.Background(), map[string]any{"fence": highest, "keyDebug": key}); err != nil {
			t.Fatal(err)
		}
	}
}

// Log sends log lines to the test's output until the test ends. A goroutine that still ends then,
// such as a client's, would panic with the line.
func Log(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(Output(t), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Output is the test's output until the test ends, and nothing afterwards.
func Output(t testing.TB) io.Writer {
	o := &output{to: t.Output()}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.to = io.Discard
	})
	return o
}

type output struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}

// patience is far longer than any successful wait. The official Pub/Sub emulator
// redelivers the messages of a closed stream only after their lease.
const patience = 2 * time.Minute

// Eventually waits until check returns nil, and fails the test with its last error if
// that takes longer than two minutes. Use it for the work of other goroutines and
// servers.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, fmt.Errorf("test ended: %w", err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
