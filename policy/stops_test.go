package policy

import (
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// north moves a position by a number of metres.
func north(p domain.Position, metres float64) domain.Position {
	p.Lat += metres / 111_195
	return p
}

func withStop(i int, at domain.Position) func(*judged) {
	return func(j *judged) { j.decision.Route[i].Position = at }
}

// The sound decision's stops: start, pickups of O1 and O2 at WH, their deliveries, home.
var misplacedStops = []struct {
	name   string
	give   func(*judged)
	want   Reason // "" if the decision is applied
	detail string
}{
	{"a delivery 9 m off", withStop(3, north(hospitalsAt[0], 9)), "", ""}, // F-STP-01
	{"a delivery 11 m off", withStop(3, north(hospitalsAt[0], 11)), ReasonStopMisplaced,
		"stop 3: HOSPITAL_DELIVERY is at 48.840099,2.300000, 11 m from the delivery position of order O1 at 48.840000,2.300000; at most 10 m are allowed"},
	{"deliveries exchanged", func(j *judged) {
		r := j.decision.Route
		r[3].Position, r[4].Position = r[4].Position, r[3].Position
	}, ReasonStopMisplaced, "stop 3: "},
	{"a pickup 9 m off", withStop(2, north(warehouseAt, 9)), "", ""}, // F-STP-02
	{"a pickup 11 m off", withStop(2, north(warehouseAt, 11)), ReasonStopMisplaced, "stop 2: WAREHOUSE_PICKUP is at 48.820099,2.300000, 11 m from warehouse WH"},
	{"a pickup at no warehouse", func(j *judged) { j.decision.Route[1].WarehouseID = "" }, ReasonWarehouseUnknown,
		"stop 1: it names no warehouse for order O1, which has no pickup position"},
	{"a pickup at another warehouse", func(j *judged) { j.decision.Route[1].WarehouseID = "GONE" }, ReasonWarehouseUnknown, "stop 1: no warehouse GONE"},
	{"a pickup at the order's own position", func(j *judged) {
		own := domain.Position{Lat: 48.83, Lon: 2.31}
		first(func(o *domain.Order) { o.Pickup = &own })(j)
		j.decision.Route[1].Position, j.decision.Route[1].WarehouseID = own, ""
	}, "", ""},
	{"a pickup at a warehouse instead of the order's own position", first(func(o *domain.Order) { o.Pickup = &awayAt }), ReasonStopMisplaced,
		"from the pickup position of order O1"},
	{"a warehouse without the product", first(func(o *domain.Order) { o.ProductType = "INSULIN" }), ReasonWarehouseUnfit, // F-STP-03
		`stop 1: warehouse WH does not stock "INSULIN", which order O1 requests`},
	{"a warehouse without cold storage", first(func(o *domain.Order) { o.ColdChain = true }), ReasonWarehouseUnfit, "stop 1: warehouse WH has no cold storage"},
	{"a warehouse with cold storage", func(j *judged) {
		first(func(o *domain.Order) { o.ColdChain = true })(j)
		wh := j.state.Warehouses["WH"]
		wh.ColdStorage = true
		j.state.Warehouses["WH"] = wh
	}, "", ""},
	{"a return to a depot", func(j *judged) {
		j.state.Depots = []domain.Depot{{ID: "FAR", Position: awayAt}, {ID: "DEPOT", Position: depotAt}}
	}, "", ""}, // F-STP-08
	{"a return to no depot", func(j *judged) { j.state.Depots = []domain.Depot{{ID: "FAR", Position: awayAt}} }, ReasonStopMisplaced,
		"stop 5: DEPOT_RETURN is at 48.800000,2.300000, "},
	{"a return in a fleet without depots", func(j *judged) { j.state.Depots = nil }, "", ""},
}

// F-STP-01 F-STP-02 F-STP-03 F-STP-07 F-STP-08: a decision is refused if a stop is not at
// its order's address, its warehouse, or a depot. F-STP-09: RecordStops applies it, with a warning.
func TestMissionAssignmentPolicy_ComparesStopsWithAddresses(t *testing.T) {
	for _, c := range misplacedStops {
		t.Run(c.name, func(t *testing.T) {
			j := soundDecision()
			c.give(&j)
			for _, record := range []bool{false, true} {
				p := DefaultMissionAssignmentPolicy()
				p.RecordStops = record
				v, err := p.AssignMission(j.state, j.decision, Delivery{PublishedAt: at(-1), ReceivedAt: at(0)}, at(0))
				e := v.Entry
				switch {
				case err != nil:
					t.Fatal(err)
				case record && c.want != "":
					if e.Outcome != domain.OutcomeApplied || !strings.HasPrefix(e.Warning, string(c.want)+": ") || !strings.Contains(e.Warning, c.detail) {
						t.Errorf("recorded: %s %s, warning %q; want APPLIED with a warning of %s: %s", e.Outcome, e.Reason, e.Warning, c.want, c.detail)
					}
				case e.Reason != string(c.want) || !strings.Contains(e.Detail, c.detail) || e.Warning != "":
					t.Errorf("%s %q %q, warning %q; want %q %q", e.Outcome, e.Reason, e.Detail, e.Warning, c.want, c.detail)
				}
			}
		})
	}
}

// F-STP-06: an amendment is judged from the first stop that is neither reached nor
// committed: the stops before are the mission's own.
func TestMissionAssignmentPolicy_ComparesOnlyStopsAhead(t *testing.T) {
	p := DefaultMissionAssignmentPolicy()
	first := soundDecision()
	v, err := p.AssignMission(first.state, first.decision, Delivery{PublishedAt: at(-1), ReceivedAt: at(0)}, at(0))
	if err != nil || v.Entry.Outcome != domain.OutcomeApplied {
		t.Fatal(v.Entry, err)
	}
	m, drone := v.Change.Missions[0], *v.Change.Drone
	drone.MissionAcked, drone.NamedRevision, drone.SupportsAmendments = true, 1, true
	orders := map[domain.OrderID]domain.Order{"O3": openOrder("O3", 2)}
	for _, o := range v.Change.Orders {
		orders[o.ID] = o
	}
	amend := func(reached int) domain.LedgerEntry {
		m := m
		m.ReachedStops = reached
		d := plan("Y", "D1", "O1", "O2", "O3")
		d.Fence, d.AmendsMissionID, d.AmendsRevision = first.decision.Fence, m.ID, 1
		d.Route = append(m.Route[:5:5],
			domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: warehouseAt, OrderID: "O3", WarehouseID: "WH2"},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: hospitalOf("O3"), OrderID: "O3"}, m.Route[5])
		s := first.state
		s.Drone, s.Mission, s.Orders = &drone, &m, orders
		// WH, where O1 and O2 were picked up, is gone.
		s.Warehouses = map[domain.WarehouseID]domain.Warehouse{"WH2": {ID: "WH2", Position: warehouseAt, ProductTypes: []string{"BLOOD"}}}
		v, err := p.AssignMission(s, d, Delivery{PublishedAt: at(-1), ReceivedAt: at(0)}, at(0))
		if err != nil {
			t.Fatal(err)
		}
		return v.Entry
	}
	if e := amend(3); e.Outcome != domain.OutcomeApplied {
		t.Errorf("with both pickups behind: %s %s %s", e.Outcome, e.Reason, e.Detail)
	}
	if e := amend(2); e.Reason != string(ReasonWarehouseUnknown) || !strings.Contains(e.Detail, "stop 2: no warehouse WH") {
		t.Errorf("with a pickup ahead: %s %s %s", e.Outcome, e.Reason, e.Detail)
	}
}

// F-STP-11
func TestMissionAssignmentPolicy_NamesMisplacedStopsOfMissions(t *testing.T) {
	p := DefaultMissionAssignmentPolicy()
	j := soundDecision()
	m := domain.Mission{ID: "M", Route: j.decision.Route}
	if flaw := p.MisplacedStop(m, j.state.Orders, j.state.Warehouses); flaw != "" {
		t.Errorf("a sound mission: %s", flaw)
	}
	m.Route[3].Position = awayAt
	if flaw := p.MisplacedStop(m, j.state.Orders, j.state.Warehouses); !strings.HasPrefix(flaw, "stop 3: HOSPITAL_DELIVERY") {
		t.Errorf("a misplaced stop: %q", flaw)
	}
	if flaw := p.MisplacedStop(m, nil, j.state.Warehouses); flaw != "" {
		t.Errorf("a mission without its orders: %s", flaw)
	}
	m.ReachedStops = 4
	if flaw := p.MisplacedStop(m, j.state.Orders, j.state.Warehouses); flaw != "" {
		t.Errorf("a misplaced stop that is reached: %s", flaw)
	}
}
