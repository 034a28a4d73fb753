package firestorelock

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/faultproxy"
)

// B-07: a waiting acquisition is woken by a release of another process, long
// before it would have tried again.
func TestWaiter_WokenByListener(t *testing.T) {
	r := newRig(t, Config{})
	holder := mustAcquire(t, r.direct, key)
	waiting := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, r.faulty, key, lock.WithTimeout(time.Hour), lock.WithRetryDelay(time.Hour))
		if err == nil {
			err = h.Close()
		}
		waiting <- err
	}()
	r.proxy.WaitCalls("Listen", 1)
	mustRelease(t, r.direct, lock.Ref{LockID: holder.LockID, Key: key})
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// B-07: Close ends the listener, which would keep it waiting; who waits polls.
func TestClose_EndsListeners(t *testing.T) {
	r := newRig(t, Config{})
	mustAcquire(t, r.direct, key)
	ctx, cancel := context.WithCancel(bg)
	waiting := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(ctx, r.faulty, key, lock.WithTimeout(time.Hour), lock.WithRetryDelay(time.Hour))
		waiting <- err
	}()
	r.proxy.WaitCalls("Listen", 1)
	patient, stop := context.WithTimeout(bg, time.Minute)
	defer stop()
	if err := r.faulty.Close(patient); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-waiting; !errors.Is(err, lock.ErrAborted) {
		t.Error(err)
	}
}

// B-07: whichever way a release takes, it tells who waits in this process.
func TestWaiter_WokenByRelease(t *testing.T) {
	for name, release := range map[string]func(r rig, ref lock.Ref) (lock.ReleaseResult, error){
		"version": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) { return r.faulty.Release(bg, ref) },
		"transaction": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) {
			return r.faulty.Release(bg, lock.Ref{LockID: ref.LockID})
		},
		"lost reply": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) {
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Internal}})
			return r.faulty.Release(bg, ref)
		},
	} {
		r := newRig(t, Config{})
		ref := lock.Ref{LockID: mustAcquire(t, r.faulty, key).LockID, Key: key}
		free, leave := r.faulty.Watch(key)
		if res, err := release(r, ref); err != nil || !res.OK || len(free) != 1 {
			t.Errorf("%s: %+v, %v, told %d", name, res, err, len(free))
		}
		leave()
	}
}

// B-07: one listener for all who wait for a key, and nothing is left of them.
func TestWaiters_OneListener(t *testing.T) {
	b := newBench(t, Config{})
	at, err := b.locate(key)
	if err != nil {
		t.Fatal(err)
	}
	_, leaveFirst := b.Watch(key)
	_, leaveSecond := b.Watch(key)
	for range 2 {
		b.listenSoon(at)
		if n := b.clock.Timers(); n != 1 {
			t.Errorf("%d listeners are to be started", n)
		}
	}
	b.clock.Advance(listenAfter)
	b.listenSoon(at)
	if n := b.clock.Timers(); n != 0 {
		t.Errorf("%d listeners are to be started beside the one", n)
	}
	leaveFirst()
	leaveSecond()
	if n := len(b.waiters.lines); n != 0 {
		t.Errorf("%d lines are left", n)
	}
}

// A signal that a waiter did not use goes to the next.
func TestWaiters_PassOn(t *testing.T) {
	b := newBackend(t, newClient(t, serverAddr), Config{})
	first, leaveFirst := b.Watch(key)
	second, leaveSecond := b.Watch(key)
	defer leaveSecond()
	b.waiters.wake(key)
	b.waiters.wake(key)
	if len(first) != 1 || len(second) != 0 {
		t.Errorf("told %d, %d", len(first), len(second))
	}
	leaveFirst()
	leaveFirst() // harmless
	if len(second) != 1 {
		t.Error("the signal is lost")
	}
	if free, leave := b.Watch(""); free != nil {
		t.Error("an invalid key is watched")
	} else {
		leave()
	}
}

// B-07: without listeners polling does.
func TestWaiter_Polls(t *testing.T) {
	r := newRig(t, Config{})
	r.faulty.waiters.close()
	holder := mustAcquire(t, r.direct, key)
	waiting := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, r.faulty, key, lock.WithTimeout(time.Hour), lock.WithMaxRetries(1<<30),
			lock.WithRetryDelay(time.Millisecond), lock.WithBackoff(lock.BackoffFixed))
		if err == nil {
			err = h.Close()
		}
		waiting <- err
	}()
	r.proxy.WaitCalls("BatchGetDocuments", 3)
	mustRelease(t, r.direct, lock.Ref{LockID: holder.LockID, Key: key})
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if n := r.proxy.Calls()["Listen"]; n != 0 {
		t.Errorf("%d listeners", n)
	}
}
