package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// F-AUD-18: the next shift sees open orders, drones out of service, alerts with who took note, and what
// people did, also those who are not operators of this process.
func TestAPI_HandsTheFleetOver(t *testing.T) {
	s := serve(t)
	began := time.Now().Add(-time.Minute)
	s.fleet()
	ctx := firestoretx.By(t.Context(), "bob")
	if err := s.store.GroundDrone(ctx, "D2", "rotor"); err != nil {
		t.Fatal(err)
	}
	critical, late := domain.PriorityCritical, time.Now().Add(time.Minute) // D1 lands later
	if err := s.store.ChangeOrder(ctx, "O2", domain.OrderChange{Priority: &critical, Deadline: &late}, "surgery"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.AcknowledgeAlert(t.Context(), domain.AlertAck{ID: "CRITICAL_UNSERVED:O2", By: "bob", Reason: "calls a taxi"}); err != nil {
		t.Fatal(err)
	}
	var now struct {
		ServerTime, ReadTime, Since time.Time
		Orders                      []entity.LiveOrder
		Drones                      []entity.Drone
		Alerts                      []entity.Alert
		Steps                       []operator.StepJSON
		Events                      []entity.Event
	}
	path := "/api/v1/handover?since=" + url.QueryEscape(began.Format(time.RFC3339Nano))
	s.get(path, http.StatusOK, &now)
	var ids, kinds, steps []string
	for _, o := range now.Orders {
		ids = append(ids, string(o.ID))
	}
	for _, d := range now.Drones {
		ids = append(ids, string(d.ID))
	}
	if got := strings.Join(ids, " "); got != "O2 O1 O3 D2 D3" && got != "O2 O1 O3 D3 D2" {
		t.Errorf("lists %s", got)
	}
	for _, a := range now.Alerts {
		kinds = append(kinds, a.ID)
		if (a.Acknowledged != nil) != (a.ID == "CRITICAL_UNSERVED:O2") {
			t.Errorf("%s: acknowledged %v", a.ID, a.Acknowledged)
		}
	}
	if len(kinds) == 0 || kinds[0] != "CRITICAL_UNSERVED:O2" {
		t.Errorf("alerts %v", kinds)
	}
	for _, step := range now.Steps {
		steps = append(steps, step.By+": "+step.What)
	}
	for i, want := range []string{"ann: order O3: stays PENDING;", "bob: drone D2: stays IDLE;", "bob: order O2: stays PENDING;", "bob: alert CRITICAL_UNSERVED:O2: acknowledged because calls a taxi"} {
		if i >= len(steps) || !strings.HasPrefix(steps[i], want) {
			t.Fatalf("steps %s\nwant one with %q", strings.Join(steps, "\n"), want)
		}
	}
	if len(now.Events) != 3 || now.Events[1].ID != "D2" || now.Events[1].By != "bob" {
		t.Errorf("events %v", now.Events)
	}
	if now.ServerTime.IsZero() || now.ReadTime.IsZero() || !now.Since.Equal(began) {
		t.Errorf("times %s, %s, %s", now.ServerTime, now.ReadTime, now.Since)
	}
	s.get("/api/v1/handover?since="+url.QueryEscape(time.Now().Format(time.RFC3339Nano)), http.StatusOK, &now)
	if len(now.Steps) > 0 {
		t.Errorf("steps of before: %v", now.Steps)
	}
	s.refused(http.MethodGet, "/api/v1/handover", http.StatusBadRequest, "since is missing")
	s.refused(http.MethodGet, "/api/v1/handover?since=1970-01-01T00:00:00Z", http.StatusBadRequest, "more than 7 days ago")
	s.refused(http.MethodGet, "/api/v1/handover?since="+fmt.Sprint(time.Now().Year()+1)+"-01-01T00:00:00Z", http.StatusBadRequest, "not in the past")
}
