package postgreslock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// proxied makes a backend whose requests pass a proxy, and one whose requests do not.
func proxied(t *testing.T) (b, direct *Backend, proxy *faultproxy.TCPProxy) {
	t.Helper()
	direct, pool := fresh(t)
	proxy, err := faultproxy.StartTCP(shared.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	_, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	through := newPool(t, fmt.Sprintf("host=127.0.0.1 port=%s user=postgres dbname=%s sslmode=disable", port, pool.Config().ConnConfig.Database))
	b = newBackend(t, through, Config{})
	// Prepares each statement.
	ref := lock.Ref{Key: "warm", LockID: mustAcquire(t, b, "warm").LockID}
	if res, err := b.Extend(bg, ref, ttl); !res.OK || err != nil {
		t.Fatal(res, err)
	}
	mustRelease(t, b, ref)
	return b, direct, proxy
}

// carrying matches the requests that hold a text, as the key of a lock.
func carrying(text string) func([]byte) bool {
	return func(request []byte) bool { return bytes.Contains(request, []byte(text)) }
}

// L-ACQ-06, B-03: a request or its reply is lost with the connection.
func TestBackend_ResolvesLostCalls(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultproxy.TCPFault{"request": {CutBefore: true}, "reply": {CutAfter: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, direct, proxy := proxied(t)
			lose := func() { proxy.Add(faultproxy.TCPRule{Match: carrying("lost-key"), Times: 1, Do: fault}) }

			lose()
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: "lost-key", TTL: ttl})
			proxy.Clear()
			if fault.CutAfter {
				if err != nil || !res.OK {
					t.Fatalf("its reply lost: %+v, %v", res, err)
				}
			} else {
				if e, ok := errors.AsType[*lock.Error](err); !ok || !e.OutcomeUnknown || !errors.Is(err, lock.ErrServiceUnavailable) {
					t.Fatalf("the request lost: %+v, %v", res, err)
				}
				res = mustAcquire(t, direct, "lost-key")
				b.remember(res.LockID, res.Deadline)
			}
			ref := lock.Ref{Key: "lost-key", LockID: res.LockID}
			lose()
			if res, err := b.Extend(bg, ref, time.Hour); !res.OK || err != nil {
				t.Errorf("extend: %+v, %v", res, err)
			}
			proxy.Clear()
			lose()
			if res, err := b.Release(bg, ref); !res.OK || err != nil {
				t.Errorf("release: %+v, %v", res, err)
			}
			proxy.Clear()
			if locked, err := direct.IsLocked(bg, "lost-key"); locked || err != nil {
				t.Errorf("locked %t, %v", locked, err)
			}
		})
	}
}

// L-ERR-01: a reply is lost, and then the server is away. What became of the call is unknown,
// although the second was never sent.
func TestBackend_OutcomeIsUnknownThoughTheSecondCallIsNotSent(t *testing.T) {
	t.Parallel()
	b, direct, proxy := proxied(t)
	for name, call := range map[string]func(lock.Ref) error{
		"release": func(ref lock.Ref) error { _, err := b.Release(bg, ref); return err },
		"extend":  func(ref lock.Ref) error { _, err := b.Extend(bg, ref, ttl); return err },
	} {
		ref := lock.Ref{Key: "lost-" + name, LockID: mustAcquire(t, direct, "lost-"+name).LockID}
		proxy.Clear()
		if _, err := b.IsLocked(bg, "warm"); err != nil {
			t.Fatal(err)
		}
		proxy.Add(faultproxy.TCPRule{Match: carrying(ref.Key), Times: 1, Do: faultproxy.TCPFault{CutAfter: true}, Hook: proxy.Refuse})
		err := call(ref)
		if e, ok := errors.AsType[*lock.Error](err); !ok || !e.OutcomeUnknown || !errors.Is(err, lock.ErrServiceUnavailable) {
			t.Errorf("%s: %v, want an unknown outcome", name, err)
		}
	}
}

// L-CAN-04: a silent server does not keep the caller after its context has ended. What
// the call may have taken is released.
func TestBackend_AnswersThoughTheServerIsSilent(t *testing.T) {
	t.Parallel()
	b, direct, proxy := proxied(t)
	proxy.Add(faultproxy.TCPRule{Match: carrying("silent-key"), Times: 1, Do: faultproxy.TCPFault{HoldReply: true}})
	ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
	defer cancel()
	res, err := b.Acquire(ctx, lock.AcquireRequest{Key: "silent-key", TTL: time.Hour})
	if e, ok := errors.AsType[*lock.Error](err); !ok || !e.OutcomeUnknown || !errors.Is(err, lock.ErrAborted) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%+v, %v", res, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		locked, err := direct.IsLocked(bg, "silent-key")
		if err == nil && !locked {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("locked %t, %v", locked, err)
		}
	}
}

// L-ACQ-07: a lease that was over when its answer came is given back in the background, so
// the caller must not use its id again.
func TestAcquire_OutcomeOfALateAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	b, _, proxy := proxied(t)
	proxy.Add(faultproxy.TCPRule{Match: carrying("late-key"), Times: 1, Do: faultproxy.TCPFault{Delay: 300 * time.Millisecond}})
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: "late-key", TTL: 100 * time.Millisecond})
	if e, ok := errors.AsType[*lock.Error](err); !ok || !e.OutcomeUnknown || !errors.Is(err, lock.ErrNetworkTimeout) {
		t.Errorf("%+v, %v", res, err)
	}
}

// A pool that is used up and a statement timeout are errors that say so, and take nothing.
func TestBackend_NamesWhatIsUsedUp(t *testing.T) {
	t.Parallel()
	direct, pool := fresh(t)
	cfg := pool.Config()
	cfg.MaxConns = 1
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "200"
	small, err := pgxpool.NewWithConfig(bg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Close)
	b := newBackend(t, small, Config{})
	tx, err := pool.Begin(bg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(bg, "SELECT pg_advisory_xact_lock(hashtext('k'))"); err != nil {
		t.Fatal(err)
	}
	if res, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl}); !errors.Is(err, lock.ErrNetworkTimeout) {
		t.Errorf("statement timeout: %+v, %v", res, err)
	}
	if err := tx.Rollback(bg); err != nil {
		t.Fatal(err)
	}
	conn, err := small.Acquire(bg)
	if err != nil {
		t.Fatal(err)
	}
	b.tasks.Patience = 100 * time.Millisecond
	if res, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl}); !errors.Is(err, lock.ErrRateLimited) {
		t.Errorf("pool used up: %+v, %v", res, err)
	}
	conn.Release()
	if res := mustAcquire(t, direct, "k"); res.Fence != "000000000000001" {
		t.Errorf("fence %s after calls that failed", res.Fence)
	}
}

// Sessions that wait for no standby are told of, where there are standbys to wait for.
func TestBackend_ReportsCommitsThatWaitForNoStandby(t *testing.T) {
	needPostgres(t)
	t.Parallel()
	server := storeserver.Postgres(t, "synchronous_standby_names=standby", "synchronous_commit=local")
	pool := newPool(t, server.URL)
	if err := Migrate(bg, pool, Config{}); err != nil {
		t.Fatal(err)
	}
	warnings, err := newBackend(t, pool, Config{}).CheckDurability(bg)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "synchronous_commit is local") {
		t.Errorf("%q, %v", warnings, err)
	}
}

// A crash of the server loses no lock and no fence, also where sessions do not wait for
// their commits, and callers find it again.
func TestBackend_SurvivesACrashOfTheServer(t *testing.T) {
	needPostgres(t)
	t.Parallel()
	server := storeserver.Postgres(t, "wal_writer_delay=10s", "synchronous_commit=off")
	pool := newPool(t, server.URL)
	if err := Migrate(bg, pool, Config{}); err != nil {
		t.Fatal(err)
	}
	b := newBackend(t, pool, Config{})
	mustRelease(t, b, lock.Ref{Key: "k", LockID: mustAcquire(t, b, "k").LockID})
	held := mustAcquire(t, b, "held")
	server.Kill()
	if res, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl}); !errors.Is(err, lock.ErrServiceUnavailable) {
		t.Errorf("without a server: %+v, %v", res, err)
	}
	server.Restart()
	if locked, err := b.IsLocked(bg, "held"); !locked || err != nil {
		t.Errorf("held %t, %v", locked, err)
	}
	h, err := lock.Acquire(bg, b, "k", lock.WithRetryTransient(), lock.WithTimeout(time.Minute), lock.WithMaxRetries(100))
	if err != nil {
		t.Fatal(err)
	}
	if h.Fence() <= "000000000000001" {
		t.Errorf("fence %s after a crash", h.Fence())
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	mustRelease(t, b, lock.Ref{Key: "held", LockID: held.LockID})
}
