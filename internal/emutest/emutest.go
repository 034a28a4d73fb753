// Package emutest gives tests a Firestore and a Pub/Sub of their own: the
// emulators named by FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST if set,
// else embedded servers. Every test gets a project that no other test uses, so
// tests can run together on one server.
package emutest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// Hosts starts whatever server the environment does not name, and returns where
// both are. They stop with the test.
func Hosts(t testing.TB) connect.Config {
	t.Helper()
	c := connect.Config{
		// Project ids are short and begin with a letter.
		Project:       "t" + strings.ReplaceAll(uuid.NewString(), "-", "")[:20],
		FirestoreHost: os.Getenv(connect.FirestoreHost),
		PubSubHost:    os.Getenv(connect.PubSubHost),
	}
	if c.FirestoreHost == "" {
		s, err := firestoreemu.Start(firestoreemu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closing(t, "firestore", s.Close) })
		c.FirestoreHost = s.Addr()
	}
	if c.PubSubHost == "" {
		s, err := pubsubemu.Start(pubsubemu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closing(t, "pubsub", s.Close) })
		c.PubSubHost = s.Addr()
	}
	return c
}

// ServeFirestore has Hosts name an embedded Firestore with options from now on,
// for tests that no other server will do for.
func ServeFirestore(t testing.TB, o firestoreemu.Options) {
	t.Helper()
	s, err := firestoreemu.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "firestore", s.Close) })
	t.Setenv(connect.FirestoreHost, s.Addr())
}

func closing(t testing.TB, what string, stop func() error) {
	if err := stop(); err != nil {
		t.Errorf("close %s: %v", what, err)
	}
}

// Clients are connections to the servers of Hosts, closed with the test.
func Clients(t testing.TB) *connect.Clients { return Connect(t, Hosts(t)) }

// Connect opens further connections to hosts, closed with the test.
func Connect(t testing.TB, hosts connect.Config) *connect.Clients {
	t.Helper()
	c, err := connect.Open(context.Background(), hosts, meter.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "clients", c.Close) })
	return c
}

// Log sends log lines to the test's output.
func Log(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// patience is far more than anything takes that works at all: the official
// Pub/Sub emulator hands what a closed stream held to another only after a
// lease.
const patience = 2 * time.Minute

// Eventually waits until check returns nil, and fails the test with its last
// error if that takes longer than two minutes. It is for what other goroutines
// and servers bring about; nothing in it depends on how long that takes.
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
