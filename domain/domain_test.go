package domain_test

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-WIRE-03, F-API-03: what passes is an id that the store takes, on one line.
func TestCheckID_TakesWhatFirestoreTakes(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		ok       bool
	}{
		{"plain", "D-1", true},
		{"one byte", "D", true},
		{"as long as may be", strings.Repeat("x", domain.MaxIDBytes), true},
		{"longer", strings.Repeat("x", domain.MaxIDBytes+1), false},
		{"longer in bytes only", strings.Repeat("é", domain.MaxIDBytes/2+1), false},
		{"empty", "", false},
		{"slash", "a/b", false},
		{"no text", "a\xdb", false},
		{"zero byte", "a\x00", false},
		{"dot", ".", false},
		{"two dots", "..", false},
		{"three dots", "...", true},
		{"reserved", "__x__", false},
		{"reserved on two lines", "__a\nb__", false},
		{"half reserved", "__x", true},
		{"tab", "a\tb", false},
		{"line break", "a\nb", false},
		{"escape", "\x1b[31m", false},
		{"delete", "a\x7f", false},
		{"control character above ASCII", "a\u0085", false},
		{"umlaut", "Zürich", true},
		{"umlaut in two characters", "Zu\u0308rich", false},
		{"Kelvin sign", "D-\u212a", false}, // whose normal form is the letter
	} {
		if err := domain.CheckID(tt.id); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// F-IN-03: one of two ids that look alike is refused, with the other.
func TestCheckID_NamesTheNormalForm(t *testing.T) {
	err := domain.CheckID("D-e\u0301")
	if want := `is "D-e\u0301", which is not in Unicode normal form NFC; give "D-é", that is "D-\u00e9"`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := domain.CheckDocumentID("D-e\u0301"); err != nil { // what is stored can be read and deleted
		t.Error(err)
	}
}

// A document written by others may have a longer id, as long as Firestore takes.
func TestCheckDocumentID_TakesIDsOfOtherTools(t *testing.T) {
	if err := domain.CheckDocumentID("a\nb"); err != nil {
		t.Errorf("a line break: %v", err)
	}
	for length, ok := range map[int]bool{domain.MaxIDBytes + 1: true, 1500: true, 1501: false} {
		if err := domain.CheckDocumentID(strings.Repeat("x", length)); (err == nil) != ok {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// F-DEC-04: ids made of ids are ids, and those of different ones differ.
func TestDerivedIDs_AreLegalAndDistinct(t *testing.T) {
	long := strings.Repeat("x", domain.MaxIDBytes)
	seen := map[domain.DecisionID]bool{}
	for _, of := range []struct {
		cycle domain.CycleID
		drone domain.DroneID
	}{{"C1", "D1"}, {"C1", "D2"}, {domain.CycleID(long), "D1"}, {domain.CycleID(long), "D2"}, {"C1", domain.DroneID(long)}, {"__C1", "D1__"}} {
		id := domain.DecisionIDFor(of.cycle, of.drone)
		if err := domain.CheckID(string(id)); err != nil || seen[id] {
			t.Errorf("%s: %v", id, err)
		}
		if again := domain.DecisionIDFor(of.cycle, of.drone); again != id {
			t.Errorf("%s, and then %s", id, again)
		}
		if err := domain.CheckID(string(domain.MissionIDFor(id))); err != nil {
			t.Errorf("mission of %s: %v", id, err)
		}
		seen[id] = true
	}
	if id := domain.MissionIDFor("DEC"); id != "M-DEC" {
		t.Errorf("mission %s", id)
	}
}

// F-DEC-05, F-TEL-10: a command is obeyed until it expires, a revocation whenever it
// comes.
func TestMission_CommandExpiresAndRevocationDoesNot(t *testing.T) {
	expires := time.Date(2026, 3, 1, 8, 0, 20, 0, time.UTC)
	for status, want := range map[domain.MissionStatus]domain.Command{
		domain.MissionActive:    {ExpiresAt: expires},
		domain.MissionCompleted: {ExpiresAt: expires}, // the way home
		domain.MissionFailed:    {Revoke: true},
	} {
		c := domain.Mission{ID: "M1", Status: status, CommandExpiresAt: expires}.Command()
		if c.Mission.ID != "M1" || c.Revoke != want.Revoke || !c.ExpiresAt.Equal(want.ExpiresAt) {
			t.Errorf("%s: %+v", status, c)
		}
	}
}

// F-DLQ-01: whatever a message calls itself, the record of its discard has an id.
func TestDiscardIDFor_IsAlwaysLegal(t *testing.T) {
	if id := domain.DiscardIDFor("orders", "17"); id != "orders-17" {
		t.Errorf("discard %s", id)
	}
	for _, messageID := range []string{"a/b", "a\x00b", strings.Repeat("7", 1024)} {
		if err := domain.CheckID(string(domain.DiscardIDFor("orders", messageID))); err != nil {
			t.Errorf("discard of %.9q %v", messageID, err)
		}
	}
}

// F-ORD-02: whatever a requester changes makes another request, and nothing else
// does.
func TestOrderRequest_HashChangesWithAnyContent(t *testing.T) {
	request := func() domain.OrderRequest {
		return domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &domain.Position{Lat: 48.8, Lon: 2.3},
			Delivery: domain.Position{Lat: 48.9, Lon: 2.4}, WeightKg: 1, RequesterID: "ward 4",
		}}
	}
	seen := map[string]string{request().Hash(): "nothing"}
	day := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for name, change := range map[string]func(*domain.OrderRequest){
		"id":           func(r *domain.OrderRequest) { r.ID = "O2" },
		"priority":     func(r *domain.OrderRequest) { r.Priority = domain.PriorityCritical },
		"product":      func(r *domain.OrderRequest) { r.ProductType = "VACCINE" },
		"pickup":       func(r *domain.OrderRequest) { r.Pickup.Lat++ },
		"pickup's lon": func(r *domain.OrderRequest) { r.Pickup.Lon++ },
		"no pickup":    func(r *domain.OrderRequest) { r.Pickup = nil },
		"delivery":     func(r *domain.OrderRequest) { r.Delivery.Lat++ },
		"lon":          func(r *domain.OrderRequest) { r.Delivery.Lon++ },
		"weight":       func(r *domain.OrderRequest) { r.WeightKg = 2 },
		"cold chain":   func(r *domain.OrderRequest) { r.ColdChain = true },
		"requester":    func(r *domain.OrderRequest) { r.RequesterID = "ward 5" },
		"created":      func(r *domain.OrderRequest) { r.CreatedAt = day },
		"deadline":     func(r *domain.OrderRequest) { r.Deadline = day },
	} {
		changed := request()
		change(&changed)
		if same, twice := seen[changed.Hash()]; twice {
			t.Errorf("another %s hashes like another %s", name, same)
		}
		seen[changed.Hash()] = name
	}
	if again := request(); seen[again.Hash()] != "nothing" {
		t.Error("the same request hashes otherwise")
	}
}

// Distances known by geometry alone, on a sphere of 6,371 km.
func TestPosition_DistanceMatchesGeometry(t *testing.T) {
	const quarter = math.Pi / 2 * 6_371_000
	for _, tt := range []struct {
		name   string
		p, q   domain.Position
		metres float64
	}{
		{"nowhere", domain.Position{Lat: 48, Lon: 2}, domain.Position{Lat: 48, Lon: 2}, 0},
		{"a degree north", domain.Position{Lat: 48}, domain.Position{Lat: 49}, quarter / 90},
		{"a degree along the equator", domain.Position{}, domain.Position{Lon: 1}, quarter / 90},
		{"equator to pole", domain.Position{Lon: 77}, domain.Position{Lat: 90}, quarter},
		{"to the other side", domain.Position{Lat: 10, Lon: 20}, domain.Position{Lat: -10, Lon: -160}, 2 * quarter},
		{"across the pole", domain.Position{Lat: 60}, domain.Position{Lat: 60, Lon: 180}, quarter * 60 / 90},
		{"across the date line", domain.Position{Lon: 179.5}, domain.Position{Lon: -179.5}, quarter / 90},
	} {
		there, back := tt.p.DistanceMetres(tt.q), tt.q.DistanceMetres(tt.p)
		if math.Abs(there-tt.metres) > 0.01 || math.Abs(back-tt.metres) > 0.01 {
			t.Errorf("%s: %f there and %f back, want %f", tt.name, there, back, tt.metres)
		}
	}
}

func TestPosition_TowardsStopsAtTheTarget(t *testing.T) {
	p, q := domain.Position{Lat: 48.85, Lon: 2.35}, domain.Position{Lat: 48.87, Lon: 2.38}
	whole := p.DistanceMetres(q)
	if got := p.Towards(q, whole/4); math.Abs(p.DistanceMetres(got)-whole/4) > 1 || math.Abs(got.DistanceMetres(q)-whole*3/4) > 1 {
		t.Errorf("a quarter of the way: %+v", got)
	}
	for _, metres := range []float64{whole, whole + 1} {
		if got := p.Towards(q, metres); got != q {
			t.Errorf("%f of %f m: %+v", metres, whole, got)
		}
	}
	if got := p.Towards(p, 0); got != p {
		t.Errorf("from a place to itself: %+v", got)
	}
}

func TestPosition_TowardsCrossesTheAntimeridian(t *testing.T) {
	west, east := domain.Position{Lat: -16.5, Lon: 179.95}, domain.Position{Lat: -16.6, Lon: -179.95}
	whole := west.DistanceMetres(east)
	for _, way := range [][2]domain.Position{{west, east}, {east, west}} {
		for _, share := range []float64{0.25, 0.5, 0.75} {
			got := way[0].Towards(way[1], whole*share)
			if math.Abs(got.Lon) < 179.9 || math.Abs(got.Lon) > 180 ||
				math.Abs(way[0].DistanceMetres(got)-whole*share) > 5 || math.Abs(got.DistanceMetres(way[1])-whole*(1-share)) > 5 {
				t.Errorf("%v of the way from %+v to %+v: %+v", share, way[0], way[1], got)
			}
		}
	}
}

// F-DOC-01: two drones have the same state if and only if their events would record the same.
func TestSameDroneState_ComparesAllThatEventsRecord(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	changes := map[string]func(*domain.Drone){
		"currentMissionId": func(d *domain.Drone) { d.CurrentMissionID = "M" },
		"missionAcked":     func(d *domain.Drone) { d.MissionAcked = true },
		"missionMoved":     func(d *domain.Drone) { d.MissionMoved = true },
		"emergencyLatched": func(d *domain.Drone) { d.EmergencyLatched = true },
		"ghostMissionId":   func(d *domain.Drone) { d.GhostMissionID = "M" },
		"grounded":         func(d *domain.Drone) { d.Grounded = true },
		"unregistered":     func(d *domain.Drone) { d.Unregistered = true },
		"retired":          func(d *domain.Drone) { d.RetiredAt = at },
		"otherIdentity":    func(d *domain.Drone) { d.SerialNumber, d.ReportedSerial = "A", "B" },
		"dueAt":            func(d *domain.Drone) { d.Due = []domain.DueItem{{Item: "props", DueLimits: domain.DueLimits{At: at}}} },
		"implausible":      func(d *domain.Drone) { d.Implausible = "claimed 3 stops" },
	}
	recorded := map[string]any{}
	for name, change := range changes {
		var d domain.Drone
		change(&d)
		if domain.SameDroneState(&domain.Drone{}, &d) || !domain.SameDroneState(&d, &d) {
			t.Errorf("a change of %s goes unseen", name)
		}
		maps.Copy(recorded, domain.DroneState(d))
	}
	for name := range recorded {
		if changes[name] == nil {
			t.Errorf("%s is recorded and not tested", name)
		}
	}
}
