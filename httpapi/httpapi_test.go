package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
}

// served is an API behind a real listener.
type served struct {
	t       *testing.T
	url     string
	clients *connect.Clients
	store   *firestoretx.Store
	client  *http.Client
	api     *httpapi.API
	feed    *live.Feed
	locks   lock.Store
	// stopping makes the API unready; stop stops the server.
	stopping context.CancelCauseFunc
	stop     func() error
}

// hideFirestoreHost unsets the variable with which the Firestore library would ignore the
// configured address and the meter.
func hideFirestoreHost(t *testing.T) {
	t.Helper()
	if os.Getenv(connect.FirestoreHost) != "" {
		t.Setenv(connect.FirestoreHost, "")
	}
}

// beside runs a test that mostly waits beside others, unless it has to change the
// environment; see hideFirestoreHost.
func beside(t *testing.T) {
	if os.Getenv(connect.FirestoreHost) == "" {
		t.Parallel()
	}
}

func serve(t *testing.T) *served { return serveOn(t, emutest.Hosts(t)) }

func serveOn(t *testing.T, hosts connect.Config) *served {
	return serveFor(t, hosts, httpapi.Access{}, emutest.Log(t))
}

func serveFor(t *testing.T, hosts connect.Config, access httpapi.Access, log *slog.Logger) *served {
	t.Helper()
	return serveWithLocks(t, hosts, connect.LockStore{}, access, log)
}

// serveWithLocks is serveFor with the locks in a store of their own.
func serveWithLocks(t *testing.T, hosts connect.Config, store connect.LockStore, access httpapi.Access, log *slog.Logger) *served {
	t.Helper()
	hideFirestoreHost(t)
	s := &served{t: t, clients: emutest.Connect(t, hosts)}
	s.clients.LockStore = store
	working, stopping := context.WithCancelCause(t.Context())
	s.stopping = stopping
	s.store = firestoretx.New(s.clients.Firestore, firestoretx.Config{PlanUnregistered: true})
	locks, err := s.clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.locks = listener.URL(), locks
	s.feed = live.New(live.Config{
		Store: s.store, PubSub: s.clients.PubSub, Locks: locks, Meter: s.clients.Meter, Now: time.Now, NewID: uuid.NewString, Grace: 10 * time.Millisecond, Log: log,
	})
	api := httpapi.New(httpapi.Config{
		Store: s.store, Locks: locks, PubSub: s.clients.PubSub, Meter: s.clients.Meter,
		NewID: uuid.NewString, Stopping: func() error { return context.Cause(working) }, Log: log, Access: access,
		Operator: operator.Commands{Store: s.store, Locks: locks, PubSub: s.clients.PubSub}, Feed: s.feed,
	})
	s.api = api
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Serve(ctx, context.Background(), api) }()
	stopped := false
	s.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	transport := &http.Transport{}
	s.client = &http.Client{Transport: described{t, transport}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		s.feed.Close(context.Background())
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// get requests a path, expects a status, and decodes the JSON answer into v.
func (s *served) get(path string, status int, v any) *http.Response {
	s.t.Helper()
	return s.do(http.MethodGet, path, status, v)
}

func (s *served) do(method, path string, status int, v any) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, status, body)
	}
	if v != nil {
		if err := json.Unmarshal(body, v); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, body)
		}
	}
	return resp
}

// refused sends a request and expects a problem whose detail contains every part.
func (s *served) refused(method, path string, status int, parts ...string) httpapi.Problem {
	s.t.Helper()
	var p httpapi.Problem
	resp := s.do(method, path, status, &p)
	if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
		s.t.Errorf("%s: content type %q", path, got)
	}
	if p.Status != status || p.Title != http.StatusText(status) {
		s.t.Errorf("%s: problem %+v", path, p)
	}
	for _, part := range parts {
		if !strings.Contains(p.Detail, part) {
			s.t.Errorf("%s: detail %q lacks %q", path, p.Detail, part)
		}
	}
	return p
}

var home = domain.Position{Lat: 48.8566, Lon: 2.3522}

// fleet introduces a depot, two idle drones and one in maintenance, three
// orders of which one is held, one mission and one rejected decision.
func (s *served) fleet() {
	s.t.Helper()
	ctx, now := s.t.Context(), time.Now()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.store.Setup(ctx, []domain.Depot{{ID: "DEPOT-1", Name: "Main", Position: home}}, []domain.Warehouse{{ID: "W1", Position: home, ProductTypes: []string{"BLOOD"}}},
		[]domain.Drone{{ID: "D1", HomeDepotID: "DEPOT-1"}, {ID: "D2", HomeDepotID: "DEPOT-1"}, {ID: "D3", HomeDepotID: "DEPOT-1"}}))
	var reports []domain.Telemetry
	for _, id := range []domain.DroneID{"D1", "D2", "D3"} {
		reports = append(reports, domain.Telemetry{DroneID: id, Timestamp: now.Add(-time.Second), Position: home, Battery: 90, Status: domain.DroneIdle})
	}
	reports[2].Status = domain.DroneMaintenance
	for _, err := range s.store.NewTelemetryApplier().Apply(ctx, reports) {
		must(err)
	}
	for _, id := range []domain.OrderID{"O1", "O2", "O3"} {
		must(s.store.IngestOrder(ctx, domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &home, Delivery: domain.Position{Lat: 48.86, Lon: 2.36},
		}}, now))
	}
	must(s.store.HoldOrder(firestoretx.By(ctx, "ann"), "O3", "address in doubt"))
	emutest.IssueFences(s.t, s.clients.Firestore, "1", "DEPOT-1")
	for _, c := range []struct {
		id    domain.DecisionID
		drone domain.DroneID
		want  domain.Outcome
	}{{"DEC-1", "D1", domain.OutcomeApplied}, {"DEC-2", "D3", domain.OutcomeRejected}} {
		decided := time.Now() // after everything that the decision refers to
		entry, err := s.store.AssignMission(ctx, decision(c.id, c.drone, "O1", decided), policy.Delivery{MessageID: "m-" + string(c.id), PublishedAt: decided, ReceivedAt: decided})
		must(err)
		if entry.Outcome != c.want {
			s.t.Fatalf("decision %+v", entry)
		}
	}
}

func decision(id domain.DecisionID, drone domain.DroneID, order domain.OrderID, snapshot time.Time) domain.Decision {
	d := domain.Decision{
		ID: id, CycleID: "C1", Fence: "1", SnapshotTime: snapshot, DroneID: drone, OrderIDs: []domain.OrderID{order},
		Route: []domain.Waypoint{
			{Type: domain.WaypointDepotStart, Position: home},
			{Type: domain.WaypointWarehousePickup, OrderID: order, WarehouseID: "W1", Position: home},
			{Type: domain.WaypointHospitalDelivery, OrderID: order, Position: domain.Position{Lat: 48.86, Lon: 2.36}},
			{Type: domain.WaypointDepotReturn, Position: home},
		},
		EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 3,
	}
	d.PayloadHash = wire.DecisionHash(d)
	return d
}

// F-API-01
func TestAPI_ListsEntitiesByStatus(t *testing.T) {
	s := serve(t)
	s.fleet()
	for id, outcome := range map[domain.CycleID]domain.CycleOutcome{"C1": domain.CyclePublished, "C2": domain.CycleEmpty} {
		if err := s.store.RecordCycle(t.Context(), domain.Cycle{ID: id, DepotID: "DEPOT-1", Outcome: outcome}); err != nil {
			t.Fatal(err)
		}
	}
	var body struct {
		Drones     []entity.Drone
		Orders     []entity.Order
		Missions   []entity.Mission
		Decisions  []entity.Decision
		Cycles     []entity.Cycle
		NextCursor string
	}
	ids := func() string {
		var ids []string
		for _, d := range body.Drones {
			ids = append(ids, string(d.ID))
		}
		for _, o := range body.Orders {
			ids = append(ids, string(o.ID))
		}
		for _, m := range body.Missions {
			ids = append(ids, string(m.ID))
		}
		for _, d := range body.Decisions {
			ids = append(ids, string(d.ID))
		}
		for _, c := range body.Cycles {
			ids = append(ids, string(c.ID))
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct{ path, want string }{
		{"/api/v1/drones", "D1 D2 D3"},
		{"/api/v1/drones?status=MAINTENANCE", "D3"},
		{"/api/v1/drones?status=EMERGENCY", ""},
		{"/api/v1/orders", "O1 O2 O3"},
		{"/api/v1/orders?status=PENDING", "O2 O3"},
		{"/api/v1/orders?status=PENDING&held=true", "O3"},
		{"/api/v1/orders?held=true", "O3"},
		{"/api/v1/missions?status=ACTIVE", "M-DEC-1"},
		{"/api/v1/missions?status=FAILED", ""},
		{"/api/v1/decisions", "DEC-1 DEC-2"},
		{"/api/v1/decisions?outcome=APPLIED", "DEC-1"},
		{"/api/v1/decisions?outcome=REJECTED&reason=DRONE_NOT_IDLE", "DEC-2"},
		{"/api/v1/decisions?reason=STALE_FENCE", ""},
		{"/api/v1/cycles", "C1 C2"},
		{"/api/v1/cycles?outcome=PUBLISHED", "C1"},
		{"/api/v1/cycles?outcome=FAILED", ""},
	} {
		body.Drones, body.Orders, body.Missions, body.Decisions, body.Cycles = nil, nil, nil, nil, nil
		s.get(c.path, http.StatusOK, &body)
		if got := ids(); got != c.want && (c.want != "M-DEC-1" || len(body.Missions) != 1 || body.Missions[0].DecisionID != "DEC-1") {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
}

// cursorOf is the cursor of the page after the one that ended with id.
func cursorOf(collection, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(collection + "\x00" + id))
}

// F-API-01: pages follow one another without gap or repetition.
func TestAPI_PagesThroughACollection(t *testing.T) {
	s := serve(t)
	var drones []domain.Drone
	for i := range 7 {
		drones = append(drones, domain.Drone{ID: domain.DroneID(fmt.Sprintf("D%d", i))})
	}
	if err := s.store.Setup(t.Context(), nil, nil, drones); err != nil {
		t.Fatal(err)
	}
	var seen []string
	after := ""
	for range 3 {
		var page struct {
			Drones     []entity.Drone
			NextCursor string
		}
		s.get("/api/v1/drones?limit=3"+after, http.StatusOK, &page)
		for _, d := range page.Drones {
			seen = append(seen, string(d.ID))
		}
		if page.NextCursor == "" {
			break
		}
		after = "&cursor=" + page.NextCursor
	}
	if got := strings.Join(seen, " "); got != "D0 D1 D2 D3 D4 D5 D6" {
		t.Errorf("pages hold %s", got)
	}
	// The last page has no next one, even if it is full.
	for path, want := range map[string]string{"?limit=7": "", "?limit=6": "D5", fmt.Sprintf("?limit=%d", httpapi.MaxLimit): "", "?limit=3&cursor=" + cursorOf("drones", "D3"): "", "?cursor=" + cursorOf("drones", "D6"): ""} {
		var page struct{ NextCursor string }
		if want != "" {
			want = cursorOf("drones", want)
		}
		if s.get("/api/v1/drones"+path, http.StatusOK, &page); page.NextCursor != want {
			t.Errorf("%s: the next page begins after %q, want %q", path, page.NextCursor, want)
		}
	}
}

// F-API-01: a malformed document does not hide the others.
func TestAPI_NamesMalformedDocuments(t *testing.T) {
	s := serve(t)
	s.fleet()
	if _, err := s.clients.Firestore.Doc("drones/D2").Set(t.Context(), map[string]any{"status": 7}); err != nil {
		t.Fatal(err)
	}
	var page struct {
		Drones    []entity.Drone
		Malformed []string
	}
	s.get("/api/v1/drones", http.StatusOK, &page)
	if len(page.Drones) != 2 || len(page.Malformed) != 1 || !strings.Contains(page.Malformed[0], "drones/D2: field status") {
		t.Errorf("page %+v", page)
	}
	s.refused(http.MethodGet, "/api/v1/drones/D2", http.StatusInternalServerError, "drones/D2: field status")
}

// F-API-01, F-DLQ-01: a malformed depot does not affect other depots' snapshots, and the
// error for its own snapshot names the document.
func TestAPI_ServesSnapshotBesideAMalformedDepot(t *testing.T) {
	s := serve(t)
	broken := s.clients.Firestore.Doc("depots/BROKEN")
	if _, err := broken.Set(t.Context(), map[string]any{"position": "nowhere"}); err != nil {
		t.Fatal(err)
	}
	s.refused("GET", "/api/v1/optimizer/snapshot", http.StatusInternalServerError, "depots/BROKEN: field position")
	s.fleet()
	for _, path := range []string{"/api/v1/optimizer/snapshot", "/api/v1/optimizer/snapshot?depot=DEPOT-1"} {
		var snap struct{ Depot struct{ ID string } }
		if s.get(path, http.StatusOK, &snap); snap.Depot.ID != "DEPOT-1" {
			t.Errorf("%s is of depot %q", path, snap.Depot.ID)
		}
	}
	s.refused("GET", "/api/v1/optimizer/snapshot?depot=BROKEN", http.StatusInternalServerError, "depots/BROKEN: field position")
}

// F-API-01: a page may end with a foreign document whose id no entity can have.
func TestAPI_PagesPastForeignIDs(t *testing.T) {
	s := serve(t)
	s.fleet()
	strange := "D2" + strings.Repeat("x", 200)
	if _, err := s.clients.Firestore.Doc("drones/"+strange).Set(t.Context(), map[string]any{"note": "a test"}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	after := ""
	for range 5 {
		var page struct {
			Drones     []entity.Drone
			NextCursor string
		}
		s.get("/api/v1/drones?limit=1"+after, http.StatusOK, &page)
		for _, d := range page.Drones {
			seen = append(seen, string(d.ID))
		}
		if page.NextCursor == "" {
			break
		}
		after = "&cursor=" + page.NextCursor
	}
	if got := strings.ReplaceAll(strings.Join(seen, " "), strange+" ", ""); got != "D1 D2 D3" {
		t.Errorf("pages hold %s", got)
	}
}

// F-API-01
func TestAPI_ShowsSingleEntities(t *testing.T) {
	s := serve(t)
	s.fleet()
	var order entity.Order
	s.get("/api/v1/orders/O3", http.StatusOK, &order)
	if !order.Held || order.HeldReason != "address in doubt" || order.Priority != "HIGH" || order.Deadline == nil {
		t.Errorf("order %+v", order)
	}
	var drone entity.Drone
	s.get("/api/v1/drones/D1", http.StatusOK, &drone)
	if drone.Status != domain.DroneMoving || drone.CurrentMissionID == "" {
		t.Errorf("drone %+v", drone)
	}
	var mission entity.Mission
	s.get("/api/v1/missions/"+string(drone.CurrentMissionID), http.StatusOK, &mission)
	if len(mission.Route) != 4 || mission.Route[1].RelatedWarehouseID != "W1" || mission.DecisionID != "DEC-1" {
		t.Errorf("mission %+v", mission)
	}
	var dec entity.Decision
	s.get("/api/v1/decisions/DEC-2", http.StatusOK, &dec)
	if dec.Outcome != domain.OutcomeRejected || dec.Reason != string(policy.ReasonDroneNotIdle) || dec.MessageID != "m-DEC-2" {
		t.Errorf("decision %+v", dec)
	}
}

// F-API-01: with the document's names and values.
func TestAPI_ShowsEveryFieldOfADocument(t *testing.T) {
	s := serve(t)
	s.fleet()
	// These fill the fields that the fleet leaves empty; no two values are equal.
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC) }
	point := &latlng.LatLng{Latitude: 48.5, Longitude: 2.5}
	stop := map[string]any{"type": "HOSPITAL_DELIVERY", "position": point, "relatedOrderId": "O1", "relatedWarehouseId": "W1", "eta": at(1), "chargeToPercent": 90.5, "waitUntil": at(2)}
	for _, c := range []struct {
		path   string
		entity any
		rest   map[string]any
	}{
		{"drones/D1", entity.Drone{}, map[string]any{
			"position": point, "batteryPercentage": 81.5, "speedKmh": 51.5, "missionAcked": true, "namedRevision": 2, "supportsAmendments": true, "supportsStandby": true, "missionMoved": true,
			"lastUpdate": at(1), "seenAt": at(2), "freeAfter": at(3), "idleSince": at(4), "faultSince": at(5), "ghostRevokedAt": at(6), "parkedSince": at(8), "homebound": true, "homeboundSince": at(9),
			"emergencyLatched": true, "grounded": true, "groundedReason": "rotor", "ghostMissionId": "M-2", "failedMissions": []any{map[string]any{"missionId": "M-1", "failedAt": at(7)}},
			"shortName": "one", "batteryCapacityMah": 5000, "consumptionPerKm": 1.5, "consumptionPerKmKg": 0.25, "maxFlightTimeMinutes": 40, "payloadCapacityKg": 2.5, "chargeRate": 12.5, "revision": 7,
			"typeId": "M30", "registrationMark": "F-1", "serialNumber": "ABCD1Z", "remoteId": "R", "coldBox": map[string]any{"minCelsius": 2.5, "maxCelsius": 8.5},
			"due": []any{map[string]any{"item": "rotor", "at": at(10), "flightHours": 31.5, "landings": 32, "everyDays": 33, "everyFlightHours": 34.5, "everyLandings": 35}},
			"maintained": []any{map[string]any{
				"item": "motor", "done": map[string]any{"at": at(11), "flightHours": 41.5, "landings": 42}, "met": map[string]any{"at": at(12), "flightHours": 43.5, "landings": 44},
			}},
			"minBatteryHealth": 80.5, "ownProperties": []any{"due"}, "registeredAt": at(13), "registeredBy": "ann", "unregistered": true, "retiredAt": at(14),
			"flightSeconds": 51, "landings": 52, "batteryHealth": 91.5, "reportedSerial": "ABCD1Y", "countsStops": true, "implausible": "claimed 3 stops", "implausibleAt": at(10), "linkLostAt": at(15),
		}},
		{"orders/O1", entity.Order{}, map[string]any{
			"pickupLocation": &latlng.LatLng{Latitude: 48.75, Longitude: 2.75}, "deliveryLocation": point, "packageWeightKg": 1.5, "requiresColdChain": true,
			"requesterId": "R1", "createdAt": at(1), "deadline": at(2), "pendingSince": at(3), "deliveredAt": at(4), "contentPublishedAt": at(5),
			"attempts": 2, "held": true, "heldReason": "doubt", "late": true, "warning": "out_of_range: too far", "releasing": true, "pinnedDroneId": "D1", "forbiddenDroneIds": []any{"D2"}, "revision": 7,
			"planningDepotId": "DEPOT-1", "planningSince": at(6), "handedOverBy": []any{"DEPOT-2"},
		}},
		{"missions/M-DEC-1", entity.Mission{}, map[string]any{
			"failureReason": "STALLED", "reachedStops": 2, "startTime": at(1), "endTime": at(2), "commandExpiresAt": at(3), "commandPublishedAt": at(4),
			"revokePublishedAt": at(5), "commandPending": true, "revokePending": true, "recalledAt": at(7), "recallReason": "storm", "fence": "000000000000017", "revision": 7, "route": []any{stop},
			"sightings": []any{map[string]any{"stop": 1, "at": at(6), "claimed": true}}, "droppedStops": []any{2},
			"routeRevision": 3, "amendedAt": at(8), "earlierRoutes": []any{map[string]any{"revision": 2, "shared": 1}},
			"amendment": map[string]any{
				"revision": 4, "route": []any{stop}, "droppedStops": []any{5}, "addedOrderIds": []any{"O3"}, "releasedOrderIds": []any{"O4"},
				"estimatedBatteryConsumption": 9.5, "estimatedDurationMinutes": 10.5, "decisionId": "DEC-2", "decidedAt": at(9),
			},
		}},
		{"decisions/DEC-1", entity.Decision{}, map[string]any{
			"reason": "BAD_ROUTE", "detail": "a stop too many", "fence": "000000000000017", "depotId": "DEPOT-1",
			"snapshotTime": at(1), "publishedAt": at(2), "receivedAt": at(3), "appliedAt": at(4),
			"amendsMissionId": "M-9", "amendsRevision": 2, "revision": 3, "addedOrderIds": []any{"O3"}, "releasedOrderIds": []any{"O4"},
		}},
		{"cycles/C1", entity.Cycle{}, map[string]any{
			"depotId": "DEPOT-1", "depotIds": []any{"DEPOT-1", "DEPOT-2"}, "outcome": "PUBLISHED", "detail": "a test", "fence": "000000000000017", "holder": "h", "objective": "none",
			"snapshotTime": at(1), "startedAt": at(2), "endedAt": at(3), "drones": 1, "orders": 2, "missions": 3, "amended": 2, "exchanged": 6, "flights": 5, "assigned": 4, "handedOver": 6, "standby": 7,
			"readMs": 5, "solveMs": 6, "publishMs": 7, "distanceKm": 8.5, "withoutOrders": 23, "leftOut": []any{"order O9"},
			"unserved": []any{map[string]any{
				"orderId": "O2", "reason": "out_of_range", "freeDrones": 11, "busyDrones": 12, "notAllowed": 22, "warehouse": 13, "payload": 14, "coldChain": 15, "range": 16,
				"battery": 17, "taken": 18, "reserve": 19, "unused": 20, "deadline": 21,
			}},
		}},
	} {
		doc := s.clients.Firestore.Doc(c.path)
		if _, err := doc.Set(t.Context(), c.rest, firestore.MergeAll); err != nil {
			t.Fatal(err)
		}
		snap, err := doc.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"id": doc.ID}
		for field, value := range snap.Data() {
			internal := slices.Contains([]string{"missionRevision", "bindingChanges", "dueAt", "dueArea", "expireAt", "shard", "track"}, field) ||
				field == "homeDepotId" && strings.HasPrefix(c.path, "missions/")
			if !internal {
				want[field] = asJSON(value)
			}
		}
		var shown map[string]any
		s.get("/api/v1/"+c.path, http.StatusOK, &shown)
		delete(shown, "summary") // of an order; it follows from the document
		if unconfirmed, of := shown["unconfirmed"]; of {
			want["unconfirmed"] = unconfirmed // of a mission, likewise
		}
		if foretold, of := shown["foretold"]; of {
			want["foretold"] = foretold // of a drone, and from the time
		}
		if !reflect.DeepEqual(shown, want) {
			t.Errorf("%s is shown as\n%v, want\n%v", c.path, shown, want)
		}
		if fields := reflect.TypeOf(c.entity).NumField(); len(shown) != fields {
			t.Errorf("%s has %d fields of the %d it may have; fill the others", c.path, len(shown), fields)
		}
	}
}

// F-ORD-05, F-API-01: a waiting order shows why it waits, with the counts of the latest
// cycle; paging through the orders reads that cycle once.
func TestAPI_SaysWhyAnOrderWaits(t *testing.T) {
	s := serve(t)
	s.fleet()
	seen := time.Now()
	err := s.store.RecordCycle(t.Context(), domain.Cycle{
		ID: "C1", DepotID: "DEPOT-1", Outcome: domain.CycleEmpty, StartedAt: seen, SnapshotTime: seen, Orders: 1,
		Unserved: []domain.UnservedOrder{{OrderID: "O2", Reason: "no_drone_free", Obstacles: domain.Obstacles{Free: 1, Busy: 1, Battery: 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"depotId": "DEPOT-1", "cycleId": "C1", "snapshotTime": seen.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano),
		"reason": "no_drone_free", "freeDrones": 1.0, "busyDrones": 1.0, "battery": 1.0,
	}
	check := func(order map[string]any) {
		t.Helper()
		if waiting, waits := order["waiting"]; order["id"] == "O2" && !reflect.DeepEqual(waiting, []any{want}) || order["id"] != "O2" && waits {
			t.Errorf("order %v waits for %v, want %v", order["id"], waiting, want)
		}
	}
	before := s.clients.Meter.FirestoreByOperation()["http"]
	path, seenOrders := "/api/v1/orders?limit=1", 0
	for range 3 {
		var answer struct {
			Orders     []map[string]any
			NextCursor string
		}
		s.get(path, http.StatusOK, &answer)
		for _, order := range answer.Orders {
			seenOrders++
			check(order)
		}
		path = "/api/v1/orders?limit=1&cursor=" + answer.NextCursor
	}
	var order map[string]any
	s.get("/api/v1/orders/O2", http.StatusOK, &order)
	check(order)
	s.get("/api/v1/orders/O3", http.StatusOK, &order)
	if cost := s.clients.Meter.FirestoreByOperation()["http"].RPCs - before.RPCs; seenOrders != 3 || cost != 5+2 {
		t.Errorf("%d orders for %d RPCs, want 3 for 7", seenOrders, cost)
	}
}

// asJSON is a document's value as an entity shows it.
func asJSON(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case *latlng.LatLng:
		return map[string]any{"lat": v.GetLatitude(), "lon": v.GetLongitude()}
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = asJSON(e)
		}
		return list
	case map[string]any:
		shown := map[string]any{}
		for field, e := range v {
			shown[field] = asJSON(e)
		}
		return shown
	}
	return value
}

// F-API-01: a number that JSON cannot represent hides neither the rest of its entity nor
// other entities.
func TestAPI_ShowsNaNAndInfinity(t *testing.T) {
	s := serve(t)
	s.fleet()
	_, err := s.clients.Firestore.Doc("drones/D2").Set(t.Context(), map[string]any{
		"batteryPercentage": math.NaN(), "speedKmh": math.Inf(1), "consumptionPerKm": math.Inf(-1),
	}, firestore.MergeAll)
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Drones []map[string]any }
	s.get("/api/v1/drones", http.StatusOK, &page)
	if len(page.Drones) != 3 {
		t.Fatalf("page %v", page)
	}
	d := page.Drones[1]
	if d["id"] != "D2" || d["batteryPercentage"] != "NaN" || d["speedKmh"] != "Infinity" || d["consumptionPerKm"] != "-Infinity" {
		t.Errorf("drone %v", d)
	}
}

// F-API-01: an error names the parameter and the fix.
func TestAPI_NamesParameterAndFix(t *testing.T) {
	s := serve(t)
	for _, c := range []struct {
		method, path string
		status       int
		parts        []string
	}{
		{"GET", "/api/v1/drones?status=FLYING", 400, []string{`status is "FLYING"`, "IDLE, RESERVED", "UNKNOWN"}},
		{"GET", "/api/v1/orders?status=idle", 400, []string{`status is "idle"`, "PENDING, SOLVING", "or CANCELLED"}},
		{"GET", "/api/v1/orders?held=maybe", 400, []string{"held", "give true"}},
		{"GET", "/api/v1/orders?held=false", 400, []string{`held is "false"; give true, or leave it out for all`}},
		{"GET", "/api/v1/missions?status=", 400, []string{"status", "ACTIVE, COMPLETED or FAILED"}},
		{"GET", "/api/v1/decisions?outcome=MAYBE", 400, []string{"APPLIED or REJECTED"}},
		{"GET", "/api/v1/decisions?reason=BAD_LUCK", 400, []string{"STALE_FENCE", "OVER_CAPACITY"}},
		{"GET", "/api/v1/decisions?outcome=APPLIED&reason=BAD_ROUTE", 400, []string{"reason goes with outcome REJECTED"}},
		{"GET", "/api/v1/drones?limit=0", 400, []string{`limit is "0"; give 1 to 1000`}},
		{"GET", "/api/v1/drones?limit=1001", 400, []string{"limit"}},
		{"GET", "/api/v1/drones?limit=ten", 400, []string{"limit"}},
		{"GET", "/api/v1/drones?cursor=a/b", 400, []string{`cursor is "a/b"; give nextCursor of a page of drones`}},
		{"GET", "/api/v1/drones?cursor=" + cursorOf("orders", "A"), 400, []string{"cursor is"}},
		{"GET", "/api/v1/drones?cursor=" + cursorOf("drones", "a/b"), 400, []string{"cursor is"}},
		{"GET", "/api/v1/drones?status=X&limit=0", 400, []string{"status is", "limit is"}},
		{"GET", "/api/v1/drones?stauts=IDLE", 400, []string{"stauts", "valid parameters: status, legacy, limit, cursor"}},
		{"GET", "/api/v1/drones?limit=1&limit=2", 400, []string{"limit is given 2 times"}},
		{"GET", "/api/v1/drones?limit=%zz", 400, []string{"query cannot be parsed"}},
		{"GET", "/api/v1/drones/none", 404, []string{"drones none: not found"}},
		{"GET", "/api/v1/drones/a%2Fb", 400, []string{"id contains"}},
		{"GET", "/api/v1/drones/" + strings.Repeat("x", 129), 400, []string{"129 bytes"}},
		{"GET", "/api/v2/drones", 404, []string{"/api/v1/drones", "/metrics"}},
		{"POST", "/api/v1/drones", 405, []string{"POST", "use GET"}},
		{"DELETE", "/healthz", 405, nil},
		{"GET", "/api/v1/optimizer/snapshot", 404, []string{"no depot"}},
	} {
		p := s.refused(c.method, c.path, c.status, c.parts...)
		if c.status == 400 && !strings.Contains(c.path, "%zz") && len(p.Parameters) == 0 {
			t.Errorf("%s: no parameters in %+v", c.path, p)
		}
	}
	for range 3 { // an answer must not change the next one
		if resp := s.do("PUT", "/readyz", 405, nil); resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("405 allows %q", resp.Header.Get("Allow"))
		}
	}
	s.do("HEAD", "/api/v1/drones", 200, nil)
}

// F-API-01, F-OPT-02
func TestAPI_ServesTheSnapshotOfACycle(t *testing.T) {
	s := serve(t)
	s.fleet()
	resp := s.get("/api/v1/optimizer/snapshot", http.StatusOK, nil)
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	var raw json.RawMessage
	s.get("/api/v1/optimizer/snapshot?depot=DEPOT-1", http.StatusOK, &raw)
	snap, err := wire.DecodeSnapshot(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Drones) != 1 || snap.Drones[0].ID != "D2" || len(snap.Orders) != 1 || snap.Orders[0].ID != "O2" || len(snap.Warehouses) != 1 || snap.Depot.ID != "DEPOT-1" {
		t.Errorf("snapshot %+v", snap)
	}
	if snap.CycleID == "" || snap.ReadTime.IsZero() || snap.Fence != "" {
		t.Errorf("session %q, read at %s, fence %q", snap.CycleID, snap.ReadTime, snap.Fence)
	}
	s.refused("GET", "/api/v1/optimizer/snapshot?depot=DEPOT-9", http.StatusNotFound, "depot does not exist; give DEPOT-1")
	if err := s.store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-2", Position: home}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	s.refused("GET", "/api/v1/optimizer/snapshot", http.StatusBadRequest, "depot is missing; give DEPOT-1 or DEPOT-2")
}

// F-API-01: every endpoint that reads costs what its godoc says.
func TestAPI_CostsAsDocumented(t *testing.T) {
	s := serve(t)
	s.fleet()
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	if err := s.store.RecordCycle(t.Context(), domain.Cycle{ID: "C9", DepotID: "DEPOT-9", Outcome: domain.CycleEmpty}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.RecordReplay(t.Context(), domain.Replay{
		ID: domain.ReplayIDFor("orders", "4711"), Topic: "orders", MessageID: "4711", NewMessageIDs: []string{"4712"}, Reason: "INVALID", ReplayedAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	untested := map[string]bool{}
	for _, e := range s.api.Endpoints() {
		untested[e.Path] = e.Method == http.MethodGet
	}
	delete(untested, "/api/v1/stream") // see TestStream_CostsNothingWhileNobodyLooks
	for _, c := range []struct {
		path        string
		rpcs, reads int64
	}{
		{"/api/v1/snapshot?at=" + url.QueryEscape(time.Now().Format(time.RFC3339Nano)), 9, 3 + 3 + 1 + 1 + 1 + 2},                                                                     // drones, orders, mission, depot, warehouse, decisions
		{"/api/v1/replay?from=" + url.QueryEscape(time.Now().Format(time.RFC3339Nano)) + "&to=" + url.QueryEscape(time.Now().Format(time.RFC3339Nano)), 9 + 2, 3 + 3 + 1 + 1 + 1 + 2}, // the same, and no event
		{"/api/v1/orders/O2/explanation", 1 + 10, 1 + 3 + 3 + 1 + 1 + 1 + 2},                                                                                                          // the order, and the same
		{"/api/v1/orders/O2/candidates", 1 + 10, 1 + 3 + 3 + 1 + 1 + 1 + 2},
		{"/api/v1/drones?limit=1", 1, 2},
		{"/api/v1/orders?status=ASSIGNED", 1, 1},                            // none waits
		{"/api/v1/orders", 1 + 1 + 1, 3 + 1},                                // the page, the depot, and its latest cycle if there is one
		{"/api/v1/orders?limit=1&cursor=" + cursorOf("orders", "O1"), 1, 2}, // the same cycle again
		{"/api/v1/orders/O2", 1, 1},
		{"/api/v1/orders/O1", 2, 2}, // with its mission
		{"/api/v1/missions", 1, 1},
		{"/api/v1/decisions", 1, 2},
		{"/api/v1/cycles", 1, 1},
		{"/api/v1/depots?limit=1", 1, 1},
		{"/api/v1/drone-types?limit=1", 1, 0},
		{"/api/v1/warehouses", 1, 1},
		{"/api/v1/drones/D1", 1, 1},
		{"/api/v1/missions/M-DEC-1", 1, 1},
		{"/api/v1/decisions/DEC-1", 1, 1},
		{"/api/v1/cycles/C9", 1, 1},
		{"/api/v1/drones/D1/story", 4, 1 + 5 + 1},
		{"/api/v1/orders/O2/story", 5, 1 + 1 + 1},
		{"/api/v1/missions/M-DEC-1/story", 3, 1 + 3 + 1},
		{"/api/v1/decisions/DEC-1/story", 3, 2 + 3},
		{"/api/v1/cycles/C9/story", 3, 1},
		{"/api/v1/depots/DEPOT-1/story", 3, 1 + 3},
		{"/api/v1/warehouses/W1/story", 3, 1 + 1},
		{"/api/v1/deadletters", 0, 0},
		{"/api/v1/deadletters/4711/story", 2 * 2, 2 * 8}, // the message, and the one that it was replayed as
		{"/api/v1/audit/person?name=ann", 9, 1},          // she held an order
		{"/api/v1/handover?since=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)), 9 + 10, 2 + 3 + 3 + 1 + 1 + 1 + 2}, // what ann did, a replay; the fleet
		{"/api/v1/locks", 2, 1},
		{"/api/v1/locks/show?key=free", 1, 1},
		{"/api/v1/session", 0, 0},
		{"/api/v1/optimizer/snapshot", 7, 2 + 1 + 1 + 1}, // the depot twice, a drone, an order, a warehouse
		{"/api/openapi.json", 0, 0},
		{"/healthz", 0, 0},
		{"/metrics", 0, 0},
		{"/readyz", 5, 5},
		{"/readyz", 0, 0}, // the same report again
	} {
		for path := range untested {
			before, after, _ := strings.Cut(path, "{id}")
			if called, _, _ := strings.Cut(c.path, "?"); called == path || before != path && strings.HasPrefix(called, before) && strings.HasSuffix(called, after) {
				delete(untested, path)
			}
		}
		before := s.clients.Meter.FirestoreByOperation()["http"]
		resp := s.get(c.path, http.StatusOK, nil)
		after := s.clients.Meter.FirestoreByOperation()["http"]
		if rpcs, reads := after.RPCs-before.RPCs, after.Reads-before.Reads; rpcs > c.rpcs || reads != c.reads || after.Writes != 0 {
			t.Errorf("%s: %d RPCs and %d reads, want at most %d and %d", c.path, rpcs, reads, c.rpcs, c.reads)
		}
		if c.path != "/metrics" && resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached", c.path)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s lacks X-Content-Type-Options", c.path)
		}
	}
	for path, reads := range untested {
		if reads {
			t.Errorf("the cost of GET %s is not tested; add a row", path)
		}
	}
}

// F-API-01
func TestReadiness_NamesEachCheck(t *testing.T) {
	beside(t)
	s := serve(t)
	var report httpapi.Readiness
	s.get("/readyz", http.StatusServiceUnavailable, &report)
	if c := report.Checks["pubsub"]; c.Status != httpapi.CheckFailing || !strings.Contains(c.Detail, "telemetry-statemanager does not exist") {
		t.Errorf("without topics: %+v", report)
	}
	if c := report.Checks["firestore"]; c.Status != httpapi.CheckOK {
		t.Errorf("Firestore: %+v", c)
	}
	if c := report.Checks["clock"]; c.Status == "" || c.OffsetMs == nil || c.UncertaintyMs == nil {
		t.Errorf("clock: %+v", c)
	}
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	emutest.Eventually(t, "ready", func() error {
		resp, err := s.client.Get(s.url + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
	s.stopping(errors.New("told to"))
	s.get("/readyz", http.StatusServiceUnavailable, &report)
	if c := report.Checks["process"]; c.Status != httpapi.CheckFailing || !strings.HasSuffix(c.Detail, "(told to)") {
		t.Errorf("while stopping: %+v", report)
	}
	s.get("/healthz", http.StatusOK, nil)
}

// F-API-01: a probe that gives up early is not reported as an outage.
func TestReadiness_OutlivesAProbeThatGivesUp(t *testing.T) {
	s := serve(t)
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, "http://localhost/readyz", nil))
	if w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// F-API-01
func TestReadiness_NamesSubscriptionsThatReceiveNothing(t *testing.T) {
	s := serve(t)
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	name := func(kind, id string) string {
		return fmt.Sprintf("projects/%s/%s/%s", s.clients.PubSub.Project(), kind, id)
	}
	subscription := func(topic string) string { return name("subscriptions", pubsubio.Subscription(topic)) }
	if err := s.clients.PubSub.SubscriptionAdminClient.DeleteSubscription(t.Context(), &pubsubpb.DeleteSubscriptionRequest{
		Subscription: subscription(pubsubio.TopicTelemetry),
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.clients.PubSub.TopicAdminClient.DeleteTopic(t.Context(), &pubsubpb.DeleteTopicRequest{
		Topic: name("topics", pubsubio.TopicOrders),
	}); err != nil {
		t.Fatal(err)
	}
	_, err := s.clients.PubSub.TopicAdminClient.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{
		Subscription: subscription(pubsubio.TopicDecisions),
	})
	if status.Code(err) == codes.Unimplemented { // by the official emulator
		err = s.clients.PubSub.TopicAdminClient.DeleteTopic(t.Context(), &pubsubpb.DeleteTopicRequest{
			Topic: name("topics", pubsubio.TopicDecisions),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	var report httpapi.Readiness
	s.get("/readyz", http.StatusServiceUnavailable, &report)
	for _, want := range []string{
		"telemetry-statemanager does not exist", "orders-statemanager has lost its topic", "decisions-statemanager has lost its topic",
	} {
		if c := report.Checks["pubsub"]; c.Status != httpapi.CheckFailing || !strings.Contains(c.Detail, want) {
			t.Errorf("%+v, want %q", c, want)
		}
	}
}

// F-API-01: an outage fails a check instead of hanging the request.
func TestReadiness_FailsWhileServicesAreDown(t *testing.T) {
	beside(t)
	hosts := emutest.Hosts(t)
	const dead = "127.0.0.1:1" // nothing listens there
	hosts.FirestoreHost, hosts.PubSubHost = dead, dead
	s := serveOn(t, hosts)
	var report httpapi.Readiness
	s.get("/readyz", http.StatusServiceUnavailable, &report)
	for _, name := range []string{"firestore", "pubsub", "clock"} {
		if c := report.Checks[name]; c.Status != httpapi.CheckFailing || c.Detail == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	s.get("/healthz", http.StatusOK, nil)
}

// F-OBS-01
func TestAPI_ServesMetrics(t *testing.T) {
	s := serve(t)
	s.clients.Meter.Settle(meter.Settlement{Kind: "telemetry", Outcome: meter.Applied})
	s.clients.Meter.Latency("telemetry").Record(3 * time.Millisecond)
	s.get("/api/v1/drones", http.StatusOK, nil)
	resp, err := s.client.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dronefleet_messages_settled_total{kind="telemetry",outcome="applied",reason=""} 1`,
		`dronefleet_publish_to_commit_seconds_count{kind="telemetry"} 1`,
		`dronefleet_firestore_rpcs_total{method="RunQuery",operation="http"} 1`,
		"go_goroutines", "go_build_info",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics lack %s:\n%s", want, text)
		}
	}
}

func TestListen_NamesAddressesItCannotUse(t *testing.T) {
	first, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	addr := strings.TrimPrefix(first.URL(), "http://")
	for _, bad := range []struct{ addr, want string }{{addr, "in use"}, {"8080", "give host:port"}, {"256.0.0.1:1", "256.0.0.1:1"}} {
		_, err := httpapi.Listen(bad.addr)
		if err == nil || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Listen(%q): %v", bad.addr, err)
		}
	}
}
