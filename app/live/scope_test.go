package live

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// F-CYC-03: a viewer sees the areas that it names, and in a large fleet those near what it looks at.
func TestSession_KnowsTheAreasOfAViewer(t *testing.T) {
	paris := &Area{Min: domain.Position{Lat: 48.8, Lon: 2.2}, Max: domain.Position{Lat: 48.9, Lon: 2.4}}
	all := &Area{Min: domain.Position{Lat: -90, Lon: -180}, Max: domain.Position{Lat: 90, Lon: 180}}
	none := []domain.DepotID{}
	for name, c := range map[string]struct {
		filter       Filter
		small, large []domain.DepotID // nil: the whole fleet
	}{
		"all":                 {Filter{Kinds: only(KindAlert)}, nil, nil},
		"an area by a depot":  {Filter{Areas: []domain.DepotID{"P2"}}, []domain.DepotID{"P1", "P2"}, []domain.DepotID{"P1", "P2"}},
		"every area":          {Filter{Areas: []domain.DepotID{"P2", "L"}}, nil, nil},
		"an unknown area":     {Filter{Areas: []domain.DepotID{"X"}}, none, none},
		"near":                {Filter{Near: paris}, nil, []domain.DepotID{"P1", "P2"}},
		"inside":              {Filter{Area: paris}, nil, []domain.DepotID{"P1", "P2"}},
		"near the whole":      {Filter{Near: all}, nil, nil},
		"a depot":             {Filter{Depot: "L"}, nil, []domain.DepotID{"L"}},
		"a depot out of view": {Filter{Depot: "L", Near: paris}, nil, none},
		"areas out of view":   {Filter{Areas: []domain.DepotID{"L"}, Near: paris}, []domain.DepotID{"L"}, []domain.DepotID{"L"}},
	} {
		for from, want := range map[int][]domain.DepotID{100: c.small, 30: c.large} {
			s := New(Config{AreaRadius: 13, ByAreasFrom: from, NewID: func() string { return "S" }}).newSession()
			if _, whole, known := s.areasOf(c.filter); known != whole {
				t.Errorf("%s: known before the depots are", name)
			}
			s.sawDepots(firestoretx.Sight[domain.Depot]{Whole: true, Now: []domain.Depot{
				{ID: "P1", Position: domain.Position{Lat: 48.65, Lon: 2.3}, Drones: 10}, {ID: "P2", Position: domain.Position{Lat: 48.6, Lon: 2.3}, Drones: 10},
				{ID: "L", Position: domain.Position{Lat: 45.76, Lon: 4.84}, Drones: 10},
			}})
			areas, whole, known := s.areasOf(c.filter)
			got := slices.Sorted(maps.Keys(withinOf(areas)))
			if !known || whole != (want == nil) || !slices.Equal(got, want) {
				t.Errorf("%s, by areas from %d drones on: sees %v (whole %v), want %v", name, from, got, whole, want)
			}
		}
	}
}

// F-CYC-03: what was followed for a viewer that left is dropped after a while, and a viewer of another area never sees it.
func TestSession_DropsWhatNobodySees(t *testing.T) {
	s := New(Config{NewID: func() string { return "S" }, Grace: time.Nanosecond}).newSession()
	s.sources.ready = true
	for _, depot := range []domain.DepotID{"A", "B"} {
		sc := newScope(s, []domain.DepotID{depot})
		sc.cancel = func() {}
		s.scopes[string(depot)] = sc
		sc.sawDecisions(firestoretx.Sight[domain.LedgerEntry]{})
		id := string(depot)
		sc.sawDrones(firestoretx.Sight[domain.Drone]{Whole: true, Now: []domain.Drone{{ID: domain.DroneID("D" + id), HomeDepotID: depot}}})
		sc.sawMissions(firestoretx.Sight[domain.Mission]{Whole: true, Now: []domain.Mission{{ID: domain.MissionID("M" + id), DroneID: domain.DroneID("D" + id), Status: domain.MissionActive}}})
		sc.sawOrders(firestoretx.Sight[domain.Order]{Whole: true, Now: []domain.Order{{ID: domain.OrderID("O" + id), PlanningDepotID: depot, Status: domain.OrderPending}}})
		sc.sawCycles(firestoretx.Sight[domain.Cycle]{Whole: true, Now: []domain.Cycle{{ID: domain.CycleID("C" + id), DepotID: depot}}})
	}
	shown := func() (ids []string) {
		for k, e := range s.picture.book.entries {
			if e.version != nil {
				ids = append(ids, k.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	if got, want := shown(), []string{"CA", "CB", "DA", "DB", "MA", "MB", "OA", "OB"}; !slices.Equal(got, want) {
		t.Fatalf("shows %v, want %v", got, want)
	}
	v := newViewer(s, Filter{}, "")
	v.see([]*scope{s.scopes["A"]}, map[domain.DepotID]bool{"A": true})
	var seen []string
	for _, u := range v.Next().Upserts {
		seen = append(seen, u.ID)
	}
	slices.Sort(seen)
	want := []string{"CA", "DA", "MA", "OA"}
	if !slices.Equal(seen, want) {
		t.Errorf("a viewer of A sees %v", seen)
	}
	b := s.scopes["B"]
	b.unused = time.Now().Add(-time.Second)
	s.endUnused()
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("without B shows %v", got)
	}
	b.sawDrones(firestoretx.Sight[domain.Drone]{Now: []domain.Drone{{ID: "DB", HomeDepotID: "B"}}}) // on its way when the scope ended
	if got := shown(); !slices.Equal(got, want) || !v.Next().Empty() {
		t.Errorf("after a late sight of B shows %v", got)
	}
	// A drone that has moved to another home is no longer seen.
	s.scopes["A"].sawDrones(firestoretx.Sight[domain.Drone]{Gone: []string{"DA"}})
	if !s.stale[Key{KindDrone, "DA"}] {
		t.Error("a drone that left the area is not read again")
	}
}

// F-CYC-03, F-POS-02: a drone whose reports are not listened to is shown where its document foretells it.
func TestSession_ForetellsPositions(t *testing.T) {
	s := New(Config{NewID: func() string { return "S" }}).newSession()
	sc := newScope(s, []domain.DepotID{"A"})
	s.scopes["A"] = sc
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	drone := domain.Drone{ID: "D", HomeDepotID: "A", Position: domain.Position{Lat: 48, Lon: 2}, LastUpdate: at, SeenAt: at, Motion: domain.Motion{At: at, North: 10, Lasts: 10 * time.Second}}
	shows := func(now time.Time, want domain.Position, measured time.Time, versions int64) {
		t.Helper()
		s.foretell(now)
		m := s.picture.book.positions["D"]
		if m == nil || m.position.At != want || !m.position.MeasuredAt.Equal(measured) || s.picture.book.entries[Key{KindDrone, "D"}].seq != versions {
			t.Errorf("shows %+v, want %v", m, want)
		}
	}
	sc.sawDrones(firestoretx.Sight[domain.Drone]{Whole: true, Now: []domain.Drone{drone}})
	shows(at.Add(3*time.Second), domain.Position{Lat: 48, Lon: 2}.Moved(30, 0), at, 1)
	shows(at.Add(time.Hour), domain.Position{Lat: 48, Lon: 2}.Moved(100, 0), at, 1)
	told := s.picture.book.seq
	s.foretell(at.Add(time.Hour))
	if s.picture.book.seq != told {
		t.Error("tells the same position twice")
	}
	if f := s.picture.fleet(at.Add(time.Hour)); f.Drones[0].Position != drone.Position {
		t.Error("plans with a position foretold twice")
	}
	// A later document that only moves the drone does not show all of it again.
	drone.Position, drone.LastUpdate, drone.SeenAt = domain.Position{Lat: 48.1, Lon: 2}, at.Add(8*time.Second), at.Add(8*time.Second)
	drone.Motion.At, drone.Motion.North = drone.LastUpdate, 0
	sc.sawDrones(firestoretx.Sight[domain.Drone]{Now: []domain.Drone{drone}})
	shows(at.Add(time.Hour), drone.Position, drone.LastUpdate, 1)
	drone.Grounded, drone.Revision = true, 1
	sc.sawDrones(firestoretx.Sight[domain.Drone]{Now: []domain.Drone{drone}})
	if e := s.picture.book.entries[Key{KindDrone, "D"}]; e.seq != s.picture.book.seq {
		t.Error("does not show that the drone is grounded")
	}
}
