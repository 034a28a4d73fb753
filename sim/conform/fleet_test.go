package conform

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/api"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// examLimit bounds an examination in these tests; they end sooner.
const examLimit = 20 * time.Second

// fleetConfig are embedded servers whose time runs twenty times as fast.
func fleetConfig(t *testing.T) FleetConfig {
	t.Helper()
	clock, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 20})
	if err != nil {
		t.Fatal(err)
	}
	fs := firestoreemu.StartT(t, firestoreemu.Options{Clock: clock, Indexes: deploy.FirestoreIndexes})
	ps := pubsubemu.StartT(t, pubsubemu.Options{PublishTime: clock.Now})
	clients := emutest.Connect(t, connect.Config{FirestoreHost: fs.Addr(), PubSubHost: ps.Addr()})
	return FleetConfig{Clients: clients, Clock: clock, Log: emutest.Log(t)}
}

// closing closes an examination at the end of a test.
func closing(t *testing.T, x interface{ Close() error }) {
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

// mutation changes what an optimizer publishes.
type mutation func([]domain.Decision) []domain.Decision

// plan runs cycles of the fleet's own optimizer, with what it publishes changed, until ctx ends;
// with a number, so many of them.
func (x *OptimizerExam) plan(cycles int, change mutation, key func(domain.Decision) string) func(context.Context) error {
	return func(ctx context.Context) error {
		publish := func(ctx context.Context, decisions []domain.Decision) []error {
			errs := make([]error, len(decisions))
			for _, d := range change(slices.Clone(decisions)) {
				data, attrs, err := wire.EncodeDecision(d, wire.Protobuf)
				if err == nil {
					_, err = x.publisher.Publish(ctx, pubsubio.TopicDecisions, data, attrs, key(d)).Wait(ctx)
				}
				if err != nil {
					return []error{err}
				}
			}
			return errs
		}
		runner := dispatch.NewRunner(x.manager.Store, x.manager.Locks, publish, uuid.NewString, x.cfg.Clock,
			dispatch.Config{Iterations: 50, SolveLimit: time.Second, NoLearning: true, NoAdvance: true, Immediate: true}, x.cfg.Log, x.cfg.Clients.Meter)
		for n := 0; ctx.Err() == nil && (cycles == 0 || n < cycles); n++ {
			if _, err := runner.Once(ctx, Depot, nil); err != nil && ctx.Err() == nil {
				return err
			}
			if cycles == 0 {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		}
		return nil
	}
}

func unchanged(ds []domain.Decision) []domain.Decision { return ds }
func droneKey(d domain.Decision) string                { return string(d.DroneID) }

// each changes every decision.
func each(change func(*domain.Decision)) mutation {
	return func(ds []domain.Decision) []domain.Decision {
		for i := range ds {
			ds[i].Route = slices.Clone(ds[i].Route)
			change(&ds[i])
		}
		return ds
	}
}

// only keeps a decision with an order, changed.
func only(order domain.OrderID, change func(*domain.Decision)) mutation {
	return func(ds []domain.Decision) []domain.Decision {
		return slices.DeleteFunc(each(func(d *domain.Decision) {
			if slices.Contains(d.OrderIDs, order) {
				change(d)
			}
		})(ds), func(d domain.Decision) bool { return !slices.Contains(d.OrderIDs, order) })
	}
}

// brokenOptimizers break one rule each, in an order in which those whose decisions are applied come
// last.
var brokenOptimizers = []struct {
	rule   string
	change mutation
	key    func(domain.Decision) string
}{
	{"O-01", each(func(d *domain.Decision) { d.EstimatedDurationMinutes = -1 }), nil},
	{"O-03", each(func(d *domain.Decision) { d.Fence = "000000000999999" }), nil},
	{"O-04", each(func(d *domain.Decision) { d.SnapshotTime = d.SnapshotTime.Add(-time.Hour) }), nil},
	{"O-05", each(func(d *domain.Decision) { d.DroneID = droneGrounded }), nil},
	{"O-06", each(func(d *domain.Decision) { d.EstimatedBatteryConsumption = 90 }), nil},
	{"O-07", each(func(d *domain.Decision) { d.OrderIDs = []domain.OrderID{orderHeld} }), nil},
	{"O-08", only(orderPinned, func(d *domain.Decision) { d.DroneID = goodDrone(0) }), nil},
	{"O-09", each(func(d *domain.Decision) { // it does not pick up
		d.Route = slices.DeleteFunc(d.Route, func(w domain.Waypoint) bool { return w.Type == domain.WaypointWarehousePickup })
	}), nil},
	{"O-10", each(func(d *domain.Decision) {
		for i := range d.Route {
			d.Route[i].Position.Lat += 0.01
		}
	}), nil},
	{"O-11", only(orderHeavy, func(d *domain.Decision) { d.DroneID = droneSmall }), nil},
	{"O-12", each(func(d *domain.Decision) { d.AmendsMissionID, d.AmendsRevision = "M-NONE", 1 }), nil},
	{"O-13", func(ds []domain.Decision) []domain.Decision {
		d := ds[0]
		d.DroneID, d.OrderIDs = droneOld, nil
		d.Route = []domain.Waypoint{{Type: domain.WaypointWait, Position: d.Route[len(d.Route)-1].Position, WaitUntil: d.SnapshotTime.Add(time.Hour)}}
		return []domain.Decision{d}
	}, nil},
	{"O-15", func([]domain.Decision) []domain.Decision { return nil }, nil},
	{"O-02", each(func(d *domain.Decision) { d.ID = "EVERY-DECISION" }), nil},
	{"O-14", unchanged, func(domain.Decision) string { return "" }},
}

// F-KIT-01: for each rule of optimizers there is one that breaks it, and the kit finds it; then the
// fleet's own serves what is left, and keeps every rule.
func TestOptimizer_CatchesABrokenOneForEachRule(t *testing.T) {
	t.Parallel()
	x, err := StartOptimizer(t.Context(), fleetConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	tried := map[string]bool{}
	for _, o := range brokenOptimizers {
		tried[o.rule] = true
		key := o.key
		if key == nil {
			key = droneKey
		}
		s, err := x.Examine(t.Context(), examLimit, x.plan(1, o.change, key))
		if err != nil {
			t.Fatalf("%s: %v", o.rule, err)
		}
		if verdictOf(s, o.rule) != Broken {
			t.Errorf("%s is %s:\n%s", o.rule, verdictOf(s, o.rule), printed(s))
		}
		t.Logf("%s: the kit finds %v", o.rule, s.Broken())
	}
	for _, r := range api.TheRules().Optimizers {
		if !tried[r.ID] {
			t.Errorf("no optimizer breaks %s", r.ID)
		}
	}
}

// F-KIT-01: the fleet's own optimizer passes.
func TestOptimizer_PassesACorrectOne(t *testing.T) {
	t.Parallel()
	x, err := StartOptimizer(t.Context(), fleetConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	s, err := x.Examine(t.Context(), examLimit, x.plan(0, unchanged, droneKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Results {
		if r.Verdict != Kept && r.ID != "O-12" && r.ID != "O-13" { // it may have no occasion
			t.Errorf("%s is %s: %q %s", r.ID, r.Verdict, r.Findings, r.Why)
		}
	}
}

// hospital is one that a test plays.
type hospital struct {
	*HospitalExam
	t *testing.T
}

// request is an order that any fleet of the reference world can serve.
func (h hospital) request(id domain.OrderID) domain.OrderRequest {
	return domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "MEDICINE", WeightKg: 1, RequesterID: "HOSP-1", Delivery: h.world.Hospitals[7].Position,
	}}
}

func (h hospital) orders(ctx context.Context, requests ...domain.OrderRequest) error {
	for _, r := range requests {
		if err := h.order(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// assigned waits until an order has a mission.
func (h hospital) assigned(ctx context.Context, id domain.OrderID) error {
	met, err := wait(ctx, examLimit, func() (bool, error) {
		n, _, err := notPending(ctx, h.manager.Store, []domain.OrderID{id})
		return n == 1, err
	})
	if err == nil && !met {
		h.t.Errorf("order %s has no mission", id)
	}
	return err
}

// brokenHospitals break one rule each. The name is of their orders.
var brokenHospitals = map[string]func(context.Context, hospital, domain.OrderID) error{
	"H-01": func(ctx context.Context, h hospital, id domain.OrderID) error {
		r := h.request(id)
		r.ProductType = ""
		return h.orders(ctx, r)
	},
	"H-02": func(ctx context.Context, h hospital, id domain.OrderID) error { // it numbers its orders anew each day
		if err := h.orders(ctx, h.request(id)); err != nil {
			return err
		}
		if err := h.assigned(ctx, id); err != nil {
			return err
		}
		r := h.request(id)
		r.WeightKg = 2
		return h.orders(ctx, r)
	},
	"H-03": func(ctx context.Context, h hospital, id domain.OrderID) error {
		r := h.request(id)
		r.RequesterID = ""
		return h.orders(ctx, r)
	},
	"H-04": func(ctx context.Context, h hospital, id domain.OrderID) error { // it swaps latitude and longitude
		r := h.request(id)
		r.Delivery.Lat, r.Delivery.Lon = r.Delivery.Lon, r.Delivery.Lat
		return h.orders(ctx, r)
	},
	"H-05": func(ctx context.Context, h hospital, id domain.OrderID) error { // its clock is in another zone
		r := h.request(id)
		r.CreatedAt = h.cfg.Clock.Now().Add(2 * time.Hour)
		return h.orders(ctx, r)
	},
	"H-06": func(ctx context.Context, h hospital, id domain.OrderID) error {
		r := h.request(id)
		r.Cancel = true
		return h.orders(ctx, r)
	},
}

// F-KIT-01: for each rule of hospitals there is one that breaks it, and the kit finds it; one that
// orders, repeats, changes and cancels keeps every rule.
func TestHospital_CatchesABrokenOneForEachRule(t *testing.T) {
	t.Parallel()
	x, err := StartHospital(t.Context(), fleetConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	h := hospital{x, t}
	s, err := x.Examine(t.Context(), examLimit, func(ctx context.Context) error {
		first, second := h.request("GOOD-1"), h.request("GOOD-2")
		cancelled := second
		cancelled.Cancel = true
		return h.orders(ctx, first, first, second, cancelled, cancelled)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Results {
		if r.Verdict != Kept {
			t.Errorf("a correct hospital: %s is %s: %q %s", r.ID, r.Verdict, r.Findings, r.Why)
		}
	}
	for _, rule := range api.TheRules().Hospitals {
		play := brokenHospitals[rule.ID]
		if play == nil {
			t.Errorf("no hospital breaks %s", rule.ID)
			continue
		}
		s, err := x.Examine(t.Context(), examLimit, func(ctx context.Context) error { return play(ctx, h, domain.OrderID(rule.ID)) })
		if err != nil {
			t.Fatalf("%s: %v", rule.ID, err)
		}
		if got := s.Broken(); !slices.Equal(got, []string{rule.ID}) {
			t.Errorf("%s: the kit finds %v:\n%s", rule.ID, got, printed(s))
		}
	}
}

// F-KIT-01: over HTTP the kit sees what the API refuses, which never comes to the topic.
func TestHospital_OrdersOverHTTP(t *testing.T) {
	t.Parallel()
	cfg := fleetConfig(t)
	var err error
	if cfg.API, err = httpapi.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	x, err := StartHospital(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	at, err := url.Parse(cfg.API.URL())
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(x.Door(at))
	defer door.Close()
	post := func(path, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			for range 2 {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, door.URL+path, strings.NewReader(body))
				if err != nil {
					return err
				}
				req.Header.Set("Authorization", "Bearer "+x.Key)
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			return nil
		}
	}
	const good = `{"id": "O-1", "productType": "MEDICINE", "deliveryLocation": {"lat": 48.8369, "lon": 2.3403}}`
	for _, c := range []struct {
		path, body   string
		broken, kept []string
	}{
		{"/api/v1/orders", good, nil, []string{"H-01", "H-02", "H-03", "H-04", "H-05"}},
		{"/api/v1/orders", `{"id": "O-2", "productType": 1}`, []string{"H-01"}, nil},
		{"/api/v1/orders", strings.Replace(good, "MEDICINE", "BLOOD", 1), []string{"H-02"}, nil},
		{"/api/v1/orders", strings.Replace(strings.Replace(good, "O-1", "O-3", 1), "{", `{"requesterId": "OTHER", `, 1), []string{"H-03"}, nil},
	} {
		s, err := x.Examine(t.Context(), examLimit, post(c.path, c.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Broken(); !slices.Equal(got, c.broken) {
			t.Errorf("%s: broken are %v, want %v:\n%s", c.body, got, c.broken, printed(s))
		}
		for _, id := range c.kept {
			if verdictOf(s, id) != Kept {
				t.Errorf("%s: %s is %s", c.body, id, verdictOf(s, id))
			}
		}
	}
}

// F-KIT-01: other ways to break the rules of hospitals are told apart.
func TestHospital_SaysWhatIsWrongWithAnOrder(t *testing.T) {
	t.Parallel()
	x, err := StartHospital(t.Context(), fleetConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	h := hospital{x, t}
	for want, change := range map[string]func(*domain.OrderRequest){
		`no warehouse stocks "TULIPS"`:       func(r *domain.OrderRequest) { r.ProductType = "TULIPS" },
		"no drone carries more than":         func(r *domain.OrderRequest) { r.WeightKg = 9 },
		"or has cold storage for it":         func(r *domain.OrderRequest) { r.ProductType, r.ColdChain = "MEDICAL_DEVICE", true },
		"are latitude and longitude swapped": func(r *domain.OrderRequest) { r.Delivery = domain.Position{Lat: 45.76, Lon: 4.83} },
		"has a deadline that has passed":     func(r *domain.OrderRequest) { r.Deadline = h.cfg.Clock.Now().Add(-time.Minute) },
		"before it was published":            func(r *domain.OrderRequest) { r.CreatedAt = h.cfg.Clock.Now().Add(-48 * time.Hour) },
	} {
		r := h.request(domain.OrderID(strings.ReplaceAll(want, " ", "-")))
		change(&r)
		s, err := x.Examine(t.Context(), examLimit, func(ctx context.Context) error { return h.orders(ctx, r) })
		if err != nil {
			t.Fatal(err)
		}
		if text := printed(s); !strings.Contains(text, want) || len(s.Broken()) != 1 {
			t.Errorf("it says\n%s\nwant %q", text, want)
		}
	}
}
