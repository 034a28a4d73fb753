package httpapi_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/testkit/docgen"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

var updateDocument = flag.Bool("update", false, "rewrite the table of docs/api.md")

// answers are what a route answers each kind of caller: yes, own, 401 or 403.
type answers map[string]string

// kinds are the kinds of callers, in the order of the document.
var kinds = []string{"no credentials, no issuer", "no credentials", "token without a role", "viewer", "auditor", "requester", "operator", "drone's key"}

// ownBodies are bodies with which a requester changes an order of its own. Every such route needs one.
var ownBodies = map[string]string{
	"POST /api/v1/orders/{id}/cancel": `{"reason": "x"}`,
	"PATCH /api/v1/orders/{id}":       `{"reason": "x", "priority": "CRITICAL"}`,
}

// F-INT-05, F-INT-06, F-API-01, F-REC-13: every route answers every role as docs/api.md says, by token
// or by key: auditors read everything and change nothing, requesters see and change orders of their
// own and nothing else, drones do nothing here.
func TestAPI_AnswersEachRoleAsDocumented(t *testing.T) {
	g, open := newGuarded(t, httpapi.MetricsViewer), newOpen(t, httpapi.Access{Metrics: httpapi.MetricsOpen})
	g.orderOf("MINE", "HOSPITAL-7")
	g.orderOf("THEIRS", "HOSPITAL-9")
	callers := map[string][]string{ // their credentials
		"no credentials": {""}, "token without a role": {g.token(asNobody), g.token(identitytest.Claims{"groups": []string{"wards"}})},
		"viewer": {g.token(asViewer), g.makeKey(domain.KeyViewer)}, "auditor": {g.token(asAuditor)},
		"requester": {g.token(asRequester), g.makeKey(domain.KeyRequester)}, "operator": {g.token(asOperator), g.makeKey(domain.KeyOperator)},
		"drone's key": {g.makeKey(domain.KeyDrone)},
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| route | %s |\n|-|%s\n", strings.Join(kinds, " | "), strings.Repeat("-|", len(kinds)))
	asked := map[string]int{}
	for _, e := range g.api.Endpoints() {
		route := e.Method + " " + e.Path
		got := answers{}
		for kind, credentials := range callers {
			for _, credential := range credentials {
				answer := g.answerTo(e, credential, "THEIRS", "{}")
				if kind == "requester" && answer == "yes" && e.Role != "" {
					answer = g.ownAnswer(e, credential)
				}
				if got[kind] != "" && got[kind] != answer {
					t.Errorf("%s: a %s is answered %s with one credential and %s with another", route, kind, got[kind], answer)
				}
				got[kind] = answer
			}
		}
		got["no credentials, no issuer"] = open.answerTo(e, "", "THEIRS", "{}")
		checkRoute(t, e, got)
		asked[e.Method]++
		fmt.Fprintf(&table, "| `%s` |", route)
		for _, kind := range kinds {
			fmt.Fprintf(&table, " %s |", got[kind])
		}
		table.WriteByte('\n')
	}
	if asked["GET"] < 30 || asked["POST"] < 25 {
		t.Errorf("asked %v; these are not all routes", asked)
	}
	for _, id := range []domain.OrderID{"THEIRS", "MINE"} {
		if o, err := g.store.Order(t.Context(), id); err != nil || o.Held || (o.Status == domain.OrderCancelled) != (id == "MINE") {
			t.Errorf("%+v, %v; want it cancelled if it is the requester's", o, err)
		}
	}
	g.keepsSecrets()
	err := docgen.Hold("../docs/api.md", map[string]string{"roles": table.String(), "routes": docgen.Elsewhere}, *updateDocument, "go test ./httpapi -run TestAPI_AnswersEachRoleAsDocumented -update")
	if err != nil {
		t.Error(err)
	}
}

// checkRoute holds the answers of one route to the rules, whatever the document says.
func checkRoute(t *testing.T, e httpapi.Endpoint, got answers) {
	t.Helper()
	want := answers{"no credentials": "401", "token without a role": "403", "viewer": "yes", "auditor": "yes", "requester": "403", "operator": "yes", "drone's key": "403", "no credentials, no issuer": "yes"}
	ofRequesters := e.Path == "/api/v1/session" || e.Path == "/api/v1/stream" || e.Path == "/api/v1/orders" || strings.HasPrefix(e.Path, "/api/v1/orders/{id}")
	switch {
	case e.Path == "/healthz", e.Path == "/readyz", e.Path == "/api/openapi.json":
		for kind := range want {
			want[kind] = "yes"
		}
	case e.Method != http.MethodGet:
		want["viewer"], want["auditor"], want["no credentials, no issuer"] = "403", "403", "403"
	}
	if ofRequesters && got["requester"] == "own" {
		want["requester"] = "own"
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s %s answers %v, want %v", e.Method, e.Path, got, want)
	}
}

// answerTo is how a request with credentials is answered: 401, 403 or yes.
func (g *guarded) answerTo(e httpapi.Endpoint, credential, id, body string) string {
	g.t.Helper()
	switch status, _ := g.send(e, credential, id, body); status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprint(status)
	}
	return "yes"
}

// ownAnswer expects that a requester sees and changes the order MINE and not THEIRS.
func (g *guarded) ownAnswer(e httpapi.Endpoint, credential string) string {
	g.t.Helper()
	route := e.Method + " " + e.Path
	body := ownBodies[route]
	if strings.Contains(e.Path, "{id}") {
		if e.Method != http.MethodGet && body == "" {
			g.t.Errorf("%s: ownBodies has no body for it", route)
		}
		if status, text := g.send(e, credential, "THEIRS", body); status != http.StatusNotFound {
			g.t.Errorf("%s of another requester's order answers %d: %s", route, status, text)
		}
		if status, text := g.send(e, credential, "MINE", body); status != http.StatusOK {
			g.t.Errorf("%s of an own order answers %d: %s", route, status, text)
		}
		return "own"
	}
	if _, text := g.send(e, credential, "", "{}"); strings.Contains(text, "THEIRS") || strings.Contains(text, "HOSPITAL-9") {
		g.t.Errorf("%s shows a requester what is another's: %s", route, text)
	}
	return "own"
}

// send sends a request and returns the answer. Only the head of a stream is asked for: it has no
// end.
func (g *guarded) send(e httpapi.Endpoint, credential, id, body string) (status int, text string) {
	g.t.Helper()
	method := e.Method
	if e.Path == "/api/v1/stream" {
		method = http.MethodHead
	}
	if e.Method == http.MethodGet {
		body = ""
	}
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+strings.ReplaceAll(e.Path, "{id}", id), strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
		if !slices.Contains(g.sent, credential) {
			g.sent = append(g.sent, credential)
		}
	}
	if e.Method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(read)
}

// orderOf stores an order of a requester.
func (s *served) orderOf(id domain.OrderID, requester string) {
	s.t.Helper()
	err := s.store.IngestOrder(s.t.Context(), domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.86, Lon: 2.36}, RequesterID: requester,
	}}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
}
