package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// oneWay carries connections to a server. While it is shut, the server hears everything and its
// answers are lost.
type oneWay struct {
	server string
	shut   atomic.Bool
}

// listen returns the address of the way to the server.
func (w *oneWay) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.server)
			if err != nil {
				near.Close()
				continue
			}
			go copyWhile(far, near, func() bool { return true })
			go copyWhile(near, far, func() bool { return !w.shut.Load() })
		}
	}()
	return l.Addr().String()
}

// copyWhile copies until one side ends; what comes while open says no is lost.
func copyWhile(to, from net.Conn, open func() bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && open() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// startAPI starts a State Manager with an API and returns its address.
func startAPI(t *testing.T, hosts connect.Config) (p *clitest.Process, url string) {
	t.Helper()
	p = statemanager.Start(t, hosts, "serve", "--http-addr=127.0.0.1:0", "--api-keys=require", "--rate-commands=0")
	url, _, _ = strings.Cut(p.Find(p.Stderr, `"url":"`), `"`)
	return p, url
}

// placeOrder orders once; the status is 0 if there is no answer.
func placeOrder(t *testing.T, url, key string, id domain.OrderID) (status int) {
	t.Helper()
	body := fmt.Sprintf(`{"id": %q, "productType": "BLOOD", "deliveryLocation": {"lat": 48.86, "lon": 2.36}}`, id)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/orders", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// seeOrders calls seen for each order message, with a subscription of its own.
func seeOrders(t *testing.T, client *pubsub.Client, seen func(domain.OrderID)) {
	t.Helper()
	name := fmt.Sprintf("projects/%s/subscriptions/orders-seen", client.Project())
	topic := fmt.Sprintf("projects/%s/topics/%s", client.Project(), pubsubio.TopicOrders)
	if _, err := client.SubscriptionAdminClient.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: name, Topic: topic}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- client.Subscriber("orders-seen").Receive(ctx, func(_ context.Context, m *pubsub.Message) {
			m.Ack()
			if req, err := wire.DecodeOrder(m.Data, m.Attributes); err == nil {
				seen(req.ID)
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// F-INT-01: State Managers are killed after Pub/Sub has an order and before they know it. The caller
// sends each order again, and there is one, made once.
func TestServe_MakesOneOrderThoughKilledBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	store := firestoretx.New(clients.Firestore, firestoretx.Config{})
	at := domain.Position{Lat: 48.85, Lon: 2.35}
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-1", Position: at}}, []domain.Warehouse{{ID: "W1", Position: at, ProductTypes: []string{"BLOOD"}}}, nil); err != nil {
		t.Fatal(err)
	}
	out, _ := statemanager.Run(t, hosts, 0, "keys", "create", "--role=requester", "--requester=H1", "--reason=test", "--by=ann")
	key := strings.TrimSpace(out)
	published := make(chan domain.OrderID, 1000)
	seeOrders(t, clients.PubSub, func(id domain.OrderID) { published <- id })

	way := &oneWay{server: hosts.PubSubHost}
	through := hosts
	through.PubSubHost = way.listen(t)
	ids := make([]domain.OrderID, longtest.Size(t, "kills", 2, 12))
	for n := range ids {
		ids[n] = domain.OrderID(fmt.Sprintf("O%d", n))
		way.shut.Store(false)
		p, url := startAPI(t, through)
		way.shut.Store(true)
		answered := make(chan int, 1)
		go func() { answered <- placeOrder(t, url, key, ids[n]) }()
		if id := <-published; id != ids[n] {
			t.Errorf("order %s was published, want %s", id, ids[n])
		}
		if err := p.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if status := <-answered; status != 0 {
			t.Errorf("order %s was answered %d", ids[n], status)
		}
		_ = p.Cmd.Wait() // it was killed
	}
	p, url := startAPI(t, hosts)
	for _, id := range ids {
		for range 2 {
			if status := placeOrder(t, url, key, id); status != http.StatusAccepted {
				t.Errorf("order %s again: status %d", id, status)
			}
		}
		emutest.Eventually(t, "order "+string(id), func() error { _, err := store.Order(t.Context(), id); return err })
	}
	p.Interrupt()
	for _, id := range ids {
		o, err := store.Order(t.Context(), id)
		events, unread := store.EventsOf(t.Context(), "orderId", string(id))
		if err := errors.Join(err, unread); err != nil || o.Status != domain.OrderPending || o.Revision != 1 || len(events.Items) != 1 {
			t.Errorf("order %s is %s at revision %d with %d events: %v", id, o.Status, o.Revision, len(events.Items), err)
		}
	}
}
