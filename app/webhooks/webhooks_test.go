package webhooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

var here = domain.Position{Lat: 5.602318, Lon: -0.2}

func request(id domain.OrderID, requester string) domain.OrderRequest {
	return domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &here, Delivery: here, RequesterID: requester}}
}

// fleet is a Firestore with webhooks.
type fleet struct {
	t       *testing.T
	hosts   connect.Config
	clients *connect.Clients
	store   *firestoretx.Store
}

func newFleet(t *testing.T) *fleet {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	return &fleet{t, hosts, clients, firestoretx.New(clients.Firestore, firestoretx.Config{})}
}

// change is who applies webhooks here.
var change = firestoretx.Change{By: "ann", Why: "test"}

// apply creates or changes a webhook and returns its secret, if that is new.
func (f *fleet) apply(reg domain.WebhookRegistration) string {
	f.t.Helper()
	secret := webhooks.NewSecret()
	if _, used, err := f.store.ApplyWebhook(f.t.Context(), reg, secret, change); err != nil {
		f.t.Fatal(err)
	} else if !used {
		secret = reg.Secret
	}
	return secret
}

func hook(id domain.WebhookID, url string, kinds ...domain.WebhookKind) domain.WebhookRegistration {
	return domain.WebhookRegistration{Webhook: domain.Webhook{ID: id, URL: url, Kinds: kinds}}
}

// config is that of a sender that does not wait long.
func (f *fleet) config(clients *connect.Clients) webhooks.Config {
	locks, err := clients.Locks(simclock.Real(), emutest.Log(f.t))
	if err != nil {
		f.t.Fatal(err)
	}
	return webhooks.Config{
		Store: firestoretx.New(clients.Firestore, firestoretx.Config{}), Locks: locks, LockOptions: []lock.Option{lock.WithTTL(time.Minute)}, Meter: clients.Meter,
		Client: webhooks.NewClient(nil), Log: emutest.Log(f.t), LookEvery: 50 * time.Millisecond, FirstPause: 20 * time.Millisecond, LongestPause: 200 * time.Millisecond,
	}
}

// send runs a sender until the function that it returns is called.
func (f *fleet) send(cfg webhooks.Config) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() { webhooks.New(cfg).Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	f.t.Cleanup(stop)
	return stop
}

func (f *fleet) do(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// taken is one message that a receiver has got.
type taken struct {
	webhooks.Message
	id       string
	header   http.Header
	body     string
	at       time.Time
	answered int
}

// receiver is a web server that keeps what it gets.
type receiver struct {
	*httptest.Server
	answer func(http.ResponseWriter, taken) int // the status; nil for 204
	now    atomic.Int32                         // requests in work
	most   atomic.Int32                         // at once
	mu     sync.Mutex
	all    []taken
}

func receive(t *testing.T, answer func(http.ResponseWriter, taken) int) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := r.now.Add(1)
	defer r.now.Add(-1)
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); most = r.most.Load() {
	}
	body, _ := io.ReadAll(req.Body)
	m := taken{id: req.Header.Get("webhook-id"), header: req.Header, body: string(body), at: time.Now(), answered: http.StatusNoContent}
	_ = json.Unmarshal(body, &m.Message)
	if r.answer != nil {
		m.answered = r.answer(w, m)
	}
	r.mu.Lock()
	r.all = append(r.all, m)
	r.mu.Unlock()
	w.WriteHeader(m.answered)
}

// got are the messages that were answered with success, in the order of their arrival.
func (r *receiver) got() (all []taken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.all {
		if m.answered < 300 {
			all = append(all, m)
		}
	}
	return all
}

// kinds are those of the messages about an order.
func kinds(all []taken, order domain.OrderID) (list []domain.WebhookKind) {
	for _, m := range all {
		if m.Data.OrderID == string(order) {
			list = append(list, m.Type)
		}
	}
	return list
}

func (f *fleet) await(r *receiver, n int) []taken {
	f.t.Helper()
	emutest.Eventually(f.t, "messages", func() error {
		if got := len(r.got()); got < n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	return r.got()
}

// F-INT-07: a webhook is told what becomes of the orders it is for, in order, and each message has
// a valid signature. Events from before the webhook are not sent.
func TestSender_TellsWhatBecomesOfOrders(t *testing.T) {
	f, all, some := newFleet(t), receive(t, nil), receive(t, nil)
	by := firestoretx.By(t.Context(), "ann")
	f.do(f.store.IngestOrder(t.Context(), request("EARLY", "H1"), time.Now()))
	secret := f.apply(hook("ALL", all.URL))
	only := hook("SOME", some.URL, domain.WebhookCancelled, domain.WebhookRefused)
	only.RequesterID = "H2"
	f.apply(only)
	f.send(f.config(f.clients))
	for _, requester := range []string{"H1", "H2"} {
		id := domain.OrderID("O-" + requester)
		f.do(f.store.IngestOrder(t.Context(), request(id, requester), time.Now()))
		f.do(f.store.HoldOrder(by, id, "the patient of bed 4 has died"))
		_ = f.store.IngestOrder(t.Context(), request(id, "H2"), time.Now()) // refused if it is H1's
		f.do(f.store.CancelOrder(by, id, "the patient of bed 4 has died"))
	}
	f.do(f.store.RecordRefusal(t.Context(), domain.Refusal{ // an order that became a dead letter
		ID: "orders-7", Topic: "orders", MessageID: "7", OrderID: "LOST", RequesterID: "H2", Reason: "INVALID", RefusedAt: time.Now(), Error: "the patient's weight is negative",
	}))
	f.do(f.store.RecordRefusal(t.Context(), domain.Refusal{ID: "orders-8", Topic: "orders", MessageID: "8", Reason: "UNDECODABLE", RefusedAt: time.Now()}))
	f.await(some, 3)
	got := f.await(all, 8)
	for order, want := range map[domain.OrderID]string{
		"O-H1": "[order.accepted order.waiting order.refused order.cancelled]", "O-H2": "[order.accepted order.waiting order.cancelled]", "EARLY": "[]", "LOST": "[order.refused]", "": "[]",
	} {
		if is := fmt.Sprint(kinds(got, order)); is != want {
			t.Errorf("%s: %s, want %s", order, is, want)
		}
	}
	for _, m := range got {
		if err := verify(secret, m.header, m.body); err != nil {
			t.Errorf("%s: %v", m.body, err)
		}
		for _, word := range []string{"BLOOD", "patient", "5.602318", "weight"} { // F-INT-07: nothing of a patient
			if contains(m.body, word) {
				t.Errorf("the message has %q: %s", word, m.body)
			}
		}
	}
	// H2 learns that its change of another's order was refused, and what became of its own.
	if is := fmt.Sprint(kinds(some.got(), "O-H1"), kinds(some.got(), "O-H2")); is != "[order.refused] [order.cancelled]" {
		t.Errorf("the webhook of H2 got %s", is)
	}
	for _, m := range some.got() {
		if m.Type == domain.WebhookRefused && m.Data.OrderID == "O-H1" && (m.Data.Status != "" || m.Data.RequesterID != "H2" || m.Data.Reason != "REQUESTER_MISMATCH") {
			t.Errorf("refused: %s", m.body)
		}
	}
	before := len(all.got())
	f.send(f.config(emutest.Connect(t, f.hosts)))() // another process finds nothing to do
	if n := len(all.got()); n != before {
		t.Errorf("%d messages were sent again", n-before)
	}
}

// F-INT-07: a target that hangs has at most five requests and delays no other; p99 from the commit
// to the request is logged.
func TestSender_HangingTargetDelaysNoOther(t *testing.T) {
	f := newFleet(t)
	release := make(chan struct{})
	began := time.Now()
	hanging := receive(t, func(http.ResponseWriter, taken) int { <-release; return http.StatusNoContent })
	good := receive(t, nil)
	f.apply(hook("HANGING", hanging.URL))
	f.apply(hook("GOOD", good.URL))
	stop := f.send(f.config(f.clients))
	defer stop()
	defer close(release)
	const orders = 100
	for i := range orders {
		f.do(f.store.IngestOrder(t.Context(), request(domain.OrderID(fmt.Sprint("O", i)), "H1"), time.Now()))
	}
	var waits []time.Duration
	for _, m := range f.await(good, orders) {
		waits = append(waits, m.at.Sub(m.Timestamp))
	}
	slices.Sort(waits)
	t.Logf("from the event to the request: median %s, p99 %s, most %s", waits[orders/2], waits[orders*99/100-1], waits[orders-1])
	// The sender gives up a request after 15 s, which the target does not notice.
	if n := hanging.most.Load(); n > 5*(1+int32(time.Since(began)/(15*time.Second))) || good.most.Load() > 5 {
		t.Errorf("%d and %d requests at once, want at most 5", n, good.most.Load())
	}
	if hanging.now.Load() == 0 {
		t.Error("the target that hangs got nothing")
	}
}

// F-INT-07: after a failure a message is sent again, and later ones of its order wait for it, but
// not those of other orders. After a day it is a dead letter, which can be replayed.
func TestSender_GivesUpAfterADayAndReplays(t *testing.T) {
	f := newFleet(t)
	var broken atomic.Bool
	broken.Store(true)
	target := receive(t, func(_ http.ResponseWriter, m taken) int {
		if broken.Load() && m.Data.OrderID == "BAD" && m.Type == domain.WebhookAccepted {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	f.apply(hook("W", target.URL))
	cfg := f.config(f.clients)
	var passed atomic.Int64 // of the machine's time
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	f.send(cfg)
	by := firestoretx.By(t.Context(), "ann")
	for _, id := range []domain.OrderID{"BAD", "GOOD"} {
		f.do(f.store.IngestOrder(t.Context(), request(id, "H1"), time.Now()))
		f.do(f.store.CancelOrder(by, id, "test"))
	}
	f.await(target, 2)
	emutest.Eventually(t, "three attempts", func() error {
		if n := f.clients.Meter.WebhookAttempts("failed").Value(); n < 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if got := kinds(target.got(), "BAD"); len(got) != 0 {
		t.Errorf("%v overtook the message before", got)
	}
	passed.Store(int64(24 * time.Hour))
	f.await(target, 3)
	dead, err := f.store.ListDeliveries(t.Context(), firestoretx.DeliveryFilter{Webhook: "W", Status: domain.DeliveryDeadLetter}, firestoretx.Page{})
	f.do(err)
	if len(dead.Items) != 1 || dead.Items[0].OrderID != "BAD" || dead.Items[0].LastError != "127.0.0.1 answered 500" {
		t.Fatalf("dead letters: %+v", dead.Items)
	}
	broken.Store(false)
	done, err := f.store.ReplayDeliveries(t.Context(), "W", change)
	f.do(err)
	if fmt.Sprint(done.Fields) != "[dead letters replayed: 1]" {
		t.Errorf("replayed: %v", done.Fields)
	}
	f.await(target, 4)
	if got := fmt.Sprint(kinds(target.got(), "BAD")); got != "[order.cancelled order.accepted]" {
		t.Errorf("got %s", got)
	}
}

// F-INT-07: a webhook is changed, rotated and deleted while messages wait. Both secrets sign for a
// while.
func TestSender_FollowsChangesOfWebhooks(t *testing.T) {
	f := newFleet(t)
	down := receive(t, func(http.ResponseWriter, taken) int { return http.StatusServiceUnavailable })
	up, other := receive(t, nil), receive(t, nil)
	old := f.apply(hook("W", down.URL))
	f.apply(hook("GONE", down.URL))
	f.send(f.config(f.clients))
	f.do(f.store.IngestOrder(t.Context(), request("O1", "H1"), time.Now()))
	emutest.Eventually(t, "a failure", func() error {
		if n := f.clients.Meter.WebhookAttempts("failed").Value(); n < 2 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	f.apply(hook("W", up.URL))
	now := webhooks.NewSecret()
	_, err := f.store.RotateWebhook(t.Context(), "W", now, change)
	f.do(err)
	f.await(up, 1)
	f.do(f.store.IngestOrder(t.Context(), request("O2", "H1"), time.Now()))
	emutest.Eventually(t, "both signatures", func() error {
		got := up.got()
		m := got[len(got)-1]
		if err := verify(now, m.header, m.body); err != nil {
			f.do(f.store.IngestOrder(t.Context(), request(domain.OrderID(fmt.Sprint("O", len(got)+2)), "H1"), time.Now()))
			return err
		}
		return verify(old, m.header, m.body)
	})
	// One that is deleted and created again gets nothing from before.
	_, err = f.store.DeleteWebhook(t.Context(), "GONE", change)
	f.do(err)
	f.apply(hook("GONE", other.URL))
	f.do(f.store.IngestOrder(t.Context(), request("LAST", "H1"), time.Now()))
	if got := f.await(other, 1); got[0].Data.OrderID != "LAST" {
		t.Errorf("got %s", got[0].body)
	}
	if _, err := f.store.WebhookSecrets(t.Context(), "GONE"); err != nil {
		t.Error(err)
	}
}

// F-INT-07: a webhook that is applied while a process sends gets the events since it was applied,
// also those from before the process knew of it.
func TestSender_ReadsEventsAgainForANewWebhook(t *testing.T) {
	f, first, second := newFleet(t), receive(t, nil), receive(t, nil)
	f.apply(hook("FIRST", first.URL))
	cfg := f.config(f.clients)
	cfg.LookEvery = 300 * time.Millisecond
	f.send(cfg)
	f.do(f.store.IngestOrder(t.Context(), request("O1", "H1"), time.Now()))
	f.await(first, 1)
	f.apply(hook("SECOND", second.URL))
	f.do(f.store.IngestOrder(t.Context(), request("O2", "H1"), time.Now()))
	f.await(first, 2)
	if got := f.await(second, 1); got[0].Data.OrderID != "O2" {
		t.Errorf("got %s", got[0].body)
	}
}

// F-INT-07: without a webhook there is no lock and no listener, and one read at each look.
func TestSender_CostsNothingWithoutWebhooks(t *testing.T) {
	f := newFleet(t)
	f.send(f.config(f.clients))
	emutest.Eventually(t, "three looks", func() error {
		if n := f.clients.Meter.FirestoreByOperation()["webhooks"].RPCs; n < 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	docs, err := f.clients.Firestore.Collection("fence_counters").Documents(t.Context()).GetAll()
	f.do(err)
	if len(docs) != 0 {
		t.Error("a lock was taken")
	}
	if c := f.clients.Meter.FirestoreByOperation()["webhooks"]; c.Writes != 0 || c.Reads != 0 {
		t.Errorf("%+v", c)
	}
}

// event stores an event of an order as a State Manager does, and returns its document's id.
func event(tx *firestore.Transaction, events *firestore.CollectionRef, order string, revision int, from, to domain.OrderStatus) (id string, err error) {
	ref := events.NewDoc()
	err = tx.Create(ref, map[string]any{
		"entity": "order", "id": order, "orderId": order, "revision": revision, "from": string(from), "to": string(to), "cause": "TELEMETRY", "time": time.Now(),
		"state": map[string]any{"priority": "HIGH"},
	})
	return ref.ID, err
}
