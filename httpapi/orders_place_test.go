package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// managed runs a State Manager beside an API.
func (s *served) managed(cfg manager.Config) {
	s.t.Helper()
	if err := pubsubio.Ensure(s.t.Context(), s.clients.PubSub); err != nil {
		s.t.Fatal(err)
	}
	m, err := manager.New(emutest.Connect(s.t, s.clients.Config), simclock.Real(), cfg, emutest.Log(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

// posted is the answer to a request with a body.
type posted struct {
	status  int
	header  http.Header
	text    string
	problem httpapi.Problem
}

// posts sends a body and expects a status.
func (g *guarded) posts(token, path, body string, status int, headers ...string) (p posted) {
	g.t.Helper()
	return g.sends(http.MethodPost, token, path, body, status, headers...)
}

func (g *guarded) sends(method, token, path, body string, status int, headers ...string) (p posted) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	p = posted{resp.StatusCode, resp.Header, string(text), httpapi.Problem{}}
	if resp.StatusCode != status {
		g.t.Errorf("%s %s: %s, want %d: %s", method, path, resp.Status, status, text)
	}
	if status >= 400 {
		if err := json.Unmarshal(text, &p.problem); err != nil {
			g.t.Errorf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return p
}

// pointers are where the problems of a body are.
func (p posted) pointers() (list []string) {
	for _, wrong := range p.problem.Parameters {
		list = append(list, wrong.Pointer)
	}
	slices.Sort(list)
	return list
}

// ordered listens to the topic orders.
func (s *served) ordered() (messages chan *pubsub.Message) {
	s.t.Helper()
	if err := pubsubio.Ensure(s.t.Context(), s.clients.PubSub); err != nil {
		s.t.Fatal(err)
	}
	messages = make(chan *pubsub.Message, 100)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.clients.PubSub.Subscriber("orders-statemanager").Receive(ctx, func(_ context.Context, m *pubsub.Message) {
			messages <- m
			m.Ack()
		})
	}()
	s.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	return messages
}

const anOrder = `{"id": "O-17", "deliveryLocation": {"lat": 48.86, "lon": 2.36}, "productType": "BLOOD", "priority": "CRITICAL", "requiresColdChain": false, "packageWeightKg": 1.5, "requesterId": "H1"}`

// F-INT-01: an order over HTTP becomes a document; the same again is the same, other content is
// refused with the fields that differ.
func TestOrders_ComeByHTTPOnce(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.exampleFleet()
	g.managed(manager.Config{PlanUnregistered: true})
	token := g.token(asOperator)

	first := g.posts(token, "/api/v1/orders", anOrder, 202)
	at := first.header.Get("Location")
	if at != "/api/v1/orders/O-17" {
		t.Errorf("Location %q", at)
	}
	changed := strings.NewReplacer("1.5", "2.5", "CRITICAL", "HIGH").Replace(anOrder)
	g.posts(token, "/api/v1/orders", changed, 409)                                // before there is a document, too
	g.asks(token, "GET", at, "", 200, `"status":"PENDING"`, `"requesterId":"H1"`) // at once
	before := g.stored()
	if again := g.posts(token, "/api/v1/orders", anOrder, 202); again.text != first.text || again.header.Get("Location") != at {
		t.Errorf("first %s, then %s", first.text, again.text)
	}
	other := g.posts(token, "/api/v1/orders", changed, 409)
	if got, want := other.pointers(), []string{"/packageWeightKg", "/priority"}; !slices.Equal(got, want) {
		t.Errorf("conflict at %q, want %q: %s", got, want, other.text)
	}
	if foreign := g.posts(token, "/api/v1/orders", strings.Replace(anOrder, "H1", "H2", 1), 409); strings.Contains(foreign.text, "H1") {
		t.Errorf("tells another requester: %s", foreign.text)
	}
	if after := g.stored(); !before["orders/O-17"].Equal(after["orders/O-17"]) {
		t.Error("written again")
	}

	// The content of an order that was changed since is still that of its first request.
	g.asks(token, "POST", at+"/priority", `{"reason": "x", "priority": "STANDARD"}`, 200)
	g.posts(token, "/api/v1/orders", anOrder, 202)
}

// F-INT-01: the id follows from the caller and the key where the body has none.
func TestOrders_HaveIdsByKey(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.fleet()
	messages := g.ordered()
	token := g.token(asOperator)
	body := `{"delivery_location": {"lat": 48.86, "lon": 2.36}, "product_type": "BLOOD"}`
	first := g.posts(token, "/api/v1/orders", body, 202, "Idempotency-Key", "4711")
	again := g.posts(token, "/api/v1/orders", body, 202, "Idempotency-Key", "4711")
	other := g.posts(token, "/api/v1/orders", body, 202, "Idempotency-Key", "4712")
	if first.text != again.text || first.text == other.text {
		t.Errorf("first %s, again %s, other key %s", first.text, again.text, other.text)
	}
	g.posts(token, "/api/v1/orders", strings.Replace(body, `"BLOOD"`, `"BLOOD", "packageWeightKg": 1`, 1), 409, "Idempotency-Key", "4711")
	own := g.posts(g.token(asRequester), "/api/v1/orders", body, 202, "Idempotency-Key", "4711")
	g.posts(g.token(asRequester), "/api/v1/orders", anOrder, 403)
	published := map[string]*pubsub.Message{}
	for range 3 {
		m := <-messages
		req, err := wire.DecodeOrder(m.Data, m.Attributes)
		if err != nil || req.ProductType != "BLOOD" || domain.CheckID(string(req.ID)) != nil {
			t.Errorf("published %s: %+v, %v", m.Data, req, err)
		}
		published[fmt.Sprintf("{\"id\":%q}\n", req.ID)] = m
	}
	if m := published[own.text]; m == nil || m.Attributes[wire.AttrSender] != "HOSPITAL-7" || !strings.Contains(string(m.Data), "HOSPITAL-7") {
		t.Errorf("a requester's order is %+v, answered %s", m, own.text)
	}
	if published[first.text] == nil || published[other.text] == nil || len(messages) > 0 {
		t.Errorf("published %v and %d more, answered %s and %s", published, len(messages), first.text, other.text)
	}
	missing := g.posts(token, "/api/v1/orders", body, 400)
	if !strings.Contains(missing.problem.Detail, "Idempotency-Key") {
		t.Error(missing.text)
	}
	g.posts(token, "/api/v1/orders", body, 400, "Idempotency-Key", strings.Repeat("x", 256))
}

// F-INT-01: one answer names every problem of the body, each with a pointer.
func TestOrders_NameEveryProblem(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	token := g.token(asOperator)
	for _, c := range []struct {
		body     string
		pointers []string
	}{
		{`{}`, []string{"/deliveryLocation", "/id", "/productType"}},
		{`{"id": "a/b", "priority": "URGENT", "packageWeightKg": "2", "deadline": "tomorrow", "deliveryLocation": {"lat": 95}, "colour": 1, "requiresColdChain": 1}`,
			[]string{"/colour", "/deadline", "/deliveryLocation/lat", "/deliveryLocation/lon", "/id", "/packageWeightKg", "/priority", "/productType", "/requiresColdChain"}},
		{`{"id": "O1", "productType": "BLOOD", "deliveryLocation": {"lat": "48", "lon": 200, "alt~/x": 3}, "status": "CANCELLED"}`,
			[]string{"/deliveryLocation.alt~0~1x", "/deliveryLocation/lat", "/deliveryLocation/lon", "/status"}},
		{`{"id": "O1", "productType": "BLOOD", "deliveryLocation": [1, 2], "pickupLocation": {}, "packageWeightKg": -1, "createdAt": 5, "requesterId": "` + strings.Repeat("x", 200) + `"}`,
			[]string{"/createdAt", "/deliveryLocation", "/packageWeightKg", "/pickupLocation/lat", "/pickupLocation/lon", "/requesterId"}},
		{`{"id": "O1", "productType": "BLOOD", "deliveryLocation": null}`, []string{"/deliveryLocation"}},
	} {
		p := g.posts(token, "/api/v1/orders", c.body, 400)
		if got := p.pointers(); !slices.Equal(got, c.pointers) {
			t.Errorf("%s: problems at %q, want %q: %s", c.body, got, c.pointers, p.text)
		}
	}
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, `"field%d": 1, `, i)
	}
	if p := g.posts(token, "/api/v1/orders", "{"+many.String()+`"id": "O1"}`, 400); len(p.text) > 10_000 {
		t.Errorf("%d bytes answer %d", len(p.text), many.Len())
	}
}

// stalled is a server behind a wire on which nothing comes back until it is released.
type stalled struct {
	server   string
	listener net.Listener
	released chan struct{}
}

func stall(t *testing.T, server string) *stalled {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stalled{server, l, make(chan struct{})}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.carry(conn)
		}
	}()
	return s
}

func (s *stalled) carry(conn net.Conn) {
	defer conn.Close()
	<-s.released
	far, err := net.Dial("tcp", s.server)
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		io.Copy(far, conn)
		far.Close() // a server that outlives the test waits for its client's end
	}()
	io.Copy(conn, far)
}

// F-INT-01: an order that Pub/Sub does not take is 503 with a time to wait. When Pub/Sub is back and
// the order was sent again, there is one.
func TestOrders_SurviveThatPubSubDoesNotAnswer(t *testing.T) {
	var wire *stalled
	g := newGuarded(t, httpapi.MetricsOpen, func(g *guarded, _ *httpapi.Access) {
		g.pubSubVia = func(server string) string { wire = stall(t, server); return wire.listener.Addr().String() }
	})
	g.fleet()
	hosts := g.clients.Config
	hosts.PubSubHost = wire.server
	near := *g.served
	near.clients = emutest.Connect(t, hosts)
	near.managed(manager.Config{})
	token := g.token(asOperator)
	g.api.HurryOrders(50 * time.Millisecond)
	for range 2 {
		p := g.posts(token, "/api/v1/orders", anOrder, 503)
		if p.header.Get("Retry-After") == "" || !strings.Contains(p.problem.Detail, "send the same order again") {
			t.Errorf("%v %s", p.header, p.text)
		}
	}
	g.posts(token, "/api/v1/orders", strings.Replace(anOrder, "1.5", "2.5", 1), 409) // the first may be on its way
	close(wire.released)
	g.api.HurryOrders(5 * time.Second)
	g.posts(token, "/api/v1/orders", anOrder, 202)
	emutest.Eventually(t, "the order", func() error { // 202 says that it will come
		_, err := g.store.Order(t.Context(), "O-17")
		return err
	})
	g.asks(token, "GET", "/api/v1/orders/O-17", "", 200, `"revision":1`)
	if events := g.events("O-17"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
}

// F-INT-04, F-INT-05: a requester reads, changes and cancels its own orders, and finds no others.
func TestOrders_AreTheirRequestersOwn(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.exampleFleet()
	g.managed(manager.Config{PlanUnregistered: true})
	requester, operator := g.token(asRequester), g.token(asOperator)
	own := strings.Replace(anOrder, "H1", "HOSPITAL-7", 1)
	g.posts(requester, "/api/v1/orders", own, 202)
	g.posts(operator, "/api/v1/orders", strings.Replace(anOrder, "O-17", "O-18", 1), 202)
	g.asks(operator, "GET", "/api/v1/orders/O-18", "", 200, `"requesterId":"H1"`)

	g.asks(requester, "GET", "/api/v1/orders/O-17", "", 200, `"summary":"it waits: no plan has been made since it came"`)
	g.asks(requester, "GET", "/api/v1/orders/O-18", "", 404, "orders O-18: not found")
	for query, want := range map[string]string{"": "O-17", "?requesterId=HOSPITAL-7": "O-17", "?requesterId=HOSPITAL-7&status=PENDING": "O-17"} {
		if a := g.asks(requester, "GET", "/api/v1/orders"+query, "", 200, want); strings.Contains(a.body, "O-18") || strings.Contains(a.body, `"O1"`) {
			t.Errorf("%q shows another's order: %s", query, a.body)
		}
	}
	g.asks(requester, "GET", "/api/v1/orders?requesterId=H1", "", 403, "leave requesterId out")
	if a := g.asks(operator, "GET", "/api/v1/orders?requesterId=H1", "", 200, "O-18"); strings.Contains(a.body, "O-17") {
		t.Errorf("not narrowed: %s", a.body)
	}

	change := `{"reason": "theatre moved", "priority": "HIGH", "deadline": "2099-01-01T10:00:00Z", "deliveryLocation": {"lat": 48.87, "lon": 2.37}}`
	g.sends("PATCH", requester, "/api/v1/orders/O-18", change, 404)
	changed := g.sends("PATCH", requester, "/api/v1/orders/O-17", change, 200)
	for _, part := range []string{`"priority":"HIGH"`, `"deadline":"2099-01-01T10:00:00Z"`, `"lat":48.87`, `"revision":2`, `"planningDepotId":"DEPOT-1"`} {
		if !strings.Contains(changed.text, part) {
			t.Errorf("changed to %s, lacks %s", changed.text, part)
		}
	}
	if again := g.sends("PATCH", requester, "/api/v1/orders/O-17", change, 200); again.text != changed.text {
		t.Errorf("again %s", again.text)
	}
	if events := g.events("O-17"); len(events) != 2 || !strings.Contains(events[1], "theatre moved (by subject ward-1); delivery at 48.870000,2.370000 instead of 48.860000,2.360000") {
		t.Errorf("events %q", events)
	}
	for body, pointers := range map[string][]string{
		`{"reason": "x"}`: {"/priority"},
		`{"reason": "", "priority": "SOON", "deadline": "now", "deliveryLocation": {"lat": 91}}`: {"/deadline", "/deliveryLocation/lat", "/deliveryLocation/lon", "/priority", "/reason"},
	} {
		if p := g.sends("PATCH", requester, "/api/v1/orders/O-17", body, 400); !slices.Equal(p.pointers(), pointers) {
			t.Errorf("%s: %s", body, p.text)
		}
	}
	g.sends("PATCH", requester, "/api/v1/orders/O-17", `{"reason": "x", "deadline": "2020-01-01T10:00:00Z"}`, 409)
	g.posts(requester, "/api/v1/orders", own, 202) // the first request again changes nothing

	g.posts(requester, "/api/v1/orders/O-18/cancel", `{"reason": "x"}`, 404)
	g.posts(requester, "/api/v1/orders/O-17/cancel", `{"reason": "patient transferred"}`, 200)
	g.asks(requester, "GET", "/api/v1/orders/O-17", "", 200, `"summary":"cancelled"`)
	g.posts(requester, "/api/v1/orders/O-17/hold", `{"reason": "x"}`, 403)
	g.asks(requester, "GET", "/api/v1/session", "", 200, `"verbs":["orders place","orders change","orders cancel"]`)
}

// F-INT-04: shortly before its delivery an order's answer says when it is expected and where its drone
// is; its address can no longer change.
func TestOrders_SayWhenTheyAreExpected(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.fleet() // drone D1 has order O1
	token := g.token(asOperator)
	if a := g.asks(token, "GET", "/api/v1/orders/O1", "", 200, `"summary":"drone D1 will pick it up"`); strings.Contains(a.body, "dronePosition") {
		t.Errorf("position without a time: %s", a.body)
	}
	for ahead, shown := range map[time.Duration]bool{9 * time.Minute: true, 11 * time.Minute: false} {
		at := time.Now().Add(ahead).UTC()
		m, err := g.store.Mission(t.Context(), "M-DEC-1")
		if err != nil {
			t.Fatal(err)
		}
		var route []map[string]any
		for _, w := range m.Route {
			route = append(route, map[string]any{
				"type": string(w.Type), "position": &latlng.LatLng{Latitude: w.Position.Lat, Longitude: w.Position.Lon}, "relatedOrderId": string(w.OrderID), "relatedWarehouseId": string(w.WarehouseID), "eta": at,
			})
		}
		if _, err := g.clients.Firestore.Doc("missions/M-DEC-1").Update(t.Context(), []firestore.Update{{Path: "route", Value: route}}); err != nil {
			t.Fatal(err)
		}
		a := g.asks(token, "GET", "/api/v1/orders/O1", "", 200, "delivery is expected at "+at.Format("15:04")+" UTC", `"expectedAt":"`+at.Format("2006-01-02T15:04"))
		if strings.Contains(a.body, `"dronePosition":{"lat":48.8566,"lon":2.3522,"ageSeconds":`) != shown {
			t.Errorf("%v ahead: %s", ahead, a.body)
		}
	}
	g.sends("PATCH", token, "/api/v1/orders/O1", `{"reason": "x", "deliveryLocation": {"lat": 48.87, "lon": 2.37}}`, 409)
	g.sends("PATCH", token, "/api/v1/orders/O1", `{"reason": "x", "priority": "CRITICAL"}`, 200)
}

// F-INT-03: an order that was refused on its way is gone, with the reason.
func TestOrders_SayThatTheyWereRefused(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.managed(manager.Config{Worker: pubsubio.Config{RequireSender: true}})
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	for id, data := range map[string]string{
		"R1": `{"id": "R1", "requesterId": "HOSPITAL-7", "productType": "BLOOD"}`,
		"R2": `{"id": "R2", "requester_id": "HOSPITAL-7", "packageWeightKg": "heavy"}`,
		"R3": `{"id": "R3", "requesterId": "H1", "deliveryLocation": {"lat": 1, "lon": 2}, "productType": "BLOOD"}`,
	} {
		attributes := map[string]string{wire.AttrSender: "HOSPITAL-7"}
		if id == "R2" {
			attributes = nil
		}
		if _, err := publisher.Publish(t.Context(), "orders", []byte(data), attributes, "").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		emutest.Eventually(t, "the refusal of "+id, func() error {
			_, err := g.store.RefusalOf(t.Context(), domain.OrderID(id))
			return err
		})
	}
	requester, operator := g.token(asRequester), g.token(asOperator)
	strict := httptest.NewServer(httpapi.New(httpapi.Config{Store: g.store, PubSub: g.clients.PubSub, Meter: g.clients.Meter, Access: g.access, Log: emutest.Log(t), RequireSender: true}))
	defer strict.Close()
	at := g.url
	g.url = strict.URL
	if p := g.posts(operator, "/api/v1/orders", strings.Replace(anOrder, `, "requesterId": "H1"`, "", 1), 400); !slices.Equal(p.pointers(), []string{"/requesterId"}) {
		t.Error(p.text)
	}
	g.url = at
	g.asks(requester, "GET", "/api/v1/orders/R1", "", 410, "as INVALID", "delivery_location is missing", "send a correct order")
	g.asks(requester, "GET", "/api/v1/orders/R2", "", 410, "as UNDECODABLE")
	g.asks(requester, "GET", "/api/v1/orders/R3", "", 410, "as SENDER_MISMATCH")
	g.posts(requester, "/api/v1/orders/R1/cancel", `{"reason": "x"}`, 410)
	g.asks(operator, "GET", "/api/v1/orders/R1", "", 410)
	g.asks(operator, "GET", "/api/v1/orders/R9", "", 404)
	other := g.token(identitytest.Claims{"sub": "ward-2", "groups": []string{"wards"}, "requester": "HOSPITAL-8"})
	g.asks(other, "GET", "/api/v1/orders/R1", "", 404)
}

// F-INT-02: what no drone can deliver as things stand is refused with the reasons, or ordered all the
// same with a warning. Over Pub/Sub it is taken, and its waiting and its event say so at once.
func TestOrders_SayWhatNobodyCanDeliver(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.fleet()
	g.managed(manager.Config{PlanUnregistered: true})
	token := g.token(asOperator)
	far := strings.NewReplacer("48.86", "2.36", "2.36", "48.86", "BLOOD", "BLUD").Replace(anOrder)
	p := g.posts(token, "/api/v1/orders", far, 422)
	if got, want := p.pointers(), []string{"/deliveryLocation", "/productType"}; !slices.Equal(got, want) {
		t.Errorf("barriers at %q, want %q: %s", got, want, p.text)
	}
	for _, part := range []string{"which no warehouse stocks; give one of BLOOD", "with lat and lon exchanged", "?accept=anyway", `"reason":"out_of_range"`} {
		if !strings.Contains(p.text, part) {
			t.Errorf("%s lacks %s", p.text, part)
		}
	}
	if _, err := g.store.Order(t.Context(), "O-17"); err == nil {
		t.Error("ordered all the same")
	}
	g.posts(token, "/api/v1/orders?accept=yes", far, 400)
	anyway := g.posts(token, "/api/v1/orders?accept=anyway", far, 202)
	if !strings.Contains(anyway.text, `"warnings":[{"name":"productType"`) {
		t.Errorf("no warning: %s", anyway.text)
	}
	g.asks(token, "GET", "/api/v1/orders/O-17", "", 200, `"summary":"it cannot be delivered as things stand: no warehouse supplies the product`, `"warning":"no_compatible_warehouse: productType is`)
	if again := g.posts(token, "/api/v1/orders", far, 202); again.text != anyway.text {
		t.Errorf("again %s", again.text)
	}

	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	heavy := `{"id": "O-18", "pickupLocation": {"lat": 48.86, "lon": 2.36}, "deliveryLocation": {"lat": 52.5, "lon": 13.4}}`
	if _, err := publisher.Publish(t.Context(), "orders", []byte(heavy), nil, "").Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	emutest.Eventually(t, "the order", func() error { _, err := g.store.Order(t.Context(), "O-18"); return err })
	g.asks(token, "GET", "/api/v1/orders/O-18", "", 200, `"waiting":[{"depotId":"DEPOT-1","reason":"out_of_range: deliveryLocation is`, "too far for every drone")
	if events := g.events("O-18"); len(events) != 1 || !strings.Contains(events[0], "warning: out_of_range: ") {
		t.Errorf("events %q", events)
	}
	back := g.sends("PATCH", token, "/api/v1/orders/O-18", `{"reason": "typing mistake", "deliveryLocation": {"lat": 48.87, "lon": 2.37}}`, 200)
	if strings.Contains(back.text, "warning") {
		t.Errorf("still warned: %s", back.text)
	}
}

// F-INT-03, F-INT-04: a requester's stream has its own orders and refusals, and nothing else of the
// fleet, whatever it asks for.
func TestOrders_StreamToTheirRequester(t *testing.T) {
	beside(t)
	g := newGuarded(t, httpapi.MetricsOpen)
	g.fleet()
	g.managed(manager.Config{PlanUnregistered: true})
	requester, operator := g.token(asRequester), g.token(asOperator)
	g.posts(operator, "/api/v1/orders", strings.Replace(anOrder, "O-17", "O-16", 1), 202)
	g.asks(operator, "GET", "/api/v1/orders/O-16", "", 200)
	own, narrowed := g.watch("/api/v1/stream", "", requester), g.watch("/api/v1/stream?requester=HOSPITAL-7&kinds=order", "", operator)
	g.posts(requester, "/api/v1/orders", strings.Replace(anOrder, "H1", "HOSPITAL-7", 1), 202)
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	for _, bad := range []string{`{"id": "R1", "requesterId": "HOSPITAL-7"}`, `{"id": "R2", "requesterId": "H1"}`} {
		if _, err := publisher.Publish(t.Context(), "orders", []byte(bad), nil, "").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*page{own, narrowed} {
		p.has("order/O-17", `"status":"PENDING"`)
	}
	own.until("the refusal", func() error {
		for key, entity := range own.entities {
			if strings.HasPrefix(key, "refusal/") && strings.Contains(string(entity), `"orderId":"R1","requesterId":"HOSPITAL-7","reason":"INVALID"`) {
				return nil
			}
		}
		return fmt.Errorf("not among %d entities", len(own.entities))
	})
	g.posts(requester, "/api/v1/orders/O-17/cancel", `{"reason": "x"}`, 200)
	for _, p := range []*page{own, narrowed} {
		p.has("order/O-17", `"status":"CANCELLED"`)
	}
	if len(own.entities) != 2 || len(narrowed.entities) != 1 || len(own.at) > 0 {
		t.Errorf("a requester sees %d entities and %d positions, an operator who asks for its orders %d", len(own.entities), len(own.at), len(narrowed.entities))
	}
	g.asks(requester, "GET", "/api/v1/stream?requester=H1", "", 403, "leave requester out")
}

// F-INT-01, F-INT-04: a hospital orders, follows, changes and cancels with curl.
func TestOrders_ServeTheExampleOfAHospital(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	g := newGuarded(t, httpapi.MetricsOpen)
	g.fleet()
	g.managed(manager.Config{PlanUnregistered: true})
	hospital := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"../examples/hospital.sh"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "API=" + g.url, "TOKEN=" + g.token(asRequester), "KEY=ward 3, 27 November"}
		text, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%q: exit code %d, want %d (%v): %s", args, got, code, err, text)
		}
		return string(text)
	}
	for range 2 {
		if out := hospital(0, "order", "48.86", "2.36", "BLOOD", "id=4711", "priority=HIGH", "packageWeightKg=1.5"); out != "4711\n" {
			t.Errorf("ordered %q", out)
		}
	}
	if out := hospital(1, "order", "48.86", "2.36", "BLUD"); !strings.Contains(out, "give one of BLOOD") {
		t.Errorf("refused with %q", out)
	}
	first, again := hospital(0, "order", "48.87", "2.37", "BLOOD"), hospital(0, "order", "48.87", "2.37", "BLOOD")
	if first != again || !strings.HasPrefix(first, "K-") {
		t.Errorf("ordered %q, then %q", first, again)
	}
	hospital(0, "change", "4711", "priority=CRITICAL", `the "red" theatre`)
	hospital(0, "show", strings.TrimSpace(first)) // waits for its document
	if out := hospital(0, "list", "PENDING"); !strings.Contains(out, `"priority":"CRITICAL"`) || !strings.Contains(out, strings.TrimSpace(first)) {
		t.Errorf("list %s", out)
	}
	if out := hospital(0, "show", "4711"); !strings.HasPrefix(out, "it waits: ") {
		t.Errorf("show %q", out)
	}
	hospital(0, "cancel", "4711", "patient transferred")
	if out := hospital(0, "follow", "4711"); out != "cancelled\n" {
		t.Errorf("follow %q", out)
	}
	if out := hospital(0, "--help"); !strings.Contains(out, "Usage: hospital.sh") {
		t.Errorf("help %q", out)
	}
	hospital(2, "cancel", "4711")
}
