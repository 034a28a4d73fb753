package firestoretx

import (
	"fmt"
	"reflect"
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
	saved, err := s.SaveLearned(t.Context(), mustLearned(t, s), want)
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
			saved, err := s.SaveLearned(t.Context(), before, after)
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
	missions, err := s.MissionsEnded(t.Context(), from.Add(time.Minute), until, 2)
	if err != nil || len(missions) != 2 || missions[0].ID != "3" || missions[1].ID != "2" {
		t.Errorf("%+v, %v", missions, err)
	}
	orders, err := s.OrdersCreated(t.Context(), from, until, 10)
	if err != nil || len(orders) != 4 || orders[0].ID != "4" || orders[3].ID != "1" {
		t.Errorf("%+v, %v", orders, err)
	}
}
