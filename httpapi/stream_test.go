package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/explain"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// event is one event of a stream.
type event struct {
	Name, ID string
	Data     struct {
		Last     bool
		Areas    []string
		Reason   string
		Entities []streamed
		Upserts  []streamed
		Deletes  []struct{ Kind, ID string }
		// Positions are rows of id, lat, lon, battery, status, measured at.
		Positions [][6]any
	}
}

type streamed struct {
	Kind, ID string
	Entity   json.RawMessage
}

// page is what a viewer makes of a stream.
type page struct {
	t        *testing.T
	resp     *http.Response
	lines    *bufio.Reader
	lastID   string
	entities map[string]json.RawMessage // by kind/id
	at       map[string][6]any          // positions by drone
	names    map[string]int             // events by name
	areas    []string                   // of the latest snapshot
}

// watch opens a stream. One that begins anew has its snapshot: the official emulator's
// listeners sometimes miss a write that falls into their start.
func (s *served) watch(path, after string, token ...string) *page {
	s.t.Helper()
	// No time limit: a stream lasts.
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	if len(token) > 0 {
		req.Header.Set("Authorization", "Bearer "+token[0])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s: status %d, %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	p := &page{t: s.t, resp: resp, lines: bufio.NewReader(resp.Body), entities: map[string]json.RawMessage{}, at: map[string][6]any{}, names: map[string]int{}}
	s.t.Cleanup(func() { resp.Body.Close() })
	for after == "" && !strings.Contains(path, "after=") && p.names["snapshot"] == 0 {
		p.next()
	}
	return p
}

// next reads one event and applies it.
func (p *page) next() event {
	p.t.Helper()
	var e event
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			p.t.Fatalf("stream ended: %v", err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			e.Name = value
		case "id":
			e.ID, p.lastID = value, value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.Data); err != nil {
				p.t.Fatalf("%v: %s", err, value)
			}
		case "":
			if e.Name != "" {
				p.apply(e)
				return e
			}
		}
	}
}

func (p *page) apply(e event) {
	if e.Name == "snapshot" && p.names["snapshot"] == 0 {
		clear(p.entities)
	}
	if p.names[e.Name]++; e.Name == "snapshot" {
		p.areas = e.Data.Areas
	}
	for _, u := range append(e.Data.Entities, e.Data.Upserts...) {
		p.entities[u.Kind+"/"+u.ID] = u.Entity
	}
	for _, d := range e.Data.Deletes {
		delete(p.entities, d.Kind+"/"+d.ID)
	}
	for _, row := range e.Data.Positions {
		p.at[row[0].(string)] = row
	}
}

// until reads events until check returns nil.
func (p *page) until(what string, check func() error) {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: %v", what, err)
		}
		p.next()
	}
}

// has waits until an entity's JSON contains a text.
func (p *page) has(key, text string) {
	p.t.Helper()
	p.until(key, func() error {
		if !strings.Contains(string(p.entities[key]), text) {
			return fmt.Errorf("%s lacks %s", p.entities[key], text)
		}
		return nil
	})
}

func (p *page) close() { p.resp.Body.Close() }

// report publishes telemetry to the topic.
func (s *served) report(t domain.Telemetry) {
	s.t.Helper()
	data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
	if err != nil {
		s.t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(s.clients.PubSub)
	defer publisher.Stop()
	if _, err := publisher.Publish(s.t.Context(), pubsubio.TopicTelemetry, data, attrs, string(t.DroneID)).Wait(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// subscriptions lists the ids of the project's subscriptions.
func (s *served) subscriptions() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		list := s.clients.PubSub.SubscriptionAdminClient.ListSubscriptions(context.Background(),
			&pubsubpb.ListSubscriptionsRequest{Project: "projects/" + s.clients.PubSub.Project()})
		for sub, err := range list.All() {
			if !yield(sub.GetName(), err) {
				return
			}
		}
	}
}

// F-LIVE-01: a stream begins with everything there is and goes on with what changes:
// documents as they are committed, positions as they are published.
func TestStream_ShowsSnapshotThenChanges(t *testing.T) {
	beside(t)
	s := serve(t)
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	s.fleet()
	p := s.watch("/api/v1/stream", "")
	for key, text := range map[string]string{
		"drone/D1": `"status":"MOVING"`, "order/O3": `"heldReason":"address in doubt"`, "mission/M-DEC-1": `"droneId":"D1"`,
		"depot/DEPOT-1": `"name":"Main"`, "warehouse/W1": `"authorizedProductTypes":["BLOOD"]`, "order/O2": `"waiting":[{"depotId":"DEPOT-1"`,
	} {
		if !strings.Contains(string(p.entities[key]), text) {
			t.Errorf("%s is %s, which lacks %s", key, p.entities[key], text)
		}
	}
	if err := s.store.ReleaseOrder(firestoretx.By(t.Context(), "ann"), "O3", "address found"); err != nil {
		t.Fatal(err)
	}
	p.has("order/O3", `"held":false`)
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "not needed"); err != nil {
		t.Fatal(err)
	}
	p.has("order/O2", `"status":"CANCELLED"`)
	// A drone's document is read again when its state changes.
	ill := domain.Telemetry{DroneID: "D2", Timestamp: time.Now(), Position: home, Battery: 80, Status: domain.DroneProblem}
	for _, err := range s.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{ill}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.has("drone/D2", `"status":"PROBLEM"`)
	// Positions come without one.
	emutest.Eventually(t, "a temporary subscription", func() error {
		for sub, err := range s.subscriptions() {
			if err == nil && strings.Contains(sub, pubsubio.TapPrefix) {
				return nil
			}
		}
		return errors.New("none yet")
	})
	s.report(domain.Telemetry{DroneID: "D2", Timestamp: time.Now(), Position: domain.Position{Lat: 48.9, Lon: 2.4}, Battery: 79, Status: domain.DroneProblem})
	p.until("a position", func() error {
		if row := p.at["D2"]; row[1] != 48.9 || row[2] != 2.4 || row[3] != 79.0 || row[4] != "PROBLEM" {
			return fmt.Errorf("position %v", row)
		}
		return nil
	})
	if n, bytes := s.clients.Meter.LiveReports.Value(), s.clients.Meter.LiveReportsBytes.Value(); n != 1 || bytes < 50 || bytes > 500 {
		t.Errorf("the feed received %d reports, %d bytes, want 1", n, bytes)
	}
	// A viewer that comes back is told only what changed, also one that looks at another place. F-CYC-03
	again, elsewhere := s.watch("/api/v1/stream", p.lastID), s.watch("/api/v1/stream?near=1,1,2,2&after="+p.lastID, "")
	p.close() // not before, or the feed may have ended
	if err := s.store.HoldOrder(firestoretx.By(t.Context(), "ann"), "O3", "again"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*page{again, elsewhere} {
		p.has("order/O3", `"held":true`)
		if p.names["snapshot"] > 0 || len(p.entities) > 3 {
			t.Errorf("told %d entities again, with %d snapshots", len(p.entities), p.names["snapshot"])
		}
		p.close()
	}
	// When nobody looks, the subscription goes.
	emutest.Eventually(t, "no temporary subscription", func() error {
		for sub, err := range s.subscriptions() {
			if err != nil || strings.Contains(sub, pubsubio.TapPrefix) {
				return fmt.Errorf("%s, %v", sub, err)
			}
		}
		return nil
	})
}

// F-LIVE-05, F-ORD-06: an order that waits shows how soon a drone could deliver it: the same as its
// explanation.
func TestStream_ShowsHowSoonAnOrderCouldArrive(t *testing.T) {
	beside(t)
	s := serve(t)
	s.fleet()
	p := s.watch("/api/v1/stream?kinds=order", "")
	p.has("order/O2", `"earliestDroneId":"D2"`)
	var o entity.LiveOrder
	if err := json.Unmarshal(p.entities["order/O2"], &o); err != nil {
		t.Fatal(err)
	}
	var x struct {
		explain.OrderExplanation
		ServerTime time.Time
	}
	s.get("/api/v1/orders/O2/explanation", http.StatusOK, &x)
	if x.EarliestDroneID != "D2" || x.EarliestArrival == nil || x.EarliestArrival.Sub(*o.EarliestArrival).Abs() > arrivalMoves {
		t.Errorf("the stream says %v, the explanation %v by %s", o.EarliestArrival, x.EarliestArrival, x.EarliestDroneID)
	}
	if time.Since(x.ServerTime).Abs() > time.Minute {
		t.Errorf("server time %s", x.ServerTime)
	}
	for _, other := range []string{"order/O1", "order/O3"} { // with a drone; held
		if strings.Contains(string(p.entities[other]), "earliest") {
			t.Errorf("%s: %s", other, p.entities[other])
		}
	}
}

// arrivalMoves is by how much what the stream shows may be older.
const arrivalMoves = 35 * time.Second

// F-LIVE-01: a cycle shows how its decisions were judged, as soon as they are.
func TestStream_ShowsWhatCameOfDecisions(t *testing.T) {
	beside(t)
	s := serve(t)
	s.fleet()
	record := func(id domain.CycleID, began time.Time) {
		t.Helper()
		c := domain.Cycle{ID: id, DepotID: "DEPOT-1", DepotIDs: []domain.DepotID{"DEPOT-1", "DEPOT-2"}, StartedAt: began, Outcome: domain.CyclePublished}
		if err := s.store.RecordCycle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	record("C1", time.Now())
	p := s.watch("/api/v1/stream?kinds=cycle&depot=DEPOT-2", "") // of its area
	p.has("cycle/C1", `"applied":1,"refused":{"DRONE_NOT_IDLE":1}`)
	taken := decision("DEC-3", "D2", "O1", time.Now())
	if _, err := s.store.AssignMission(t.Context(), taken, policy.Delivery{}); err != nil {
		t.Fatal(err)
	}
	p.has("cycle/C1", `"applied":1,"refused":{"DRONE_NOT_IDLE":1,"ORDER_NOT_PENDING":1}`)
	record("C2", time.Now())
	p.has("cycle/C2", `"applied":0,"refused":{}`)
}

// F-LIVE-01: an order is sent again when it waits for another reason, not for each cycle.
func TestStream_SendsAnOrderAgainForAnotherReasonOnly(t *testing.T) {
	beside(t)
	s := serve(t)
	s.fleet()
	p := s.watch("/api/v1/stream?kinds=cycle,order", "")
	p.has("order/O2", "earliestArrival") // which is another reason to send it
	for _, c := range []struct {
		id     domain.CycleID
		reason string
		free   int
		named  string
	}{{"C1", "no_drone_free", 1, "C1"}, {"C2", "no_drone_free", 1, "C1"}, {"C3", "no_drone_free", 2, "C3"}, {"C4", "out_of_range", 2, "C4"}, {"C5", "out_of_range", 2, "C4"}} {
		now := time.Now()
		err := s.store.RecordCycle(t.Context(), domain.Cycle{
			ID: c.id, DepotID: "DEPOT-1", Outcome: domain.CycleEmpty, StartedAt: now, SnapshotTime: now, Orders: 1,
			Unserved: []domain.UnservedOrder{{OrderID: "O2", Reason: c.reason, Obstacles: domain.Obstacles{Free: c.free}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.has("cycle/"+string(c.id), c.reason)
		if order := string(p.entities["order/O2"]); !strings.Contains(order, `"cycleId":"`+c.named+`"`) {
			t.Errorf("after cycle %s: %s, want the reason of %s", c.id, order, c.named)
		}
	}
}

// F-LIVE-02: nothing is read while nobody looks, however long the process has run.
func TestStream_CostsNothingWhileNobodyLooks(t *testing.T) {
	s := serve(t)
	s.fleet()
	p := s.watch("/api/v1/stream", "")
	if f := s.clients.Meter.FirestoreByOperation()["live"]; f.RPCs == 0 || f.Reads < 8 {
		t.Errorf("a viewer cost %+v", f)
	}
	p.close()
	emutest.Eventually(t, "the feed's end", func() error {
		if s.feed.Following() {
			return errors.New("it goes on")
		}
		return nil
	})
	before := s.clients.Meter.FirestoreByOperation()["live"]
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "not needed"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.ListDrones(context.Background(), firestoretx.DroneFilter{}, firestoretx.Page{}); err != nil {
		t.Fatal(err)
	}
	if after := s.clients.Meter.FirestoreByOperation()["live"]; after != before {
		t.Errorf("cost %+v, then %+v", before, after)
	}
}

// pipes is a listener whose connections hold no byte that nobody reads.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// F-LIVE-01: viewers who receive nothing cost others nothing, and little memory.
func TestStream_IsNotHeldUpByStalledViewers(t *testing.T) {
	s := serve(t)
	s.fleet()
	p := s.watch("/api/v1/stream?kinds=order", "")
	p.has("order/O3", `"held":true`)

	const stalled = 150 // beside p, below the share of a role
	conns := make(pipes, stalled)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- httpapi.ListenOn(conns).Serve(ctx, context.Background(), s.api) }()
	before := heap()
	for range stalled {
		client, server := net.Pipe()
		defer client.Close()
		conns <- server
		if _, err := io.WriteString(client, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	var slowest time.Duration
	for i := range 10 {
		hold, want := s.store.ReleaseOrder, `"held":false`
		if i%2 == 1 {
			hold, want = s.store.HoldOrder, `"held":true`
		}
		if err := hold(firestoretx.By(t.Context(), "ann"), "O3", fmt.Sprint("change ", i)); err != nil {
			t.Fatal(err)
		}
		committed := time.Now()
		p.has("order/O3", want)
		slowest = max(slowest, time.Since(committed))
	}
	const most = 64 << 10 // the server's buffers for a connection are most of it
	grew := int64(heap()) - int64(before)
	if grew > stalled*most {
		t.Errorf("%d stalled viewers take %d bytes each, want at most %d", stalled, grew/stalled, most)
	}
	t.Logf("%d stalled viewers take %d bytes each; another one heard of each of 10 changes within %s of its commit", stalled, grew/stalled, slowest.Round(time.Millisecond))
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stalled viewers held up the server's end: %v", err)
	}
}

// heap is the memory in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// F-LIVE-01
func TestStream_RefusesWrongFilters(t *testing.T) {
	s := serve(t)
	for query, part := range map[string]string{
		"kinds=drone,plane": `kinds has "plane"; give a list of`, "kinds=": "kinds has", "area=1,2,3": "area is", "area=1,2,3,NaN": "area has",
		"area=2,2,1,3": "which is empty", "near=91,0,92,0": "near has", "depot=a/b": "depot", "areas=DEPOT-1,": "areas has \"\"", "areas=DEPOT-1" + strings.Repeat(",D", 100): "areas names 101 depots", "since=1": "is not a parameter",
	} {
		s.refused(http.MethodGet, "/api/v1/stream?"+query, http.StatusBadRequest, part)
	}
	s.do(http.MethodHead, "/api/v1/stream", http.StatusOK, nil)
}

// F-CYC-03: what a process follows is the areas that its viewers look at: changes elsewhere cost no read and no report.
func TestStream_FollowsTheAreasOfItsViewers(t *testing.T) {
	embedded := os.Getenv(connect.FirestoreHost) == "" // Google's emulator sends what matches again when anything is written
	beside(t)
	s := serve(t)
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	s.fleet() // in the area of DEPOT-1
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	places := map[domain.DepotID]domain.Position{"DEPOT-1": home, "DEPOT-2": {Lat: 45.76, Lon: 4.84}, "DEPOT-3": {Lat: 43.3, Lon: 5.37}}
	must(s.store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-2", Position: places["DEPOT-2"]}, {ID: "DEPOT-3", Position: places["DEPOT-3"]}}, nil,
		[]domain.Drone{{ID: "E2", HomeDepotID: "DEPOT-2"}, {ID: "E3", HomeDepotID: "DEPOT-3"}}))
	orders := 0
	order := func(depot domain.DepotID) string {
		t.Helper()
		orders++
		id := domain.OrderID(fmt.Sprint(depot, "-", orders))
		at := places[depot]
		must(s.store.IngestOrder(t.Context(), domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &at, Delivery: at}}, time.Now()))
		return "order/" + string(id)
	}
	applier := s.store.NewTelemetryApplier()
	report := func(id domain.DroneID, at domain.Position, status domain.DroneStatus) {
		t.Helper()
		r := domain.Telemetry{DroneID: id, Timestamp: time.Now(), Position: at, Battery: 80, Status: status}
		s.report(r)
		for _, err := range applier.Apply(t.Context(), []domain.Telemetry{r}) {
			must(err)
		}
	}
	report("E2", places["DEPOT-2"], domain.DroneIdle)
	report("E3", places["DEPOT-3"], domain.DroneIdle)
	cycle := func(depot domain.DepotID) string {
		t.Helper()
		orders++
		c := domain.Cycle{ID: domain.CycleID(fmt.Sprint(depot, "-", orders)), DepotID: depot, StartedAt: time.Now(), EndedAt: time.Now(), Outcome: domain.CyclePublished, Missions: 1}
		must(s.store.RecordCycle(t.Context(), c))
		return "cycle/" + string(c.ID)
	}
	lacks := func(p *page, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if p.entities[key] != nil {
				t.Errorf("is told of %s, which is elsewhere", key)
			}
		}
	}

	p := s.watch("/api/v1/stream?areas=DEPOT-1", "")
	p.has("mission/M-DEC-1", `"droneId":"D1"`)
	p.has("order/O3", `"held":true`)
	p.has("drone/D3", `"status":"MAINTENANCE"`)
	p.has("depot/DEPOT-2", "DEPOT-2") // places are those of the whole fleet
	lacks(p, "drone/E2", "drone/E3")
	live := func() int64 { return int64(s.clients.Meter.FirestoreByOperation()["live"].Reads) }
	before := live()
	var elsewhere []string
	for i := range 15 {
		status := []domain.DroneStatus{domain.DroneProblem, domain.DroneIdle}[i%2]
		report("E2", domain.Position{Lat: 45.7 + float64(i)/100, Lon: 4.84}, status)
		report("E3", domain.Position{Lat: 43.2 + float64(i)/100, Lon: 5.37}, status)
		elsewhere = append(elsewhere, order("DEPOT-2"), cycle("DEPOT-3"))
	}
	report("D2", domain.Position{Lat: 48.86, Lon: 2.36}, domain.DroneProblem)
	p.has("drone/D2", `"status":"PROBLEM"`)
	p.has(order("DEPOT-1"), `"planningDepotId":"DEPOT-1"`)
	p.has(cycle("DEPOT-1"), `"applied":0`)
	lacks(p, append(elsewhere, "drone/E2", "drone/E3")...)
	if cost, reports := live()-before, s.clients.Meter.LiveReports.Value(); cost > 20 && embedded || reports > 0 {
		t.Errorf("60 changes elsewhere and 3 near cost %d reads, and %d reports were received", cost, reports)
	}
	for sub, err := range s.subscriptions() {
		if must(err); strings.Contains(sub, pubsubio.TapPrefix) {
			t.Errorf("follows the reports of the whole fleet with %s", sub)
		}
	}
	// A drone that only moved is told by its position.
	place := home.Moved(200, 0)
	report("D3", place, domain.DroneMaintenance)
	p.until("the drone's place", func() error {
		if row := p.at["D3"]; row[1] == nil || math.Abs(row[1].(float64)-place.Lat) > 1e-4 {
			return fmt.Errorf("position %v", row)
		}
		return nil
	})

	// One that comes back to the same areas is told what changed, and one that looks elsewhere what is there.
	again := s.watch("/api/v1/stream?areas=DEPOT-1", p.lastID)
	again.has(order("DEPOT-1"), "planningDepotId")
	if again.names["snapshot"] > 0 {
		t.Error("one that comes back to the same areas gets a snapshot")
	}
	panned := s.watch("/api/v1/stream?areas=DEPOT-2&after="+p.lastID, "")
	panned.has("drone/E2", `"homeDepotId":"DEPOT-2"`)
	panned.has(elsewhere[0], `"planningDepotId":"DEPOT-2"`)
	lacks(panned, "drone/D1", "drone/E3", "order/O3", "mission/M-DEC-1", "cycle/C1", elsewhere[1])
	both := s.watch("/api/v1/stream?areas=DEPOT-1,DEPOT-2", "")
	both.has("drone/E2", `"homeDepotId":"DEPOT-2"`)
	both.has("drone/D1", `"homeDepotId":"DEPOT-1"`)
	lacks(both, "drone/E3")
	if want := []string{"DEPOT-1", "DEPOT-2"}; !slices.Equal(both.areas, want) {
		t.Errorf("its snapshot says that it is of %v, want %v", both.areas, want)
	}
	near, far := order("DEPOT-1"), order("DEPOT-2")
	p.has(near, "planningDepotId")
	panned.has(far, "planningDepotId")
	both.has(near, "planningDepotId")
	both.has(far, "planningDepotId")
	lacks(p, far)
	lacks(panned, near)

	// While one viewer sees the whole fleet, and after it has left, the others see theirs.
	whole := s.watch("/api/v1/stream", "")
	whole.has("drone/E3", `"homeDepotId":"DEPOT-3"`)
	if whole.areas != nil {
		t.Errorf("the snapshot of the whole fleet says that it is of %v", whole.areas)
	}
	next, third := order("DEPOT-1"), order("DEPOT-3")
	whole.has(third, "planningDepotId")
	p.has(next, "planningDepotId")
	whole.close()
	emutest.Eventually(t, "no temporary subscription", func() error {
		for sub, err := range s.subscriptions() {
			if err != nil || strings.Contains(sub, pubsubio.TapPrefix) {
				return fmt.Errorf("%s, %v", sub, err)
			}
		}
		return nil
	})
	p.has(order("DEPOT-1"), "planningDepotId")
	lacks(p, third, "drone/E3")
}

// F-API-10: however many streams viewers have open, operators get theirs, and the reverse.
func TestStream_KeepsAShareForEachRole(t *testing.T) {
	if 2*httpapi.StreamShare >= live.MaxViewers {
		t.Errorf("the share of a role is %d of %d streams, so that two of them leave none", httpapi.StreamShare, live.MaxViewers)
	}
	g := newGuarded(t, httpapi.MetricsOpen)
	g.api.ShareStreams(2)
	roles := []func(i int) string{
		func(i int) string {
			return g.token(identitytest.Claims{"sub": fmt.Sprint("requester ", i), "groups": []string{"wards"}, "requester": "HOSPITAL-7"})
		},
		func(i int) string {
			return g.token(identitytest.Claims{"sub": fmt.Sprint("viewer ", i), "groups": []string{"watch"}})
		},
		func(i int) string {
			return g.token(identitytest.Claims{"sub": fmt.Sprint("operator ", i), "email": "ann@example.org", "email_verified": true})
		},
	}
	for _, role := range roles {
		for i := range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/api/v1/stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+role(i))
			resp, err := g.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("stream %d: %s", i, resp.Status)
			}
		}
		g.asks(role(2), "GET", "/api/v1/stream", "", http.StatusServiceUnavailable, "no stream left for the caller's role")
		g.asks(role(2), "GET", "/api/v1/session", "", http.StatusOK)
	}
}
