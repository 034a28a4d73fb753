package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
)

// F-LIVE-04: the fleet as it was at a time that Firestore still knows.
func TestAPI_ShowsThePast(t *testing.T) {
	s := serve(t)
	s.fleet()
	if err := s.store.RecordCycle(t.Context(), domain.Cycle{ID: "C1", DepotID: "DEPOT-1", StartedAt: time.Now(), Outcome: domain.CyclePublished}); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "not needed"); err != nil {
		t.Fatal(err)
	}
	has := func(at time.Time) map[string]string {
		var past struct {
			ReadTime time.Time
			Entities []struct {
				Kind, ID string
				Entity   struct {
					Status  string
					Applied int
					Refused map[string]int
				}
			}
		}
		s.get("/api/v1/snapshot?at="+url.QueryEscape(at.Format(time.RFC3339Nano)), http.StatusOK, &past)
		if !past.ReadTime.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("read at %s, want %s", past.ReadTime, at)
		}
		found := map[string]string{}
		for _, e := range past.Entities {
			found[e.Kind+"/"+e.ID] = e.Entity.Status
			if e.Kind == "cycle" {
				found["cycle/"+e.ID] = fmt.Sprintf("%d applied, %v refused", e.Entity.Applied, e.Entity.Refused)
			}
		}
		return found
	}
	then, now := has(before), has(time.Now())
	if got := then["cycle/C1"]; got != "1 applied, map[DRONE_NOT_IDLE:1] refused" {
		t.Errorf("a cycle of the past: %q", got)
	}
	for key, status := range map[string]string{"order/O2": "PENDING", "order/O1": "ASSIGNED", "drone/D1": "MOVING", "mission/M-DEC-1": "ACTIVE", "depot/DEPOT-1": "", "warehouse/W1": ""} {
		if got, is := then[key]; !is || got != status {
			t.Errorf("%s was %q, %t, want %q", key, got, is, status)
		}
	}
	if _, is := now["order/O2"]; is {
		t.Error("an order that is over is shown")
	}
	for at, refusal := range map[string]struct {
		status int
		part   string
	}{
		"": {400, "at is missing"}, "?at=noon": {400, `at is "noon"`}, "?at=0001-01-01T00:00:00Z": {400, "before 1970"}, "?at=2020-01-01T00:00:00Z": {410, "Firestore keeps an hour"}, "?at=2120-01-01T00:00:00Z": {410, "in the future"},
	} {
		s.refused(http.MethodGet, "/api/v1/snapshot"+at, refusal.status, refusal.part)
	}
}

// replayed is an answer of GET /api/v1/replay.
type replayed struct {
	Moments []struct {
		ReadTime  time.Time
		Whole     bool
		Upserts   []struct{ Kind, ID string }
		Deletes   []struct{ Kind, ID string }
		Positions [][]any
	}
	Events []struct {
		Kind, Text, Reason, By string
		Entity                 struct{ Kind, ID string }
	}
}

func replayPath(from, to time.Time) string {
	return "/api/v1/replay?every=1&from=" + url.QueryEscape(from.Format(time.RFC3339Nano)) + "&to=" + url.QueryEscape(to.Format(time.RFC3339Nano))
}

// F-LIVE-08: a replay has a whole moment, then what changed from one moment to the next, and the
// events that stand out.
func TestAPI_ReplaysAnInterval(t *testing.T) {
	s := serve(t)
	s.fleet()
	from := time.Now()
	if err := s.store.CancelOrder(firestoretx.By(t.Context(), "ann"), "O2", "not needed"); err != nil {
		t.Fatal(err)
	}
	north := domain.Position{Lat: home.Lat + 0.001, Lon: home.Lon}
	for _, err := range s.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{{DroneID: "D2", Timestamp: time.Now(), Position: north, Battery: 90, Status: domain.DroneIdle}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	to := from.Add(time.Second)
	time.Sleep(time.Until(to.Add(10 * time.Millisecond))) // Firestore's history has its own clock
	var r replayed
	s.get(replayPath(from, to), http.StatusOK, &r)
	if len(r.Moments) != 2 || !r.Moments[0].Whole || r.Moments[1].Whole {
		t.Fatalf("moments %+v", r.Moments)
	}
	kinds := map[string]int{}
	for _, u := range r.Moments[0].Upserts {
		kinds[u.Kind]++
	}
	if kinds["drone"] != 3 || kinds["order"] != 3 || kinds["mission"] != 1 || kinds["depot"] != 1 || kinds["warehouse"] != 1 {
		t.Errorf("the first moment has %v", kinds)
	}
	if got := fmt.Sprint(r.Moments[1].Deletes); got != "[{order O2}]" {
		t.Errorf("gone: %s", got)
	}
	if p := r.Moments[1].Positions; len(p) != 1 || p[0][0] != "D2" || p[0][1] != north.Lat {
		t.Errorf("positions %v, upserts %v", p, r.Moments[1].Upserts)
	}
	if len(r.Events) != 1 || r.Events[0].Kind != "OPERATOR" || r.Events[0].By != "ann" || r.Events[0].Entity.ID != "O2" || !strings.Contains(r.Events[0].Text, "CANCELLED") {
		t.Errorf("events %+v", r.Events)
	}
	for path, refusal := range map[string]struct {
		status int
		part   string
	}{
		replayPath(to, from): {400, "to is before from"}, replayPath(from, from.Add(10*time.Second)): {400, "to is in the future"},
		replayPath(from.Add(-time.Minute), from):                                   {400, "asks for 61 moments; give a time at most 9s after from"},
		"/api/v1/replay?every=0&from=2020-01-01T00:00:00Z&to=2020-01-01T00:00:00Z": {400, "every is"},
		"/api/v1/replay?from=2020-01-01T00:00:00Z&to=2020-01-01T00:00:00Z":         {410, "Firestore keeps an hour"},
	} {
		s.refused(http.MethodGet, path, refusal.status, refusal.part)
	}
}

// F-LIVE-08
func TestRemarks_NameWhatStandsOut(t *testing.T) {
	for _, tt := range []struct {
		event domain.Event
		want  string
	}{
		{domain.Event{Entity: domain.EntityOrder, From: "PENDING", To: "PENDING", Cause: domain.CauseSweeper, State: map[string]any{"late": true}}, "ORDER_LATE"},
		{domain.Event{Entity: domain.EntityOrder, From: "ASSIGNED", To: "PENDING", Cause: domain.CauseSweeper, State: map[string]any{"late": true}}, ""},
		{domain.Event{Entity: domain.EntityDrone, From: "MOVING", To: "UNKNOWN", Cause: domain.CauseSweeper}, "DRONE_SILENT"},
		{domain.Event{Entity: domain.EntityDrone, From: "MOVING", To: "EMERGENCY", Cause: domain.CauseTelemetry}, "DRONE_EMERGENCY"},
		{domain.Event{Entity: domain.EntityDrone, From: "EMERGENCY", To: "EMERGENCY", Cause: domain.CauseTelemetry}, ""},
		{domain.Event{Entity: domain.EntityDrone, From: "IDLE", To: "PROBLEM", Cause: domain.CauseTelemetry}, "DRONE_PROBLEM"},
		{domain.Event{Entity: domain.EntityMission, From: "ACTIVE", To: "FAILED", Cause: domain.CauseSweeper}, "MISSION_FAILED"},
		{domain.Event{Entity: domain.EntityMission, From: "ACTIVE", To: "ACTIVE", Cause: domain.CauseOperator, State: map[string]any{"recalled": true}}, "MISSION_RECALLED"},
		{domain.Event{Entity: domain.EntityDrone, From: "IDLE", To: "IDLE", Cause: domain.CauseOperator}, "OPERATOR"},
	} {
		if got := httpapi.RemarkOn(tt.event); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.event, got, tt.want)
		}
	}
}
