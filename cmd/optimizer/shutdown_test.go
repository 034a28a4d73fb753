package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OPT-01, L-ACQ-06: a lock that was granted while its optimizer was told to stop is
// released before the process ends, so the next cycle does not wait for its expiry.
func TestCycles_LeaveNoLockBehind(t *testing.T) {
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
	hosts := emutest.Hosts(t)
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		t.Setenv(name, os.Getenv(name)) // connecting unsets both, for the process
	}
	locks := emutest.Connect(t, hosts).Firestore.Collection("locks")
	c := &cycles{Connection: cli.Connection{Project: hosts.Project, FirestoreHost: hosts.FirestoreHost, PubsubHost: hosts.PubSubHost}}
	key := domain.CycleLockKey("D1")
	err := c.with(t.Context(), dispatch.Config{}, func(p *planning) error {
		// The first acquisition of a key uses a different transaction from later ones.
		h, ok, err := lock.TryAcquire(t.Context(), p.locks, key)
		if err != nil || !ok || h.Close() != nil {
			return fmt.Errorf("first acquisition: %t, %w", ok, err)
		}
		granted, givenUp := fault.NewGate(), fault.NewGate()
		faults.Add(fault.Rule{RPC: "Commit", Nth: 1, At: fault.After, Do: fault.Pause(granted)})
		faults.Add(fault.Rule{RPC: "Commit", Nth: 2, At: fault.Before, Do: fault.Pause(givenUp)})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		acquired := make(chan error, 1)
		go func() {
			_, _, err := lock.TryAcquire(ctx, p.locks, key, lock.WithTTL(time.Hour))
			acquired <- err
		}()
		if err := granted.Arrived(t.Context(), 1); err != nil {
			return err
		}
		stop()
		if err := <-acquired; !errors.Is(err, lock.ErrAborted) {
			return fmt.Errorf("acquisition: error %v, want it aborted", err)
		}
		if err := givenUp.Arrived(t.Context(), 1); err != nil {
			return err
		}
		// After this returns, and well before the release times out.
		time.AfterFunc(100*time.Millisecond, givenUp.Open)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := locks.Doc(key).Get(t.Context()); status.Code(err) != codes.NotFound {
		t.Errorf("a lock is left behind: %v, error %v", snap.Data(), err)
	}
}
