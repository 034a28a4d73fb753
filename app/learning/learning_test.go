package learning

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

var (
	assumed = Assumed{SpeedKmh: 50, Pickup: 30 * time.Second, Deliver: 30 * time.Second}
	start   = time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)
	depot   = domain.Position{Lat: 48.85, Lon: 2.35}
)

// flown is a mission of a drone that flies at a speed and stays for so long at a pickup and a
// delivery. Its plan expected it at the delivery sooner, by a share of the time.
func flown(rng *rand.Rand, drone domain.DroneID, begin time.Time, kmh float64, pickup, deliver time.Duration, late float64) domain.Mission {
	near := func() domain.Position {
		return domain.Position{Lat: depot.Lat + 0.05*(rng.Float64()-0.5), Lon: depot.Lon + 0.08*(rng.Float64()-0.5)}
	}
	m := domain.Mission{DroneID: drone, Status: domain.MissionCompleted, StartTime: begin, Route: []domain.Waypoint{
		{Type: domain.WaypointDepotStart, Position: depot},
		{Type: domain.WaypointWarehousePickup, Position: near(), OrderID: "A"},
		{Type: domain.WaypointHospitalDelivery, Position: near(), OrderID: "A"},
		{Type: domain.WaypointWarehousePickup, Position: near(), OrderID: "B"},
		{Type: domain.WaypointHospitalDelivery, Position: near(), OrderID: "B"},
		{Type: domain.WaypointDepotReturn, Position: depot},
	}}
	at := begin
	for i, w := range m.Route[:5] {
		if i > 0 {
			km := m.Route[i-1].Position.DistanceMetres(w.Position) / 1000
			at = at.Add(time.Duration(km / kmh * float64(time.Hour)))
		}
		m.Sightings = append(m.Sightings, domain.Sighting{Stop: i, At: at})
		m.Route[i].ETA = begin.Add(time.Duration(float64(at.Sub(begin)) / (1 + late)))
		switch w.Type {
		case domain.WaypointWarehousePickup:
			at = at.Add(pickup)
		case domain.WaypointHospitalDelivery:
			at = at.Add(deliver)
		case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
		}
	}
	m.ReachedStops, m.EndTime = 5, at
	return m
}

func days(n int, kmh float64, pickup, deliver time.Duration, late float64) (missions []domain.Mission) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		id, speed := domain.DroneID("D1"), kmh
		if i%5 == 0 {
			id, speed = "SLOW", 0.8*kmh
		}
		missions = append(missions, flown(rng, id, start.Add(time.Duration(i)*time.Minute), speed, pickup, deliver, late))
	}
	return missions
}

// F-LRN-02: without a past nothing changes.
func TestEstimate_ChangesNothingWithoutAPast(t *testing.T) {
	for _, l := range []domain.Learned{{}, AddMissions(domain.Learned{}, nil, assumed)} {
		if e := Estimate(l, assumed, 0.9); !reflect.DeepEqual(e, Estimates{}) {
			t.Errorf("%+v", e)
		}
	}
	if n, observed := (DemandEstimates{}).At(start, domain.PriorityCritical); n != 0 || observed != 0 {
		t.Error(n, observed)
	}
}

// F-LRN-02: the speed of the fleet and of each drone, and the stays, are found; few flights
// change little.
func TestEstimate_FindsSpeedsAndStays(t *testing.T) {
	near := func(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }
	l := AddMissions(domain.Learned{}, days(600, 40, 50*time.Second, 80*time.Second, 0), assumed)
	e := Estimate(l, assumed, 0.8)
	if !near(e.Speeds["D1"], 40, 1.5) || !near(e.Speeds["SLOW"], 32, 1.5) || !near(e.SpeedOf("NEW"), 38, 2) {
		t.Errorf("speeds %v, of another drone %v", e.Speeds, e.SpeedOf("NEW"))
	}
	if !near(e.Pickup.Seconds(), 50, 8) || !near(e.Deliver.Seconds(), 80, 8) {
		t.Errorf("stays %s, %s", e.Pickup, e.Deliver)
	}
	few := Estimate(AddMissions(domain.Learned{}, days(2, 40, 50*time.Second, 80*time.Second, 0), assumed), assumed, 0.8)
	if !near(few.SpeedOf("NEW"), 50, 3) || few.Margin != 0 {
		t.Errorf("after two missions %+v", few)
	}
}

// F-LRN-02: what is old fades: a fleet that has become faster is known to be.
func TestAddMissions_Fades(t *testing.T) {
	l := AddMissions(domain.Learned{}, days(3000, 30, 30*time.Second, 30*time.Second, 0), assumed)
	l = AddMissions(l, days(3000, 55, 30*time.Second, 30*time.Second, 0), assumed)
	if e := Estimate(l, assumed, 0.8); e.Speeds["D1"] < 50 || l.Travel.FromPickup.Weight > fleetLegs || l.Drones["D1"].Flight.Weight > droneLegs {
		t.Errorf("%v, weights %v and %v", e.Speeds, l.Travel.FromPickup.Weight, l.Drones["D1"].Flight.Weight)
	}
}

// F-LRN-03: the margin is the delay that the asked share of deliveries kept to.
func TestEstimate_MarginIsAQuantile(t *testing.T) {
	l := AddMissions(domain.Learned{}, append(days(80, 50, 0, 0, 0), days(20, 50, 0, 0, 0.3)...), assumed)
	for confidence, want := range map[float64]float64{0.5: 0.02, 0.79: 0.02, 0.9: 0.32, 0.99: 0.32} {
		if e := Estimate(l, assumed, confidence); math.Abs(e.Margin-want) > 0.021 {
			t.Errorf("at %v: %v, want %v", confidence, e.Margin, want)
		}
	}
	l = AddMissions(domain.Learned{}, days(50, 50, 0, 0, 3), assumed)
	if e := Estimate(l, assumed, 0.9); e.Margin != MaxMargin {
		t.Errorf("three times as long as planned: %v, want %v", e.Margin, MaxMargin)
	}
}

// F-LRN-02: whatever missions and documents say, estimates stay within their limits, and
// legs that no drone flies are counted.
func TestEstimate_StaysWithinItsLimits(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), -1, 0, 1e300}))
	sums := rapid.Custom(func(t *rapid.T) domain.LegSums {
		return domain.LegSums{Weight: number.Draw(t, "weight"), Km: number.Draw(t, "km"), Seconds: number.Draw(t, "s"), KmKm: number.Draw(t, "kmkm"), KmSeconds: number.Draw(t, "kms")}
	})
	rapid.Check(t, func(t *rapid.T) {
		l := domain.Learned{
			Travel: domain.Travel{
				FromStart: sums.Draw(t, "start"), FromPickup: sums.Draw(t, "pickup"), FromDelivery: sums.Draw(t, "delivery"),
				Delays: rapid.SliceOfN(number, 0, domain.DelayBins).Draw(t, "delays"),
			},
			Drones: map[domain.DroneID]domain.DroneTravel{"D1": {Flight: sums.Draw(t, "drone")}},
			Demand: domain.Demand{Hours: []domain.HourDemand{{Hours: number.Draw(t, "hours"), Orders: [3]float64{number.Draw(t, "n")}}}},
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := flown(rng, "D1", start, rapid.Float64Range(0.1, 1e4).Draw(t, "kmh"), 0, 0, 0)
		for i := range m.Sightings {
			m.Sightings[i].At = start.Add(time.Duration(rapid.Int64Range(-1e13, 1e13).Draw(t, "at")))
		}
		l = AddMissions(l, []domain.Mission{m}, assumed)
		e := Estimate(l, assumed, 0.9)
		if e.SpeedKmh == 0 {
			return // nothing measured
		}
		for _, v := range []float64{e.SpeedKmh, e.SpeedOf("D1")} {
			if !(v >= slowest*assumed.SpeedKmh && v <= fastest*assumed.SpeedKmh) {
				t.Fatalf("speed %v", v)
			}
		}
		if most := assumed.Pickup + longestStay; e.Pickup < 0 || e.Pickup > most || e.Deliver < 0 || e.Deliver > most {
			t.Fatalf("stays %s and %s", e.Pickup, e.Deliver)
		}
		if !(e.Margin >= 0 && e.Margin <= MaxMargin) {
			t.Fatalf("margin %v", e.Margin)
		}
		if n, _ := e.Demand.At(start, domain.PriorityStandard); !(n >= 0) {
			t.Fatalf("demand %v", n)
		}
	})
}

// F-LRN-02
func TestAddMissions_LeavesOutLegsThatNoDroneFlies(t *testing.T) {
	m := days(1, 50, 0, 0, 0)[0]
	m.Sightings[2].At = m.Sightings[1].At                    // kilometres in no time
	m.Sightings[3].At = m.Sightings[2].At.Add(4 * time.Hour) // and in hours
	m.Sightings[4].At = m.Sightings[3].At.Add(5 * time.Minute)
	before := domain.Learned{}
	l := AddMissions(before, []domain.Mission{m}, assumed)
	if l.Travel.Refused != 2 || l.Travel.Legs != 2 || l.Travel.Missions != 1 {
		t.Errorf("%+v", l.Travel)
	}
	if !reflect.DeepEqual(before, domain.Learned{}) {
		t.Error("what was learned before was modified")
	}
}

// F-LRN-04: demand by hour and place; old orders fade; the number of places is bounded.
func TestAddOrders_LearnsHoursAndPoints(t *testing.T) {
	d := domain.Demand{Until: start}
	var orders []domain.Order
	for i := range 3 * 60 {
		o := domain.Order{CreatedAt: start.Add(time.Duration(i)*time.Minute + time.Second)}
		o.Priority, o.Delivery, o.ProductType = domain.PriorityStandard, depot, "BLOOD"
		if i >= 60 && i < 120 { // the second hour
			o.Priority = domain.PriorityCritical
		}
		if i%10 == 0 {
			o.Delivery.Lat += 0.01
		}
		orders = append(orders, o)
	}
	before := d
	d = AddOrders(d, orders, start.Add(3*time.Hour))
	e := EstimateDemand(d)
	n, observed := e.At(start.Add(90*time.Minute), domain.PriorityCritical)
	if rate := n / observed.Hours(); rate < 25 || rate > 35 { // half of the hours beside it counts
		t.Errorf("%v CRITICAL an hour in the second", rate)
	}
	if n, observed := e.At(start.Add(12*time.Hour), domain.PriorityCritical); n != 0 || observed != 0 {
		t.Errorf("%v, %s at night", n, observed)
	}
	if len(e.Points) != 2 || e.Points[0].Position != depot || e.Points[0].ProductType != "BLOOD" || d.Seen != 180 {
		t.Errorf("points %+v, seen %d", e.Points, d.Seen)
	}
	if again := AddOrders(d, orders, start.Add(3*time.Hour)); !reflect.DeepEqual(again, d) {
		t.Error("orders count twice")
	}
	if before.Hours != nil || before.Points != nil {
		t.Error("what was learned before was modified")
	}
	later := AddOrders(d, nil, start.Add(3*time.Hour+demandHalfLife))
	if got, was := later.Points[0].Orders[0], d.Points[0].Orders[0]; math.Abs(got-was/2) > 0.01*was {
		t.Errorf("after a half-life %v of %v", got, was)
	}
	for i := range 2 * maxPoints {
		orders[0].Delivery.Lat, orders[0].CreatedAt = float64(i)/100, later.Until.Add(time.Duration(i+1)*time.Second)
		later = AddOrders(later, orders[:1], orders[0].CreatedAt)
	}
	if len(later.Points) != maxPoints || later.Points[0].Position != depot {
		t.Errorf("%d points, the busiest %+v", len(later.Points), later.Points[0])
	}
}

// memory is a store of what was learned, missions and orders.
type memory struct {
	learned  domain.Learned
	missions []domain.Mission
	orders   []domain.Order
	saves    int
	stale    bool // somebody else saves first

	malformed []error
}

func (m *memory) LearnedIn(context.Context, domain.LearningScope) (domain.Learned, []error, error) {
	return m.learned, m.malformed, nil
}

func (m *memory) MissionsEnded(_ context.Context, _ domain.LearningScope, after, until time.Time, limit int) ([]domain.Mission, error) {
	return between(m.missions, func(x domain.Mission) time.Time { return x.EndTime }, after, until, limit), nil
}

func (m *memory) OrdersCreated(_ context.Context, _ domain.LearningScope, after, until time.Time, limit int) ([]domain.Order, error) {
	return between(m.orders, func(x domain.Order) time.Time { return x.CreatedAt }, after, until, limit), nil
}

func between[T any](all []T, at func(T) time.Time, after, until time.Time, limit int) (list []T) {
	for _, x := range all {
		if at(x).After(after) && !at(x).After(until) {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b T) int { return at(a).Compare(at(b)) })
	return list[:min(len(list), limit)]
}

func (m *memory) SaveLearned(_ context.Context, _ domain.LearningScope, before, after domain.Learned) (bool, error) {
	if m.stale || !before.Travel.Until.Equal(m.learned.Travel.Until) || !before.Demand.Until.Equal(m.learned.Demand.Until) {
		return false, nil
	}
	m.saves++
	m.learned = after
	return true, nil
}

// F-LRN-01: each mission and order counts once, however many there are at a time and whoever
// looks, and those that may still change count later.
func TestLearner_TakesEachInOnce(t *testing.T) {
	m := &memory{}
	same := start.Add(90 * time.Minute)
	for i := range 3 * page {
		x := days(1, 40, 0, 0, 0)[0]
		x.EndTime = start.Add(time.Duration(i/2) * time.Second)
		m.missions = append(m.missions, x)
		o := domain.Order{CreatedAt: x.EndTime}
		o.Priority, o.Delivery = domain.PriorityHigh, depot
		if i > page && i < page+50 { // many at a time
			o.CreatedAt = same
		}
		m.orders = append(m.orders, o)
	}
	end := m.missions[len(m.missions)-1].EndTime
	learners := []*Learner{NewLearner(m, assumed, 0.8), NewLearner(m, assumed, 0.8)}
	for now := end; now.Before(end.Add(2 * time.Hour)); now = now.Add(Every) {
		for _, l := range learners {
			if _, err := l.Look(t.Context(), domain.LearningScope{}, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := m.learned; got.Travel.Missions != len(m.missions) || got.Demand.Seen != len(m.orders) {
		t.Errorf("%d of %d missions, %d of %d orders", got.Travel.Missions, len(m.missions), got.Demand.Seen, len(m.orders))
	}
	m.missions = append(m.missions, days(1, 40, 0, 0, 0)...)
	latest := &m.missions[len(m.missions)-1]
	latest.EndTime = end.Add(3 * time.Hour)
	taken := m.learned.Travel.Missions
	for after, more := range map[time.Duration]int{countAfter - time.Second: 0} {
		if _, err := NewLearner(m, assumed, 0.8).Look(t.Context(), domain.LearningScope{}, latest.EndTime.Add(after)); err != nil || m.learned.Travel.Missions != taken+more {
			t.Errorf("%s after its end: %d missions, %v", after, m.learned.Travel.Missions-taken, err)
		}
	}
	if _, err := NewLearner(m, assumed, 0.8).Look(t.Context(), domain.LearningScope{}, latest.EndTime.Add(countAfter)); err != nil || m.learned.Travel.Missions != taken+1 {
		t.Errorf("%d missions, %v", m.learned.Travel.Missions-taken, err)
	}
}

// F-LRN-01: a learner looks now and then, also after its clock was set back, and uses what
// another saved first.
func TestLearner_LooksNowAndThen(t *testing.T) {
	m := &memory{missions: days(100, 40, 0, 0, 0)}
	now := start.Add(3 * time.Hour)
	l := NewLearner(m, assumed, 0.8)
	look := func(at time.Time) Estimates {
		t.Helper()
		e, err := l.Look(t.Context(), domain.LearningScope{}, at)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := look(now); e.SpeedKmh == 0 || e.SpeedKmh > 45 || m.saves != 1 {
		t.Errorf("%+v after %d saves", e, m.saves)
	}
	if look(now.Add(Every - time.Second)); m.saves != 1 {
		t.Errorf("%d saves before it is time", m.saves)
	}
	if look(now.Add(Every)); m.saves != 2 {
		t.Errorf("%d saves when it is time", m.saves)
	}
	m.stale = true
	if e := look(now.Add(-time.Hour)); e.SpeedKmh == 0 || m.saves != 2 {
		t.Errorf("%+v after %d saves", e, m.saves)
	}
}

// F-AMD-06: how long a drone charged or waited says nothing about flights.
func TestAddMissions_LeavesChargingAndWaitingOut(t *testing.T) {
	m := domain.Mission{DroneID: "D1", Status: domain.MissionCompleted, StartTime: start, EndTime: start.Add(10 * time.Minute), ReachedStops: 3, Route: []domain.Waypoint{
		{Type: domain.WaypointDepotStart, Position: depot},
		{Type: domain.WaypointCharge, Position: depot, ChargeToPercent: 90},
		{Type: domain.WaypointWait, Position: depot, WaitUntil: start.Add(10 * time.Minute)},
	}}
	for i, minutes := range []time.Duration{0, 4, 10} {
		m.Sightings = append(m.Sightings, domain.Sighting{Stop: i, At: start.Add(minutes * time.Minute), Claimed: true})
	}
	if l := AddMissions(domain.Learned{}, []domain.Mission{m}, assumed); l.Travel.Legs != 0 || l.Travel.Refused != 0 {
		t.Errorf("%d legs were learned, %d refused", l.Travel.Legs, l.Travel.Refused)
	}
}

// F-LRN-04: time that nobody observed, because no optimizer ran, counts neither as hours nor
// as hours without orders.
func TestLearner_LeavesOutWhatNobodyObserved(t *testing.T) {
	m := &memory{learned: domain.Learned{Demand: domain.Demand{Until: start}}}
	now := start.Add(90 * 24 * time.Hour)
	if _, err := NewLearner(m, assumed, 0.8).Look(t.Context(), domain.LearningScope{}, now); err != nil {
		t.Fatal(err)
	}
	observed := 0.0
	for _, h := range m.learned.Demand.Hours {
		observed += h.Hours
	}
	if most := maxLookBack.Hours(); observed < most-1 || observed > most {
		t.Errorf("%.1f hours observed, want the %.1f that it looked back", observed, most)
	}
}

// F-LRN-02 F-LRN-04: whatever documents say, as much of the past as the prior outweighs is
// learned again: no sum stays without a value, no time is waited for.
func TestLearner_LearnsAgainWhateverDocumentsSay(t *testing.T) {
	number := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e300, math.MaxFloat64, 3e38, 5e-324})
	sums := rapid.Custom(func(t *rapid.T) domain.LegSums {
		return domain.LegSums{Weight: number.Draw(t, "weight"), Km: number.Draw(t, "km"), Seconds: number.Draw(t, "s"), KmKm: number.Draw(t, "kmkm"), KmSeconds: number.Draw(t, "kms")}
	})
	until := rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), start, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)})
	past := days(200, 40, 50*time.Second, 80*time.Second, 0.2)
	var orders []domain.Order
	for i := range 200 {
		o := domain.Order{CreatedAt: start.Add(time.Duration(i+1) * time.Minute)}
		o.Priority, o.Delivery = domain.PriorityCritical, depot
		orders = append(orders, o)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &memory{learned: domain.Learned{
			Travel: domain.Travel{
				Until: until.Draw(t, "until"), FromStart: sums.Draw(t, "start"), FromPickup: sums.Draw(t, "pickup"), FromDelivery: sums.Draw(t, "delivery"),
				Delays: rapid.SliceOfN(number, domain.DelayBins, domain.DelayBins).Draw(t, "delays"),
			},
			Drones: map[domain.DroneID]domain.DroneTravel{"D1": {Flight: sums.Draw(t, "drone")}},
			Demand: domain.Demand{
				Until: until.Draw(t, "orders until"), Points: []domain.PointDemand{{Position: depot, WeightKg: number.Draw(t, "kg"), Orders: [3]float64{number.Draw(t, "at"), 0, 0}}},
				Hours: []domain.HourDemand{8: {Hours: number.Draw(t, "hours"), Orders: [3]float64{0, number.Draw(t, "n"), 0}}, 23: {}},
			},
		}}
		l := NewLearner(m, assumed, 0.9)
		if _, err := l.Look(t.Context(), domain.LearningScope{}, start); err != nil {
			t.Fatal(err)
		}
		m.missions, m.orders = past, orders
		var e Estimates
		for i := range 2 {
			var err error
			if e, err = l.Look(t.Context(), domain.LearningScope{}, start.Add(4*time.Hour+time.Duration(i)*Every)); err != nil {
				t.Fatal(err)
			}
		}
		perMinute, observed := e.Demand.At(start.Add(2*time.Hour), domain.PriorityCritical)
		if perMinute /= observed.Minutes(); m.learned.Travel.Missions != len(past) || m.learned.Demand.Seen != len(orders) || !(perMinute > 0.05 && perMinute < 3) {
			t.Errorf("%d missions, %d orders, %v a minute", m.learned.Travel.Missions, m.learned.Demand.Seen, perMinute)
		}
		for at, h := range m.learned.Demand.Hours {
			if !(h.Hours >= 0 && h.Hours < 1e6 && h.Orders[2] >= 0 && h.Orders[1] >= 0 && h.Orders[1] < 1e6) {
				t.Errorf("hour %d: %+v", at, h)
			}
		}
		if sound := e.Margin > 0 && e.Margin < 0.4; !sound {
			t.Errorf("margin %v", e.Margin)
		}
	})
}

// F-LRN-02: while a document is malformed, plans use what the others say, and nothing is saved.
func TestLearner_UsesWhatIsNotMalformed(t *testing.T) {
	m := &memory{missions: days(200, 40, 50*time.Second, 80*time.Second, 0.2)}
	if _, err := NewLearner(m, assumed, 0.8).Look(t.Context(), domain.LearningScope{}, start.Add(4*time.Hour)); err != nil {
		t.Fatal(err)
	}
	m.saves, m.malformed = 0, []error{errors.New("document learned/drone-D9: field speedKmh should be a number")}
	e, err := NewLearner(m, assumed, 0.8).Look(t.Context(), domain.LearningScope{}, start.Add(5*time.Hour))
	if !errors.Is(err, m.malformed[0]) || e.SpeedKmh == 0 || m.saves != 0 {
		t.Errorf("%+v, saved %d times, %v", e, m.saves, err)
	}
}

// F-CYC-02: of an order that one area hands over to another, one area counts it at most.
func TestLearner_CountsHandedOverOrdersOnce(t *testing.T) {
	scope := domain.LearningScope{Area: "B", Depots: []domain.DepotID{"B"}}
	at := func(handedOver time.Duration) domain.Order {
		return domain.Order{CreatedAt: start, PlanningSince: start.Add(handedOver), HandedOverBy: []domain.DepotID{"A"}}
	}
	for handedOver, counts := range map[time.Duration]int{time.Second: 1, countAfter - 1: 1, countAfter: 0, time.Hour: 0} {
		if n := len(countedIn(scope, []domain.Order{at(handedOver)})); n != counts {
			t.Errorf("handed over after %s: counted %d times by the second area, want %d", handedOver, n, counts)
		}
	}
	if n := len(countedIn(domain.LearningScope{}, []domain.Order{at(time.Hour)})); n != 1 {
		t.Errorf("the fleet's only area counts %d", n)
	}
}
