package history

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// Register is a value in a store, with the highest fence of its writers. If fenced, Write
// refuses a lower one.
type Register struct {
	Write func(fence lock.Fence, value string, fenced bool) (stored bool, err error)
	Read  func() (string, error)
}

// CheckRegister shows what a fence is for: a holder that was paused beyond its lease writes
// late. Without a fence it overwrites the next holder's value; with one the write is refused.
func CheckRegister(t *testing.T, b lock.Backend, r Register) {
	t.Helper()
	ctx := context.Background()
	write := func(fence lock.Fence, value string, fenced bool) bool {
		t.Helper()
		stored, err := r.Write(fence, value, fenced)
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	var paused lock.AcquireResult
	for ttl := 50 * time.Millisecond; !paused.OK; ttl *= 2 { // longer than a busy machine takes
		var err error
		paused, err = b.Acquire(ctx, lock.AcquireRequest{Key: "register", TTL: ttl})
		if err != nil && !errors.Is(err, lock.ErrNetworkTimeout) || ttl > time.Minute {
			t.Fatal(paused, err)
		}
	}
	next, err := lock.Acquire(ctx, b, "register", lock.WithTTL(time.Minute), lock.WithTimeout(time.Minute), lock.WithMaxRetries(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for fenced, want := range map[bool]string{false: "late", true: "of the holder"} {
		if !write(next.Fence(), "of the holder", fenced) {
			t.Error("the holder's write is refused")
		}
		if stored := write(paused.Fence, "late", fenced); stored == fenced {
			t.Errorf("fenced %t: a late write is stored: %t", fenced, stored)
		}
		if got, err := r.Read(); got != want || err != nil {
			t.Errorf("fenced %t: the register holds %q, %v, want %q", fenced, got, err, want)
		}
		// The holder's next write has the same fence.
		if !write(next.Fence(), "more", fenced) {
			t.Error("the holder's second write is refused")
		}
	}
}
