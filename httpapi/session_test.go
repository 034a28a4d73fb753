package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
)

// session is the answer of GET /api/v1/session.
type session struct {
	Name, Method string
	Roles, Verbs []string
	Expires      time.Time
}

// F-API-06: a caller learns who it is and what it may do; a viewer has no verb.
func TestAPI_SaysWhoTheCallerIs(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	var verbs int
	for _, e := range g.api.Endpoints() {
		if e.Method != http.MethodGet {
			verbs++
		}
	}
	var viewer, operator session
	for token, s := range map[string]*session{g.token(asViewer): &viewer, g.token(asOperator): &operator} {
		if err := json.Unmarshal([]byte(g.asks(token, "GET", "/api/v1/session", "", 200).body), s); err != nil {
			t.Fatal(err)
		}
		if s.Method != "token" || time.Until(s.Expires) < time.Hour-time.Minute || time.Until(s.Expires) > time.Hour+2*time.Minute {
			t.Errorf("%+v", s)
		}
	}
	if viewer.Name != "subject subject-1" || !slices.Equal(viewer.Roles, []string{"viewer"}) || len(viewer.Verbs) != 0 {
		t.Errorf("viewer: %+v", viewer)
	}
	if operator.Name != "ann@example.org" || !slices.Equal(operator.Roles, []string{"viewer", "operator"}) || len(operator.Verbs) != verbs ||
		!slices.Contains(operator.Verbs, "orders hold") || !slices.Contains(operator.Verbs, "alerts acknowledge") {
		t.Errorf("operator: %+v", operator)
	}
	var local map[string]any
	serve(t).get("/api/v1/session", http.StatusOK, &local)
	if local["method"] != "none" || local["name"] != nil || local["expires"] != nil || len(local["verbs"].([]any)) != 0 {
		t.Errorf("without credentials: %v", local)
	}
}
