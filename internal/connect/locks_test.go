package connect_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// L-EVT-01, L-TEL-02: what the fleet's locks do is counted with its reason; the log
// warns of what nobody else reports, and shows neither keys nor lock ids.
func TestClients_LocksAreObserved(t *testing.T) {
	clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 20})
	if err != nil {
		t.Fatal(err)
	}
	clients := emutest.Clients(t)
	var text bytes.Buffer // read after Close, which ends the observer
	locks, err := clients.Locks(clock, slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	acquire := func(key string) lock.AcquireResult {
		t.Helper()
		res, err := locks.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	short := lock.Ref{Key: "cycle:short", LockID: acquire("cycle:short").LockID}
	acquire("cycle:short") // contention
	var ids []string
	ids = append(ids, short.LockID)

	emutest.Eventually(t, "the end of the lease", func() error {
		locked, err := locks.IsLocked(ctx, short.Key)
		if locked {
			err = errors.New("still locked")
		}
		return err
	})
	if res, err := locks.Release(ctx, short); err != nil || res.Reason != lock.ReasonExpired {
		t.Fatalf("%+v, %v", res, err)
	}

	broken := lock.Ref{Key: "cycle:broken", LockID: acquire("cycle:broken").LockID}
	ids = append(ids, broken.LockID)
	if info, err := lock.Break(ctx, locks, broken.Key, nil); err != nil || info == nil {
		t.Fatalf("%+v, %v", info, err)
	}
	if res, err := locks.Extend(ctx, broken, time.Minute); err != nil || res.Reason != lock.ReasonNotFound {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := locks.Acquire(ctx, lock.AcquireRequest{Key: "", TTL: time.Second}); !errors.Is(err, lock.ErrInvalidArgument) {
		t.Fatal(err)
	}
	if err := locks.Close(ctx); err != nil {
		t.Fatal(err)
	}

	for event, want := range map[meter.LockEvent]int64{
		{Type: "acquire", Result: "ok"}:                                 2,
		{Type: "acquire", Result: "fail", Reason: "locked"}:             1,
		{Type: "acquire", Result: "fail", Reason: "InvalidArgument"}:    1,
		{Type: "release", Result: "ok"}:                                 1, // by the break
		{Type: "release", Result: "fail", Reason: "expired"}:            1,
		{Type: "extend", Result: "fail", Reason: "not-found"}:           1,
		{Type: "extend", Result: "ok"}:                                  0,
		{Type: "lookup", Result: "ok"}:                                  1,
		{Type: "isLocked", Result: "fail"}:                              1,
		{Type: "release", Result: "fail", Reason: "ServiceUnavailable"}: 0,
	} {
		if got := clients.Meter.LockEvents(event).Value(); got != want {
			t.Errorf("%+v was counted %d times, want %d", event, got, want)
		}
	}
	if n := clients.Meter.LockEventsDropped.Value(); n != 0 {
		t.Errorf("%d events dropped", n)
	}

	var warnings []string
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "level=WARN") {
			warnings = append(warnings, line)
		}
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "type=release result=fail reason=expired key_hash="+lock.HashKey(short.Key)) ||
		!strings.Contains(warnings[1], "type=extend result=fail reason=not-found key_hash="+lock.HashKey(broken.Key)) {
		t.Errorf("warnings %q", warnings)
	}
	for _, raw := range append(ids, "cycle:") {
		if strings.Contains(text.String(), raw) {
			t.Errorf("the log shows %q", raw)
		}
	}
}
