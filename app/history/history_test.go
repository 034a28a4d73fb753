package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/history"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// archive is what BigQuery would have: the rows of each table by their ids.
type archive struct {
	mu   sync.Mutex
	rows map[string]map[string][]map[string]any
}

func (a *archive) of(table, id string) []map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[table][id]
}

func (a *archive) ids(table string) (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.rows[table] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// subscribe makes the topics of the history and keeps what is published.
func subscribe(t *testing.T, clients *connect.Clients) *archive {
	t.Helper()
	if err := pubsubio.EnsureHistory(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	a := &archive{rows: map[string]map[string][]map[string]any{}}
	for _, table := range pubsubio.HistoryTables {
		a.rows[table] = map[string][]map[string]any{}
	}
	for _, table := range pubsubio.HistoryTables {
		name := "to-" + table
		if err := pubsubio.EnsureSubscription(t.Context(), clients.PubSub, name, pubsubio.HistoryTopic(table), false); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var receiving sync.WaitGroup
		receiving.Go(func() {
			_ = clients.PubSub.Subscriber(name).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
				var row map[string]any
				if err := json.Unmarshal(msg.Data, &row); err != nil {
					t.Errorf("row of %s: %v", table, err)
				}
				a.mu.Lock()
				defer a.mu.Unlock()
				id := fmt.Sprint(row["id"])
				a.rows[table][id] = append(a.rows[table][id], row)
				msg.Ack()
			})
		})
		t.Cleanup(func() { stop(); receiving.Wait() })
	}
	return a
}

// export runs an exporter. Its delay is shorter than a commit may take on a busy machine: events that
// it must publish are committed while none runs.
func export(t *testing.T, clients *connect.Clients, sharded bool, log *slog.Logger) (stop func()) {
	t.Helper()
	locks, err := clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		history.New(history.Config{
			Store: firestoretx.New(clients.Firestore, firestoretx.Config{Sharded: sharded}), Locks: locks, LockOptions: []lock.Option{lock.WithTTL(10 * time.Second)},
			Publisher: pubsubio.NewPublisher(clients.PubSub), Meter: clients.Meter, Log: log,
			Every: 20 * time.Millisecond, Delay: 50 * time.Millisecond,
		}).Run(ctx)
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}

// begin gives the history a cursor: it has nothing of before.
func begin(t *testing.T, clients *connect.Clients, store *firestoretx.Store) {
	t.Helper()
	defer export(t, clients, false, emutest.Log(t))()
	emutest.Eventually(t, "a cursor", func() error {
		if through, _, err := store.HistoryCursor(t.Context()); err != nil || through.IsZero() {
			return fmt.Errorf("%v, %v", through, err)
		}
		return nil
	})
}

func order(id domain.OrderID, cancel bool) domain.OrderRequest {
	here := domain.Position{Lat: 5.6, Lon: -0.2}
	return domain.OrderRequest{ID: id, Cancel: cancel, OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: here, RequesterID: "WARD"}}
}

// F-HIS-01: every event is published, and an order once it has ended, as it is then.
func TestExporter_PublishesEventsAndWhatHasEnded(t *testing.T) {
	for name, sharded := range map[string]bool{"default": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			if sharded {
				emutest.ServeFirestore(t, firestoreemu.Options{Indexes: deploy.ShardedFirestoreIndexes})
			}
			clients := emutest.Clients(t)
			store := firestoretx.New(clients.Firestore, firestoretx.Config{Sharded: sharded})
			rows := subscribe(t, clients)
			begin(t, clients, store)
			apply := func(r domain.OrderRequest) {
				if err := store.IngestOrder(t.Context(), r, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			apply(order("O-1", false))
			apply(order("O-2", false))
			apply(order("O-2", true))
			export(t, clients, sharded, emutest.Log(t))
			emutest.Eventually(t, "rows", func() error {
				if events, orders := rows.ids(pubsubio.HistoryEvents), rows.ids(pubsubio.HistoryOrders); len(events) < 3 || len(orders) < 1 {
					return fmt.Errorf("events %v, orders %v", events, orders)
				}
				return nil
			})
			if ids := rows.ids(pubsubio.HistoryOrders); !slices.Equal(ids, []string{"O-2"}) {
				t.Errorf("orders %v have ended, want O-2 alone", ids)
			}
			if ended := rows.of(pubsubio.HistoryOrders, "O-2")[0]; ended["status"] != "CANCELLED" || ended["requester_id"] != "WARD" || ended["revision"] != 2.0 {
				t.Errorf("row of O-2: %v", ended)
			}
		})
	}
}

// F-HIS-01: what cannot be published, because Pub/Sub fails or the process ends, is published later. A
// cursor that was stored too early would lose it.
func TestExporter_LosesNothingOverFailuresAndCrashes(t *testing.T) {
	const events, crashes = 300, 6
	clients := emutest.Clients(t)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	begin(t, clients, store)
	var rows *archive
	var want []string
	commit := func() {
		doc := clients.Firestore.Collection(firestoretx.Events).NewDoc()
		if _, err := doc.Create(t.Context(), map[string]any{
			"entity": "drone", "id": "D", "revision": int64(len(want)), "from": "IDLE", "to": "IDLE", "cause": "TELEMETRY", "time": time.Now(), "state": map[string]any{"grounded": false},
		}); err != nil {
			t.Fatal(err)
		}
		want = append(want, doc.ID)
	}
	failures := &failures{Handler: slog.DiscardHandler}
	for crash := range crashes {
		for range events / crashes {
			commit()
		}
		if crash == 0 { // the topics do not exist yet
			stop := export(t, clients, false, slog.New(failures))
			emutest.Eventually(t, "a failure", func() error {
				if failures.seen.Load() == 0 {
					return errors.New("none yet")
				}
				return nil
			})
			rows = subscribe(t, clients)
			stop()
			continue
		}
		before := len(rows.ids(pubsubio.HistoryEvents))
		stop := export(t, clients, false, emutest.Log(t))
		emutest.Eventually(t, "some of the events", func() error {
			if n := len(rows.ids(pubsubio.HistoryEvents)); n == before && n < len(want) {
				return fmt.Errorf("%d of %d", n, len(want))
			}
			return nil
		})
		stop()
	}
	export(t, clients, false, emutest.Log(t))
	slices.Sort(want)
	emutest.Eventually(t, "every event", func() error {
		if got := rows.ids(pubsubio.HistoryEvents); !slices.Equal(got, want) {
			return fmt.Errorf("%d of %d events", len(got), len(want))
		}
		return nil
	})
}

// failures counts what an exporter logs.
type failures struct {
	slog.Handler
	seen atomic.Int32
}

func (f *failures) Enabled(context.Context, slog.Level) bool { return true }

func (f *failures) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "history interrupted") {
		f.seen.Add(1)
	}
	return nil
}
