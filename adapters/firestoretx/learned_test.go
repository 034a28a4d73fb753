package firestoretx

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

func learnedStore(t *testing.T) *Store {
	emutest.ServeFirestore(t, firestoreemu.Options{Indexes: deploy.FirestoreIndexes})
	return New(emutest.Clients(t).Firestore, Config{})
}

// inA is the scope of area A, whose depots are A and B.
var inA = domain.LearningScope{Area: "A", Depots: []domain.DepotID{"A", "B"}}

func mustLearned(t *testing.T, s *Store) domain.Learned {
	t.Helper()
	l, malformed, err := s.Learned(t.Context())
	if err != nil || len(malformed) > 0 {
		t.Fatal(err, malformed)
	}
	return l
}

// F-LRN-01: what was learned is read as it was saved, and forgotten when asked to.
func TestLearned_IsKeptAndForgotten(t *testing.T) {
	s := learnedStore(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	want := domain.Learned{
		Travel: domain.Travel{
			Until: now, FromPickup: domain.LegSums{Weight: 2, Km: 3.5, Seconds: 300, KmKm: 7, KmSeconds: 600},
			Delays: make([]float64, domain.DelayBins), Missions: 1, Legs: 2, Refused: 1, SpeedKmh: 48,
		},
		Drones: map[domain.DroneID]domain.DroneTravel{"D1": {Flight: domain.LegSums{Weight: 1, Km: 2}, SpeedKmh: 47}, "D2": {SpeedKmh: 51}},
		Demand: domain.Demand{
			Until: now, Hours: make([]domain.HourDemand, 24), Seen: 3,
			Points: []domain.PointDemand{{Position: domain.Position{Lat: 48, Lon: 2}, Orders: [3]float64{1, 2, 3}, ProductType: "BLOOD", WeightKg: 1}},
		},
	}
	want.Demand.Hours[7] = domain.HourDemand{Hours: 1.5, Orders: [3]float64{3, 2, 1}}
	saved, err := s.SaveLearned(t.Context(), inA, mustLearned(t, s), want)
	if err != nil || !saved {
		t.Fatal(saved, err)
	}
	if got := mustLearned(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := s.ForgetLearned(t.Context(), now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	empty := domain.Learned{Travel: domain.Travel{Until: now.Add(time.Minute)}, Demand: domain.Demand{Until: now.Add(time.Minute)}, Drones: map[domain.DroneID]domain.DroneTravel{}}
	if got := mustLearned(t, s); !reflect.DeepEqual(got, empty) {
		t.Errorf("forgotten: %+v", got)
	}
}

// F-LRN-01: of processes that learn from the same missions one saves.
func TestLearned_IsSavedByOneOfMany(t *testing.T) {
	s := learnedStore(t)
	before := mustLearned(t, s)
	now := time.Now().UTC().Truncate(time.Microsecond)
	var all sync.WaitGroup
	var mu sync.Mutex
	var savers []int
	for i := range 8 {
		all.Go(func() {
			after := before
			after.Travel.Until, after.Demand.Until, after.Travel.Missions = now, now, i
			saved, err := s.SaveLearned(t.Context(), inA, before, after)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case saved:
				savers = append(savers, i)
			}
		})
	}
	all.Wait()
	if got := mustLearned(t, s); len(savers) != 1 || got.Travel.Missions != savers[0] {
		t.Errorf("saved by %v, stored %+v", savers, got.Travel)
	}
}

// F-LRN-01: a document that somebody damaged is named, and the others are read.
func TestLearned_NamesADamagedDocument(t *testing.T) {
	s := learnedStore(t)
	for id, fields := range map[string]map[string]any{
		"travel": {"missions": 1, "speedKmh": "fast"}, "demand": {"orders": 1, "places": []any{7}}, "drone-D1": {"flight": map[string]any{"km": true}}, "drone-D2": {"speedKmh": 48.0},
	} {
		if _, err := s.doc(Learned, id).Set(t.Context(), fields); err != nil {
			t.Fatal(err)
		}
	}
	l, malformed, err := s.Learned(t.Context())
	if err != nil || len(malformed) != 3 || l.Drones["D2"].SpeedKmh != 48 || l.Travel.Missions+l.Demand.Seen > 0 {
		t.Errorf("%+v, %v, %v", l, malformed, err)
	}
	for _, field := range []string{"speedKmh", "places", "flight"} {
		if !strings.Contains(fmt.Sprint(malformed), field) {
			t.Errorf("%v do not name %s", malformed, field)
		}
	}
}

// F-LRN-01: missions that ended and orders that came are listed in the order of time, with
// the indexes of production.
func TestStore_ListsWhatEndedAndCame(t *testing.T) {
	s := learnedStore(t)
	from := time.Now().UTC().Truncate(time.Microsecond)
	for i := range 5 {
		at := from.Add(time.Duration(5-i) * time.Minute)
		id := fmt.Sprint(i)
		if _, err := s.doc(Missions, id).Set(t.Context(), missionCodec.encode(domain.Mission{Status: domain.MissionCompleted, StartTime: from, EndTime: at})); err != nil {
			t.Fatal(err)
		}
		if _, err := s.doc(Orders, id).Set(t.Context(), orderCodec.encode(domain.Order{Status: domain.OrderPending, CreatedAt: at})); err != nil {
			t.Fatal(err)
		}
	}
	until := from.Add(4 * time.Minute)
	missions, err := s.MissionsEnded(t.Context(), domain.LearningScope{}, from.Add(time.Minute), until, 2)
	if err != nil || len(missions) != 2 || missions[0].ID != "3" || missions[1].ID != "2" {
		t.Errorf("%+v, %v", missions, err)
	}
	orders, err := s.OrdersCreated(t.Context(), domain.LearningScope{}, from, until, 10)
	if err != nil || len(orders) != 4 || orders[0].ID != "4" || orders[3].ID != "1" {
		t.Errorf("%+v, %v", orders, err)
	}
}

// F-CYC-02: each area learns from its own drones and orders, in one document. Orders that another area
// counted before it handed them over do not count again, and missions of earlier versions have no area.
func TestLearned_IsOfAnArea(t *testing.T) {
	s := learnedStore(t)
	from := time.Now().UTC().Truncate(time.Microsecond)
	at := from.Add(time.Minute)
	for id, home := range map[string]string{"M-A": "A", "M-B": "B", "M-C": "C", "M-OLD": ""} {
		doc := missionCodec.encode(domain.Mission{Status: domain.MissionCompleted, StartTime: from, EndTime: at})
		if home != "" {
			doc[homeOfMission] = home
		}
		if _, err := s.doc(Missions, id).Set(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	for id, planner := range map[string]domain.DepotID{"O-A": "A", "O-B": "B", "O-C": "C"} {
		if _, err := s.doc(Orders, id).Set(t.Context(), orderCodec.encode(domain.Order{Status: domain.OrderPending, CreatedAt: at, PlanningDepotID: planner})); err != nil {
			t.Fatal(err)
		}
	}
	for area, want := range map[domain.DepotID][2]string{"A": {"[M-A M-B]", "[O-A O-B]"}, "C": {"[M-C]", "[O-C]"}} {
		scope := inA
		if area == "C" {
			scope = domain.LearningScope{Area: "C", Depots: []domain.DepotID{"C"}}
		}
		missions, err := s.MissionsEnded(t.Context(), scope, from, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		orders, err := s.OrdersCreated(t.Context(), scope, from, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got [2][]string
		for _, m := range missions {
			got[0] = append(got[0], string(m.ID))
		}
		for _, o := range orders {
			got[1] = append(got[1], string(o.ID))
		}
		slices.Sort(got[0])
		slices.Sort(got[1])
		if fmt.Sprint(got[0]) != want[0] || fmt.Sprint(got[1]) != want[1] {
			t.Errorf("area %s learns from %v", area, got)
		}
	}
}

// F-CYC-02: an area begins with what an earlier version learned, and readers of the whole fleet see the sum
// of the areas.
func TestLearned_BeginsWithWhatEarlierVersionsLearned(t *testing.T) {
	s := learnedStore(t)
	until := time.Now().UTC().Truncate(time.Microsecond)
	for id, doc := range map[string]map[string]any{
		"travel": travelCodec.encode(domain.Travel{Until: until, Missions: 7}), "demand": demandCodec.encode(domain.Demand{Until: until, Seen: 9}),
		"drone-D1": droneTravelCodec.encode(domain.DroneTravel{SpeedKmh: 48}),
	} {
		if _, err := s.doc(Learned, id).Set(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	read := func(scope domain.LearningScope) domain.Learned {
		t.Helper()
		l, malformed, err := s.LearnedIn(t.Context(), scope)
		if err != nil || len(malformed) > 0 {
			t.Fatal(malformed, err)
		}
		return l
	}
	only, one := read(domain.LearningScope{Area: "A"}), read(inA)
	if only.Travel.Missions != 7 || only.Demand.Seen != 9 || only.Drones["D1"].SpeedKmh != 48 {
		t.Errorf("the only area begins with %+v", only)
	}
	if one.Travel.Missions != 7 || one.Demand.Seen != 0 || !one.Demand.Until.Equal(until) || len(one.Drones) > 0 {
		t.Errorf("one of several areas begins with %+v", one)
	}
	for i, area := range []domain.DepotID{"A", "C"} {
		scope := domain.LearningScope{Area: area, Depots: []domain.DepotID{area}}
		before, after := read(scope), read(scope)
		after.Travel.Until, after.Travel.Missions = until.Add(time.Minute), 10*(i+1)
		after.Drones = map[domain.DroneID]domain.DroneTravel{domain.DroneID("D-" + area): {SpeedKmh: 50}}
		if saved, err := s.SaveLearned(t.Context(), scope, before, after); err != nil || !saved {
			t.Fatal(saved, err)
		}
		if got := read(scope); got.Travel.Missions != after.Travel.Missions || len(got.Drones) != 1 {
			t.Errorf("area %s has %+v", area, got)
		}
	}
	if all := mustLearned(t, s); all.Travel.Missions != 30 || len(all.Drones) != 2 {
		t.Errorf("the fleet has %+v", all)
	}
}

// The largest area's document is far below the limit of 1 MiB.
func TestLearned_FitsADocument(t *testing.T) {
	s := learnedStore(t)
	l := domain.Learned{Drones: map[domain.DroneID]domain.DroneTravel{}, Travel: domain.Travel{Delays: make([]float64, domain.DelayBins)}}
	for i := range 2000 {
		l.Drones[domain.DroneID(fmt.Sprintf("hospital-drone-%032d", i))] = domain.DroneTravel{Flight: domain.LegSums{Weight: 1, Km: 2, Seconds: 3, KmKm: 4, KmSeconds: 5}, SpeedKmh: 48}
	}
	for range 300 {
		l.Demand.Points = append(l.Demand.Points, domain.PointDemand{ProductType: "BLOOD"})
	}
	if saved, err := s.SaveLearned(t.Context(), inA, domain.Learned{}, l); err != nil || !saved {
		t.Error(saved, err)
	}
}
