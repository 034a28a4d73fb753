package memlock

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

var bg = context.Background()

// L-FENCE-03
func TestBackend_WarnsAndStopsAtTheFenceLimits(t *testing.T) {
	var log strings.Builder
	b := New(WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithHasher(func(string) string { return "hashed" }))
	acquire := func(last int64) (lock.AcquireResult, error) {
		log.Reset()
		b.leases, b.counters["k"] = map[string]*lease{}, last
		return b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
	}
	if _, err := acquire(lock.FenceWarn - 1); err != nil || log.Len() != 0 {
		t.Error(err, log.String())
	}
	if _, err := acquire(lock.FenceWarn); err != nil || strings.Count(log.String(), "WARN") != 1 || !strings.Contains(log.String(), "hashed") {
		t.Error(err, log.String())
	}
	if res, err := acquire(lock.FenceMax - 1); err != nil || res.Fence != "900000000000000" {
		t.Error(res, err)
	}
	if _, err := acquire(lock.FenceMax); !errors.Is(err, lock.ErrInternal) || b.counters["k"] != lock.FenceMax || len(b.leases) != 0 {
		t.Error(err, b.counters["k"])
	}
}

// L-CLN-01, L-FENCE-04
func TestBackend_CleansUpOnlyLongExpiredLocks(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := New(WithClock(clock), WithCleanupInIsLocked())
	if _, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(3 * time.Second)
	if _, err := b.IsLocked(bg, "k"); err != nil || len(b.leases) != 1 {
		t.Error("dropped within the guard", err)
	}
	clock.Advance(time.Millisecond)
	if locked, err := b.IsLocked(bg, "k"); locked || err != nil || len(b.leases) != 0 || b.counters["k"] != 1 {
		t.Error(locked, err, len(b.leases), b.counters["k"])
	}
}

func TestBackend_ListsLiveLocksByKey(t *testing.T) {
	clock := locktest.NewClock(time.Now())
	b := New(WithClock(clock))
	for key, ttl := range map[string]time.Duration{"b": time.Minute, "a": time.Minute, "short": time.Millisecond} {
		if _, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(2 * time.Second)
	list, err := b.List(bg)
	if err != nil || len(list) != 2 || list[0].Key != "a" || list[1].Key != "b" {
		t.Error(list, err)
	}
}

// Only L-KEY-01 restricts keys in memory.
func TestBackend_TakesAnyValidKey(t *testing.T) {
	for _, key := range []string{"a/b", ".", "__x__", "/"} {
		if res, err := New().Acquire(bg, lock.AcquireRequest{Key: key, TTL: time.Second}); err != nil || !res.OK {
			t.Error(key, res, err)
		}
	}
}

// 64 acquisitions wait: nobody waits longer than four times the median.
func TestBackend_WaitsFairly(t *testing.T) {
	history.CheckFairness(t, "k", func() { time.Sleep(100 * time.Millisecond) }, New())
}
