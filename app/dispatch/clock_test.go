package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// lines is a log that a test reads while the runner writes.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// F-OPT-06, L-END-02: a process whose clock is an hour off takes no lock and runs no
// cycle. It says so in its log and its metrics, and whoever asks learns why; nothing
// is stored.
func TestRunner_TakesNoLockWithAWrongClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": -time.Hour, "behind": time.Hour} {
		t.Run(name, func(t *testing.T) {
			server, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 1, Ahead: ahead})
			if err != nil {
				t.Fatal(err)
			}
			emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
			clients := emutest.Clients(t)
			store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true})
			if err := store.Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
				t.Fatal(err)
			}
			var logged lines
			log := slog.New(slog.NewTextHandler(&logged, nil))
			locks, err := clients.Locks(simclock.Real(), log)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := locks.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			publish := func(context.Context, []domain.Decision) []error { t.Error("published"); return nil }
			cfg := dispatch.Config{Interval: 10 * time.Millisecond, Iterations: steps, OnFailure: func(err error) { t.Errorf("failed: %v", err) }}
			runner := dispatch.NewRunner(store, locks, publish, uuid.NewString, simclock.Real(), cfg, log, clients.Meter)
			_, err = runner.Once(t.Context(), depot.ID, nil)
			skewed, ok := errors.AsType[*lock.ClockSkewError](err)
			if !ok || (skewed.Offset-ahead).Abs() > time.Minute {
				t.Fatalf("one cycle: %v", err)
			}

			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- runner.Run(ctx) }()
			emutest.Eventually(t, "skipped cycles", func() error {
				if clients.Meter.Cycles.Count(meter.CycleClockWrong) < 4 {
					return errors.New("too few")
				}
				return nil
			})
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			c := &clients.Meter.Cycles
			if c.Count(meter.CycleRun)+c.Count(meter.CycleSkipped)+c.Count(meter.CycleFailed) > 0 || !c.LastEnded().IsZero() {
				t.Errorf("%d cycles run, %d skipped, %d failed", c.Count(meter.CycleRun), c.Count(meter.CycleSkipped), c.Count(meter.CycleFailed))
			}
			for _, want := range []string{"1h0m0s " + name, "synchronise it (NTP)"} {
				if why := c.Obstacle(); !strings.Contains(why, want) {
					t.Errorf("the reason is %q, want %q", why, want)
				}
			}
			if text := logged.String(); !strings.Contains(text, "cycle skipped: this process's clock is wrong") {
				t.Errorf("the log says %q", text)
			}
			if docs, err := clients.Firestore.Collection("locks").Documents(t.Context()).GetAll(); len(docs) > 0 || err != nil {
				t.Errorf("%d locks were taken (%v)", len(docs), err)
			}
		})
	}
}
