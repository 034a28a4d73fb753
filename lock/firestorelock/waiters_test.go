package firestorelock

import (
	"context"
	"errors"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/waitline"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// B-07: a waiting acquisition is woken by a release of another process, long
// before it would have tried again.
func TestWaiter_IsWokenByAListener(t *testing.T) {
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

// B-07: Close ends the listener, or it would wait for it; waiting acquisitions poll.
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

// B-07: every kind of release wakes those who wait in this process.
func TestWaiter_IsWokenByARelease(t *testing.T) {
	for name, release := range map[string]func(r rig, ref lock.Ref) (lock.ReleaseResult, error){
		"version": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) { return r.faulty.Release(bg, ref) },
		"transaction": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) {
			return r.faulty.Release(bg, lock.Ref{LockID: ref.LockID})
		},
		"lost reply": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) {
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Times: 1, Do: faultproxy.Fault{After: codes.Internal}})
			return r.faulty.Release(bg, ref)
		},
		"lock without its key, as others may write it": func(r rig, ref lock.Ref) (lock.ReleaseResult, error) {
			if _, err := r.client.Doc("locks/"+key).Update(bg, []firestore.Update{{Path: fieldKey, Value: firestore.Delete}}); err != nil {
				return lock.ReleaseResult{}, err
			}
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

// B-07: all who wait for a key share one listener, and it leaves nothing behind.
func TestWaiters_ShareOneListener(t *testing.T) {
	b := newBench(t, Config{})
	_, leaveFirst := b.Watch(key)
	_, leaveSecond := b.Watch(key)
	for range 2 {
		b.waiters.ListenSoon(key)
		if n := b.clock.Timers(); n != 1 {
			t.Errorf("%d listeners are to be started", n)
		}
	}
	b.clock.Advance(waitline.ListenAfter)
	b.waiters.ListenSoon(key)
	if n := b.clock.Timers(); n != 0 {
		t.Errorf("%d listeners are to be started beside the one", n)
	}
	leaveFirst()
	leaveSecond()
	if n := b.waiters.Waiting(); n != 0 {
		t.Errorf("%d lines are left", n)
	}
}

// refuseListen is a connection on which no listener succeeds; it counts them.
func refuseListen(code codes.Code, listeners *atomic.Int64) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if path.Base(method) != "Listen" {
			return stream(ctx, desc, cc, method, opts...)
		}
		listeners.Add(1)
		return nil, status.Error(code, "")
	})
}

// B-07: a listener is started for somebody who has waited long enough, and again after it
// has ended, but not if the server supports none, and not after Close.
func TestWaiters_StartListenersWhileSomebodyWaits(t *testing.T) {
	for _, row := range []struct {
		name string
		code codes.Code // of the listeners
		do   func(b bench, listenSoon func(key string))
		want int64
	}{
		{"ended", codes.PermissionDenied, func(b bench, listenSoon func(string)) {
			listenSoon(key)
			b.clock.Advance(waitline.ListenAfter)
			settle(t, b.Backend)
			listenSoon(key)
			b.clock.Advance(waitline.ListenAfter)
		}, 2},
		{"not offered", codes.Unimplemented, func(b bench, listenSoon func(string)) {
			listenSoon(key)
			b.clock.Advance(waitline.ListenAfter / 2)
			listenSoon("other")
			b.clock.Advance(waitline.ListenAfter / 2)
			settle(t, b.Backend)
			b.clock.Advance(waitline.ListenAfter)
			listenSoon(key)
			if n := b.clock.Timers(); n != 0 {
				t.Errorf("%d listeners are to be started", n)
			}
		}, 1},
		{"closed", codes.PermissionDenied, func(b bench, listenSoon func(string)) {
			listenSoon(key)
			if err := b.Close(bg); err != nil {
				t.Error(err)
			}
			listenSoon("other")
			if n := b.clock.Timers(); n != 0 {
				t.Errorf("%d listeners are to be started", n)
			}
		}, 0},
		{"first waiter is new", codes.PermissionDenied, func(b bench, listenSoon func(string)) {
			_, leave := b.Watch("third")
			listenSoon("third")
			b.clock.Advance(waitline.ListenAfter / 2)
			_, leaveSecond := b.Watch("third")
			defer leaveSecond()
			leave()
			b.clock.Advance(waitline.ListenAfter / 2)
			if n := b.clock.Timers(); n != 1 {
				t.Errorf("%d listeners are to be started", n)
			}
		}, 0},
		{"first waiter came later", codes.PermissionDenied, func(b bench, listenSoon func(string)) {
			_, leave := b.Watch("third")
			listenSoon("third")
			b.clock.Advance(waitline.ListenAfter / 2)
			_, leaveSecond := b.Watch("third")
			defer leaveSecond()
			listenSoon("third") // its only try for long
			leave()
			b.clock.Advance(waitline.ListenAfter)
			settle(t, b.Backend)
		}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var listeners atomic.Int64
			clock := locktest.NewClock(time.Now())
			client := clientOf(t, serverAddr, freshProject(), refuseListen(row.code, &listeners))
			b := bench{Backend: newBackend(t, client, Config{Clock: clock}), clock: clock}
			for _, key := range []string{key, "other"} {
				_, leave := b.Watch(key)
				defer leave()
			}
			row.do(b, b.waiters.ListenSoon)
			settle(t, b.Backend)
			if n := listeners.Load(); n != row.want {
				t.Errorf("%d listeners, want %d", n, row.want)
			}
		})
	}
}

// A signal that a waiter did not use goes to the next.
func TestWaiters_PassAnUnusedSignalOn(t *testing.T) {
	b := newBackend(t, newClient(t, serverAddr), Config{})
	first, leaveFirst := b.Watch(key)
	second, leaveSecond := b.Watch(key)
	defer leaveSecond()
	b.waiters.Wake(key)
	b.waiters.Wake(key)
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

// B-07: a waiter is told of a release once, because each signal costs it a try. What the
// listener saw before the lock was found held is not news.
func TestWaiters_AreToldOnce(t *testing.T) {
	b := newBackend(t, newClient(t, serverAddr), Config{})
	signal, leave := b.Watch(key)
	defer leave()
	start := time.Now()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	for _, row := range []struct {
		event string
		do    func()
		told  bool
	}{
		{"released here", func() { b.waiters.Wake(key) }, true},
		{"the listener sees it as well", func() { b.waiters.Free(key, at(1)) }, false},
		{"somebody else took the lock", func() { b.waiters.Held(key, at(2)) }, false},
		{"the listener is late", func() { b.waiters.Free(key, at(1)) }, false},
		{"released elsewhere", func() { b.waiters.Free(key, at(3)) }, true},
		{"the reply to the release is later", func() { b.waiters.Wake(key) }, false},
		{"released again, before the try that was told of", func() { b.waiters.Free(key, at(5)) }, false},
		{"that try found the lock held in between", func() { b.waiters.Held(key, at(4)) }, true},
	} {
		row.do()
		if told := len(signal) > 0; told != row.told {
			t.Errorf("%s: told is %v", row.event, told)
		}
		for len(signal) > 0 {
			<-signal
		}
	}
}

// B-07: if a waiter gives up before it tries, its signal goes to the next one. A signal
// that led to a try does not: the lock was taken or found held.
func TestWaiters_PassOnlyUnseenSignalsOn(t *testing.T) {
	for _, looked := range []bool{false, true} {
		b := newBackend(t, newClient(t, serverAddr), Config{})
		first, leaveFirst := b.Watch(key)
		second, leaveSecond := b.Watch(key)
		b.waiters.Wake(key)
		<-first
		if looked {
			b.waiters.Held(key, time.Now())
		}
		leaveFirst()
		if told := len(second) > 0; told == looked {
			t.Errorf("looked %v: the next is told %v", looked, told)
		}
		leaveSecond()
	}
}

// B-07: without listeners waiting works by polling.
func TestWaiter_PollsWithoutListeners(t *testing.T) {
	r := newRig(t, Config{})
	r.faulty.waiters.Close()
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

// B-07: 64 acquisitions wait, all of one process or of 4: nobody waits longer than four
// times the median.
func TestWaiter_IsFair(t *testing.T) {
	for _, processes := range []int{1, 4} {
		project := freshProject()
		var backends []lock.Backend
		for range processes {
			backends = append(backends, newBackend(t, clientOf(t, serverAddr, project), Config{}))
		}
		listening := func() { time.Sleep(500 * time.Millisecond) } // a listener starts after 100 ms
		history.CheckFairness(t, key, listening, backends...)
	}
}
