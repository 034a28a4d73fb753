package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/explain"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

// F-ORD-06: a drone that flies could deliver the order on its way, as a cycle might decide.
func TestAPI_ExplainsWhatADroneInFlightCouldDo(t *testing.T) {
	s := serve(t)
	s.fleet()
	completed := 1
	report := domain.Telemetry{
		DroneID: "D1", Timestamp: time.Now(), Position: domain.Position{Lat: home.Lat + 0.008, Lon: home.Lon}, Battery: 88, SpeedKmh: 50,
		Status: domain.DroneMoving, MissionID: "M-DEC-1", MissionRevision: 1, SupportsAmendments: true, CompletedStops: &completed,
	}
	if err := s.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
	var x explain.OrderExplanation
	s.get("/api/v1/orders/O2/explanation", http.StatusOK, &x)
	for _, c := range x.Why.Nearest {
		if joins := c.JoinArrival != nil; joins != (c.DroneID == "D1") {
			t.Errorf("drone %s: %+v", c.DroneID, c)
		}
	}
}

// F-ORD-06: the drones that could take an order, and who pays if one must. D2 is the only idle one.
func TestAPI_ListsCandidatesForAnOrder(t *testing.T) {
	s := serve(t)
	s.fleet()
	var now struct {
		OrderID, EarliestDroneID string
		ServerTime, Deadline     time.Time
		Plan                     struct{ DroneID string }
		Candidates               []struct {
			DroneID string
			Lacks   []string
		}
		Pinned *struct {
			Plan struct{ DroneID, Reason string }
		}
	}
	s.get("/api/v1/orders/O2/candidates", http.StatusOK, &now)
	if now.OrderID != "O2" || now.EarliestDroneID != "D2" || now.Plan.DroneID != "D2" || len(now.Candidates) != 3 || now.Pinned != nil || now.ServerTime.IsZero() || now.Deadline.IsZero() {
		t.Errorf("%+v", now)
	}
	if now.Candidates[0].DroneID != "D2" || len(now.Candidates[0].Lacks) > 0 {
		t.Errorf("first candidate %+v", now.Candidates[0])
	}
	s.get("/api/v1/orders/O2/candidates?drone=D1", http.StatusOK, &now)
	if now.Pinned == nil || now.Pinned.Plan.DroneID != "" || !strings.HasPrefix(now.Pinned.Plan.Reason, "no_drone") {
		t.Errorf("pinned to a drone that flies: %+v", now.Pinned)
	}
	s.refused(http.MethodGet, "/api/v1/orders/O1/candidates", http.StatusConflict, "with drone D1")
	// A held order can be pinned: as if it were released.
	if s.get("/api/v1/orders/O3/candidates?drone=D2", http.StatusOK, &now); len(now.Candidates) != 3 || now.Pinned == nil || now.Pinned.Plan.DroneID != "D2" {
		t.Errorf("candidates for a held order: %+v", now)
	}
	s.refused(http.MethodGet, "/api/v1/orders/O9/candidates", http.StatusNotFound, "O9")
	s.refused(http.MethodGet, "/api/v1/orders/O2/candidates?drone=a/b", http.StatusBadRequest, "drone")
}

// F-ORD-06: why an order waits, now and in the past. O2 needs D2, the only idle drone; O1
// flies with D1; O3 is held.
func TestAPI_ExplainsWhyAnOrderWaits(t *testing.T) {
	s := serve(t)
	s.fleet()
	var x explain.OrderExplanation
	s.get("/api/v1/orders/O2/explanation?addDrones=1", http.StatusOK, &x)
	if x.Status != "PENDING" || x.DepotID != "DEPOT-1" || x.Why == nil || len(x.Why.Nearest) != 3 || x.Why.WhatIf == nil {
		t.Fatalf("%+v", x)
	}
	doing := map[string]string{}
	for _, c := range x.Why.Nearest {
		doing[string(c.DroneID)] = c.Doing + ": " + strings.Join(c.Lacks, "; ")
	}
	if doing["D2"] != "idle: " || !strings.HasPrefix(doing["D1"], "flies mission M-DEC-1: ") || doing["D3"] != "MAINTENANCE: readiness: it is MAINTENANCE" {
		t.Errorf("nearest drones %v", doing)
	}
	for id, want := range map[string]string{"O1": "with drone D1, mission M-DEC-1", "O3": "held: address in doubt"} {
		x = explain.OrderExplanation{}
		if s.get("/api/v1/orders/"+id+"/explanation", http.StatusOK, &x); x.Outcome != want || x.Why == nil || x.Held != (id == "O3") {
			t.Fatalf("%s: %+v", id, x)
		}
		// D1 has O1; the next best would be D2. O3 would go to D2 if it were released.
		has := map[string]domain.DroneID{"O1": "D1", "O3": "D2"}[id]
		if x.Why.Plan.DroneID != has || slices.ContainsFunc(x.Why.Nearest, func(c planner.Candidate) bool { return id == "O1" && c.DroneID == "D1" }) ||
			id == "O1" && (x.Why.Instead == nil || x.Why.Instead.Plan.DroneID != "D2") {
			t.Errorf("%s: %+v", id, *x.Why)
		}
	}
	before := time.Now()
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "not needed"); err != nil {
		t.Fatal(err)
	}
	x = explain.OrderExplanation{}
	s.get("/api/v1/orders/O2/explanation?at="+url.QueryEscape(before.Format(time.RFC3339Nano)), http.StatusOK, &x)
	if x.Outcome != "cancelled" || x.Status != "PENDING" || x.Why == nil || !x.ReadTime.Equal(before.Truncate(time.Microsecond)) {
		t.Errorf("a past moment: %+v", x)
	}
	at := func(t time.Time) string { return "?at=" + url.QueryEscape(t.Format(time.RFC3339Nano)) }
	for path, refusal := range map[string]struct {
		status int
		part   string
	}{
		"/api/v1/orders/O9/explanation":                                {http.StatusNotFound, "O9"},
		"/api/v1/orders/O2/explanation?at=noon":                        {http.StatusBadRequest, "give a time such as"},
		"/api/v1/orders/O2/explanation?addDrones=-1":                   {http.StatusBadRequest, "give 0 to 100"},
		"/api/v1/orders/O2/explanation?addSlots=101":                   {http.StatusBadRequest, "give 0 to 100"},
		"/api/v1/orders/O2/explanation?dropReserve=no":                 {http.StatusBadRequest, "give true"},
		"/api/v1/orders/O2/explanation" + at(time.Now()):               {http.StatusConflict, "order O2 was not open"},
		"/api/v1/orders/O2/explanation" + at(before.AddDate(0, -1, 0)): {http.StatusGone, "point-in-time recovery"},
	} {
		s.refused(http.MethodGet, path, refusal.status, refusal.part)
	}
}
