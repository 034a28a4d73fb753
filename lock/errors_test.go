package lock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// L-ERR-03
func TestError_MatchesItsSentinel(t *testing.T) {
	sentinels := map[lock.Code]error{
		lock.CodeServiceUnavailable: lock.ErrServiceUnavailable,
		lock.CodeAuthFailed:         lock.ErrAuthFailed,
		lock.CodeInvalidArgument:    lock.ErrInvalidArgument,
		lock.CodeRateLimited:        lock.ErrRateLimited,
		lock.CodeNetworkTimeout:     lock.ErrNetworkTimeout,
		lock.CodeAcquisitionTimeout: lock.ErrAcquisitionTimeout,
		lock.CodeAborted:            lock.ErrAborted,
		lock.CodeInternal:           lock.ErrInternal,
	}
	cause := errors.New("cause")
	for code := range sentinels {
		err := fmt.Errorf("wrapped: %w", &lock.Error{Code: code, Op: "acquire", Err: cause})
		if !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost", code)
		}
		for other, target := range sentinels {
			if errors.Is(err, target) != (code == other) {
				t.Errorf("%s matches %s: %v", code, other, errors.Is(err, target))
			}
		}
	}
}

// L-ID-03: an error names neither key nor id, however it is printed. In a log it is a text,
// because log sinks with a schema reject a field of two types.
func TestError_RevealsNothing(t *testing.T) {
	id := lock.NewLockID()
	e := &lock.Error{Code: lock.CodeInternal, Op: "acquire", Key: "payment:42", LockID: id, OutcomeUnknown: true,
		Err: fmt.Errorf("document locks/payment:42 of %s", id)}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Error("failed", "err", e)
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{e.Error(), fmt.Sprintf("%v %+v %#v %q", e, e, e, e), log.String(), string(encoded)} {
		if strings.Contains(text, "payment:42") || strings.Contains(text, id) {
			t.Errorf("revealed in %s", text)
		}
	}
	if want := `"err":"` + e.Error() + `"`; !strings.Contains(log.String(), want) {
		t.Errorf("logged as %s, want %s", log.String(), want)
	}
	if got, want := e.Error(), "lock: acquire: Internal (outcome unknown)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := lock.Invalid("ttl must be positive; set at least 1ms").At("extend", "k", id).Error(),
		"lock: extend: InvalidArgument: ttl must be positive; set at least 1ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// At keeps what is already named, because the innermost caller knows best, and does not
// change the original.
func TestError_AtKeepsWhatIsNamed(t *testing.T) {
	bare := lock.Invalid("x")
	inner := bare.At("release", "a", "")
	outer := inner.At("close", "b", "id")
	if outer.Op != "release" || outer.Key != "a" || outer.LockID != "id" {
		t.Errorf("%s %q %q", outer.Op, outer.Key, outer.LockID)
	}
	if bare.Op != "" || inner.LockID != "" {
		t.Error("the original has changed")
	}
}

// L-CAN-03
func TestAbortedBy_MatchesContextAndCause(t *testing.T) {
	cause := errors.New("payment:42 is gone")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	err := error(lock.AbortedBy(ctx))
	if !errors.Is(err, lock.ErrAborted) || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Error(err)
	}
	if strings.Contains(err.Error(), "payment:42") {
		t.Errorf("the caller's cause is printed: %v", err)
	}
}

// L-LKP-02: printing and encoding Info reveals nothing.
func TestInfo_RevealsNothing(t *testing.T) {
	b := memlock.New()
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: "payment:42", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	info, err := b.Lookup(bg, lock.Query{Key: "payment:42"})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v", *info, *info, *info), string(encoded)} {
		if strings.Contains(text, "payment:42") || strings.Contains(text, res.LockID) {
			t.Errorf("revealed in %s", text)
		}
	}
}
