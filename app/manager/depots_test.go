package manager

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// log is a buffer that a test reads while the manager writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// F-OPT-06: a manager is told to watch depots says which one has no cycles while an
// order waits, in its readiness, its log and its metrics, and says when that is over.
func TestManager_NamesDepotsWithoutCycles(t *testing.T) {
	clients := emutest.Clients(t)
	var logged log
	const interval = 100 * time.Millisecond
	m, err := New(clients, simclock.Real(), Config{CycleInterval: interval}, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := m.Store.Setup(ctx, []domain.Depot{{ID: "D1"}, {ID: "D2"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	req := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 5}}}
	if err := m.Store.IngestOrder(ctx, req, time.Now()); err != nil {
		t.Fatal(err)
	}
	// D2 has cycles, as far as its records tell.
	ahead := domain.Cycle{ID: "C", DepotID: "D2", Outcome: domain.CycleEmpty, StartedAt: time.Now().Add(time.Hour)}
	if err := m.Store.RecordCycle(ctx, ahead); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ended := make(chan struct{})
	go func() { defer close(ended); m.watchDepots(ctx) }()
	watch := m.DepotsWatch()
	emutest.Eventually(t, "an obstacle", func() error {
		if watch() == nil {
			return errors.New("none yet")
		}
		return nil
	})
	if since := time.Since(began); since < 3*interval {
		t.Errorf("not ready %s after the start, within 3 intervals", since)
	}
	for _, want := range []string{"no cycle for 300ms while orders wait, at depot D1;", "locks list"} {
		if got := watch().Error(); !strings.Contains(got, want) {
			t.Errorf("says %q, want %q", got, want)
		}
	}
	if n := logged.count("depot has no cycles while orders wait"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if _, err := clients.Firestore.Doc("orders/O1").Update(ctx, []firestore.Update{{Path: "held", Value: true}}); err != nil {
		t.Fatal(err)
	}
	emutest.Eventually(t, "no obstacle", watch)
	if n := logged.count("depot has cycles again, or no order waits"); n != 1 {
		t.Errorf("logged %d times that it is over", n)
	}
	stop()
	<-ended
}

// F-OPT-06: a manager that is not told to watch depots has no opinion about them.
func TestManager_WatchesNoDepotsUnlessTold(t *testing.T) {
	if watch := (&Manager{}).DepotsWatch(); watch != nil {
		t.Errorf("it watches: %v", watch())
	}
	many := make([]domain.DepotID, 12)
	m := &Manager{cfg: Config{CycleInterval: time.Second}}
	m.idle.Store(&many)
	if got := m.DepotsWatch()().Error(); !strings.Contains(got, "and 2 more") {
		t.Errorf("of 12 depots it says %q", got)
	}
}
