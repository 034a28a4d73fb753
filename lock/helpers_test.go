package lock_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	code := m.Run()
	if err := leaktest.Find(); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Exit(code)
}

var bg = context.Background()

func digits(n int64) string { return strconv.FormatInt(n, 10) }

func hexOf(id string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	return hex.EncodeToString(raw), err
}

// spy is a backend that counts calls and can be told to answer otherwise.
type spy struct {
	lock.Backend
	mu       sync.Mutex
	acquires []lock.AcquireRequest
	releases int
	extends  int

	onAcquire func(ctx context.Context, n int) (lock.AcquireResult, error) // nil: pass on
	onRelease func(ctx context.Context) (lock.ReleaseResult, error)
	onExtend  func(ctx context.Context, n int) (lock.ExtendResult, error)
}

func (s *spy) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	s.mu.Lock()
	s.acquires = append(s.acquires, req)
	n := len(s.acquires)
	s.mu.Unlock()
	if s.onAcquire != nil {
		return s.onAcquire(ctx, n)
	}
	return s.Backend.Acquire(ctx, req)
}

func (s *spy) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	s.mu.Lock()
	s.releases++
	s.mu.Unlock()
	if s.onRelease != nil {
		return s.onRelease(ctx)
	}
	return s.Backend.Release(ctx, ref)
}

func (s *spy) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	s.mu.Lock()
	s.extends++
	n := s.extends
	s.mu.Unlock()
	if s.onExtend != nil {
		return s.onExtend(ctx, n)
	}
	return s.Backend.Extend(ctx, ref, ttl)
}

func (s *spy) counts() (acquires, releases, extends int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acquires), s.releases, s.extends
}
