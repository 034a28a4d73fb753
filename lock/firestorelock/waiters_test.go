package firestorelock

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
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
