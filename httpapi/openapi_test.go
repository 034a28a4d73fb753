package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// documentOf is the OpenAPI document that an API serves.
func documentOf(t testing.TB, api http.Handler) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/openapi.json", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("document: %d %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// strictDocument is the document, with only those fields allowed in answers that it
// describes.
var strictDocument = sync.OnceValues(func() (*openapi3.T, error) {
	w := httptest.NewRecorder()
	httpapi.New(httpapi.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/openapi.json", nil))
	var raw any
	if err := json.Unmarshal(w.Body.Bytes(), &raw); err != nil {
		return nil, err
	}
	closeObjects(raw)
	data, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(data)
})

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, described := v["properties"].(map[string]any); described && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, field := range v {
			closeObjects(field)
		}
	case []any:
		for _, entry := range v {
			closeObjects(entry)
		}
	}
}

// described checks every answer that a test receives against the OpenAPI document.
type described struct {
	t    testing.TB
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d described) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	mediaType := resp.Header.Get("Content-Type")
	if mediaType != "application/json" && mediaType != "application/problem+json" || r.Method == http.MethodHead {
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if err := agrees(r.Method, r.URL.Path, mediaType, body); err != nil {
		d.t.Errorf("%s %s: the answer is not as the OpenAPI document says: %v\n%s", r.Method, r.URL.Path, err, body)
	}
	return resp, nil
}

// agrees compares an answer with the document.
func agrees(method, path, mediaType string, body []byte) error {
	doc, err := strictDocument()
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	content := doc.Components.Responses["Problem"].Value.Content
	if mediaType == "application/json" {
		operation := operationOf(doc, method, path)
		if operation == nil {
			return fmt.Errorf("it describes no such operation")
		}
		content = operation.Responses.Status(successOf(operation)).Value.Content
	}
	if content[mediaType] == nil {
		return fmt.Errorf("it describes no %s", mediaType)
	}
	return content[mediaType].Schema.Value.VisitJSON(value, openapi3.MultiErrors())
}

// successOf is the status of an operation's success.
func successOf(o *openapi3.Operation) int {
	if o.Responses.Status(http.StatusAccepted) != nil {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// operationOf is the operation that a path belongs to.
func operationOf(doc *openapi3.T, method, path string) *openapi3.Operation {
	if item := doc.Paths.Value(path); item != nil {
		return item.GetOperation(method)
	}
	for pattern, item := range doc.Paths.Map() {
		before, after, named := strings.Cut(pattern, "{id}")
		if named && len(path) > len(before)+len(after) && strings.HasPrefix(path, before) && strings.HasSuffix(path, after) &&
			!strings.Contains(path[len(before):len(path)-len(after)], "/") {
			return item.GetOperation(method)
		}
	}
	return nil
}

// F-API-08
func TestOpenAPI_IsValid(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(documentOf(t, httpapi.New(httpapi.Config{})))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
}

// F-API-08: the document says of every object which fields it has, and of every list what
// is in it. Only the state that an event records may be anything: a newer version may
// record more.
func TestOpenAPI_HasNoLooseSchemas(t *testing.T) {
	var document map[string]any
	if err := json.Unmarshal(documentOf(t, httpapi.New(httpapi.Config{})), &document); err != nil {
		t.Fatal(err)
	}
	if loose := looseSchemas("", document); !slices.Equal(loose, []string{
		"/components/schemas/Event/properties/state/additionalProperties", "/paths//api/openapi.json/get/responses/200/content/application/json/schema",
	}) {
		t.Errorf("loose: %q", loose)
	}
	broken := map[string]any{"schema": map[string]any{"type": "object"}, "items": map[string]any{"type": "array"}}
	if loose := looseSchemas("", broken); len(loose) != 2 {
		t.Errorf("of two loose schemas %q are found", loose)
	}
}

// looseSchemas lists the schemas that accept more than they say.
func looseSchemas(path string, v any) (loose []string) {
	switch v := v.(type) {
	case map[string]any:
		_, hasFields := v["properties"]
		_, isMap := v["additionalProperties"]
		_, hasItems := v["items"]
		if v["type"] == "object" && !hasFields && !isMap || v["type"] == "array" && !hasItems ||
			len(v) == 0 && (strings.HasSuffix(path, "/additionalProperties") || strings.HasSuffix(path, "/items") || strings.HasSuffix(path, "/schema")) {
			loose = append(loose, path)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "example" && name != "examples" {
				loose = append(loose, looseSchemas(path+"/"+name, v[name])...)
			}
		}
	case []any:
		for i, entry := range v {
			loose = append(loose, looseSchemas(fmt.Sprintf("%s/%d", path, i), entry)...)
		}
	}
	return loose
}

// F-API-08: places may have every field that the document names.
func TestOpenAPI_DescribesPlacesAsTheyAreRead(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	token := g.token(asOperator)
	doc, err := strictDocument()
	if err != nil {
		t.Fatal(err)
	}
	for collection, c := range map[string]struct{ schema, place string }{
		"depots":     {"DepotForm", `{"id": "DEPOT-8", "name": "North", "position": {"lat": 48, "lon": 2}, "capacity": 3, "chargingSlots": 2, "group": "north"}`},
		"warehouses": {"WarehouseForm", `{"id": "W8", "name": "North", "position": {"lat": 48, "lon": 2}, "authorizedProductTypes": ["BLOOD"], "isColdStorageCapable": true}`},
	} {
		var place map[string]any
		if err := json.Unmarshal([]byte(c.place), &place); err != nil {
			t.Fatal(err)
		}
		described := doc.Components.Schemas[c.schema].Value
		if fields := slices.Sorted(maps.Keys(described.Properties)); !slices.Equal(fields, slices.Sorted(maps.Keys(place))) {
			t.Errorf("%s: described %q", collection, fields)
		}
		g.asks(token, "POST", "/api/v1/"+collection+"/apply", fmt.Sprintf(`{"reason": "x", %q: [%s]}`, collection, c.place), http.StatusOK)
		for name := range place {
			without := maps.Clone(place)
			delete(without, name)
			data, err := json.Marshal(map[string]any{"reason": "x", "dryRun": true, collection: []any{without}})
			if err != nil {
				t.Fatal(err)
			}
			status := http.StatusOK
			if slices.Contains(described.Required, name) {
				status = http.StatusBadRequest
			}
			g.asks(token, "POST", "/api/v1/"+collection+"/apply", string(data), status)
		}
	}
}

// F-API-08: what the document describes is what the mux routes, and the other way round.
// A 404 lists the paths of the mux, a 405 the methods of a path.
func TestOpenAPI_DescribesTheRoutes(t *testing.T) {
	api := httpapi.New(httpapi.Config{})
	doc, err := openapi3.NewLoader().LoadFromData(documentOf(t, api))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string) (p httpapi.Problem, allow string) {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return p, w.Header().Get("Allow")
	}
	missing, _ := ask(http.MethodGet, "/nowhere")
	_, list, _ := strings.Cut(missing.Detail, "available paths: ")
	if strings.Contains(list, "{$}") {
		t.Errorf("a 404 lists a pattern: %s", list)
	}
	var routed []string
	for path := range strings.SplitSeq(list, ", ") {
		if strings.HasPrefix(path, "/api/") || slices.Contains([]string{"/healthz", "/readyz", "/metrics"}, path) { // the rest is the console's files
			routed = append(routed, path)
		}
	}
	documented := slices.Sorted(maps.Keys(doc.Paths.Map()))
	slices.Sort(routed)
	if !slices.Equal(routed, documented) {
		t.Errorf("routes %q\ndocument %q", routed, documented)
	}
	ids := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		var methods []string
		for method, operation := range item.Operations() {
			methods = append(methods, method)
			if method == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
			if ids[operation.OperationID] || operation.Summary == "" || !strings.HasSuffix(operation.Summary, ".") && !strings.HasSuffix(operation.Summary, ")") {
				t.Errorf("%s %s: operation %q, summary %q", method, path, operation.OperationID, operation.Summary)
			}
			ids[operation.OperationID] = true
			for _, p := range operation.Parameters {
				if p.Value.In == "query" && p.Value.Description == "" || p.Value.Example == nil {
					t.Errorf("%s %s: parameter %s lacks a description or an example", method, path, p.Value.Name)
				}
			}
		}
		_, allow := ask(http.MethodDelete, strings.ReplaceAll(path, "{id}", "X"))
		allowed := strings.Split(allow, ", ")
		slices.Sort(methods)
		slices.Sort(allowed)
		if !slices.Equal(methods, allowed) {
			t.Errorf("%s: documented %q, routed %q", path, methods, allowed)
		}
	}
}

// exampleFleet brings about what the examples need.
func (g *guarded) exampleFleet() {
	g.t.Helper()
	g.fleet()
	ctx := g.t.Context()
	must := func(err error) {
		g.t.Helper()
		if err != nil {
			g.t.Fatal(err)
		}
	}
	must(pubsubio.Ensure(ctx, g.clients.PubSub))
	must(g.store.RecordReplay(ctx, domain.Replay{ID: domain.ReplayIDFor("orders", "4711"), Topic: "orders", MessageID: "4711", NewMessageIDs: []string{"4712"}, Reason: "INVALID", ReplayedBy: "ann", ReplayedAt: time.Now()}))
	must(g.store.RecordCycle(ctx, domain.Cycle{ID: "C1", DepotID: "DEPOT-1", Outcome: domain.CyclePublished}))
}

// exampleNeeds is what must come before an operation's example.
var exampleNeeds = map[string]func(*guarded){
	"/api/v1/orders/{id}/unpin":   func(g *guarded) { g.example(http.MethodPost, "/api/v1/orders/{id}/pin") },
	"/api/v1/orders/{id}/allow":   func(g *guarded) { g.example(http.MethodPost, "/api/v1/orders/{id}/forbid") },
	"/api/v1/orders/{id}/release": func(g *guarded) { g.example(http.MethodPost, "/api/v1/orders/{id}/hold") },
	"/api/v1/drones/{id}/release": func(g *guarded) { g.example(http.MethodPost, "/api/v1/drones/{id}/ground") },
	"/api/v1/depots/{id}/delete": func(g *guarded) {
		g.asks(g.token(asOperator), "POST", "/api/v1/depots/apply", `{"reason": "x", "depots": [{"id": "DEPOT-8", "position": {"lat": 48, "lon": 2}}]}`, http.StatusOK)
	},
	"/api/v1/warehouses/{id}/delete": func(g *guarded) {
		g.asks(g.token(asOperator), "POST", "/api/v1/warehouses/apply", `{"reason": "x", "warehouses": [{"id": "W8", "position": {"lat": 48, "lon": 2}, "authorizedProductTypes": ["BLOOD"]}]}`, http.StatusOK)
	},
	"/api/v1/depots/{id}/story": func(g *guarded) {
		g.asks(g.token(asOperator), "POST", "/api/v1/depots/apply", `{"reason": "x", "depots": [{"id": "DEPOT-8", "position": {"lat": 48, "lon": 2}}]}`, http.StatusOK)
	},
	"/api/v1/warehouses/{id}/story": func(g *guarded) {
		g.asks(g.token(asOperator), "POST", "/api/v1/warehouses/apply", `{"reason": "x", "warehouses": [{"id": "W8", "position": {"lat": 48, "lon": 2}, "authorizedProductTypes": ["BLOOD"]}]}`, http.StatusOK)
	},
	"/api/v1/drones/{id}/delete": func(g *guarded) { // a drone with a mission is not retired
		if _, err := g.clients.Firestore.Doc("drones/D1").Update(g.t.Context(), []firestore.Update{{Path: "currentMissionId", Value: firestore.Delete}}); err != nil {
			g.t.Fatal(err)
		}
	},
	"/api/v1/drones/{id}/maintain": func(g *guarded) {
		g.asks(g.token(asOperator), "POST", "/api/v1/drones/apply", `{"reason": "x", "drones": [{"id": "D1", "homeDepotId": "DEPOT-1", "payloadCapacityKg": 5, "consumptionPerKm": 1.5, "maxFlightTimeMinutes": 45, "due": [{"item": "propellers", "everyDays": 9}]}]}`, http.StatusOK)
	},
	"/api/v1/drone-types/{id}/delete": func(g *guarded) { g.example(http.MethodPost, "/api/v1/drone-types/apply") },
	"/api/v1/deadletters/replay":      (*guarded).letter,
	"/api/v1/deadletters/discard":     (*guarded).letter,
	"/api/v1/locks/break": func(g *guarded) {
		if _, _, err := lock.TryAcquire(g.t.Context(), g.locks, domain.CycleLockKey("DEPOT-1"), lock.WithTTL(time.Minute)); err != nil {
			g.t.Fatal(err)
		}
	},
	"/api/v1/drones/{id}/clear": func(g *guarded) {
		report := domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneEmergency}
		for _, err := range g.store.NewTelemetryApplier().Apply(g.t.Context(), []domain.Telemetry{report}) {
			if err != nil {
				g.t.Fatal(err)
			}
		}
	},
}

// example sends the example of an operation, without and with each parameter of the
// query. Whatever is missing from its body must be refused by name.
func (g *guarded) example(method, path string) {
	g.t.Helper()
	doc, err := strictDocument()
	if err != nil {
		g.t.Fatal(err)
	}
	operation := doc.Paths.Value(path).GetOperation(method)
	query, required := url.Values{}, url.Values{}
	for _, p := range operation.Parameters {
		example := p.Value.Example
		if p.Value.In == "header" {
			continue
		}
		if p.Value.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", fmt.Sprint(example))
		} else {
			query.Set(p.Value.Name, fmt.Sprint(example))
			if p.Value.Required {
				required.Set(p.Value.Name, fmt.Sprint(example))
			}
		}
	}
	token := g.token(asOperator)
	if operation.RequestBody == nil {
		g.asks(token, method, path+"?"+required.Encode(), "", http.StatusOK)
		for name := range query {
			with := maps.Clone(required)
			with[name] = query[name]
			g.asks(token, method, path+"?"+with.Encode(), "", http.StatusOK)
		}
		for name := range required {
			without := maps.Clone(required)
			delete(without, name)
			g.asks(token, method, path+"?"+without.Encode(), "", http.StatusBadRequest, name+" is missing")
		}
		if path != "/metrics" { // a scraper may add what it likes
			g.asks(token, method, path+"?surprise=1", "", http.StatusBadRequest, "surprise")
		}
		return
	}
	media := operation.RequestBody.Value.Content["application/json"]
	body, isObject := media.Example.(map[string]any)
	if err := media.Schema.Value.VisitJSON(body); err != nil || !isObject {
		g.t.Errorf("%s %s: the example of the body: %v", method, path, err)
	}
	send := func(body map[string]any, status int, parts ...string) {
		g.t.Helper()
		data, err := json.Marshal(body)
		if err != nil {
			g.t.Fatal(err)
		}
		g.asks(token, method, path, string(data), status, parts...)
	}
	for _, name := range media.Schema.Value.Required {
		without := maps.Clone(body)
		delete(without, name)
		send(without, http.StatusBadRequest, name)
	}
	unknown := maps.Clone(body)
	unknown["surprise"] = 1
	send(unknown, http.StatusBadRequest, "surprise")
	before := g.stored()
	send(body, successOf(operation))
	if path != "/api/v1/messages/publish" && path != "/api/v1/orders" && maps.Equal(before, g.stored()) {
		g.t.Errorf("%s %s: the example changes nothing", method, path)
	}
}

// stored is when each document was written.
func (g *guarded) stored() map[string]time.Time {
	g.t.Helper()
	written := map[string]time.Time{}
	collections, err := g.clients.Firestore.Collections(g.t.Context()).GetAll()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range collections {
		docs, err := c.Documents(g.t.Context()).GetAll()
		if err != nil {
			g.t.Fatal(err)
		}
		for _, doc := range docs {
			written[doc.Ref.Path] = doc.UpdateTime
		}
	}
	return written
}

// letter puts a message that was refused into its dead-letter topic.
func (g *guarded) letter() {
	g.t.Helper()
	publisher := pubsubio.NewPublisher(g.clients.PubSub)
	defer publisher.Stop()
	attributes := map[string]string{pubsubio.AttrMessageID: "4711", pubsubio.AttrReason: "INVALID", pubsubio.AttrTopic: "orders"}
	if _, err := publisher.Publish(g.t.Context(), pubsubio.DeadLetterTopic("orders"), []byte("{}"), attributes, "").Wait(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
}

// F-API-08: a State Manager applies the message that is the example of publishing.
func TestOpenAPI_ExampleOfAMessageIsApplied(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	g.exampleFleet()
	g.managed(manager.Config{PlanUnregistered: true})
	g.example(http.MethodPost, "/api/v1/messages/publish")
	emutest.Eventually(t, "the order of the example", func() error {
		_, err := g.store.Order(t.Context(), "O9")
		return err
	})
}

// F-API-08: every example of the document works on a fleet, and those of commands change it.
func TestOpenAPI_ExamplesWork(t *testing.T) {
	doc, err := strictDocument()
	if err != nil {
		t.Fatal(err)
	}
	reading := newGuarded(t, httpapi.MetricsOpen)
	reading.exampleFleet()
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for method := range doc.Paths.Value(path).Operations() {
			g := reading
			switch {
			case path == "/api/v1/stream", path == "/api/v1/snapshot", path == "/api/v1/replay", path == "/api/v1/orders/{id}/explanation": // one does not end, of the others the time matters; they have tests of their own
				continue
			case method != http.MethodGet || exampleNeeds[path] != nil:
				g = newGuarded(t, httpapi.MetricsOpen)
				g.exampleFleet()
			}
			if prepare := exampleNeeds[path]; prepare != nil {
				prepare(g)
			}
			g.example(method, path)
		}
	}
}
