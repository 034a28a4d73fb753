package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/httpapi"
)

// nasty are values that some part of a program may not expect.
var nasty = []string{
	"", " ", "\x00", "\xff", "a/b", "../..", "__x__", "NaN", "-1", "0", "1e9", "99999999999999999999", "true", "null", "*", "%", "O'; DROP", "\u202egnp.exe",
	strings.Repeat("x", 2000), "b3JkZXJzAA", "ZHJvbmVzAEQx\n", "2026-11-21", "90,180,-90,-180", "1,2,3",
}

// F-API-03: whatever a parameter holds, the answer is a result or one error that names the
// parameter.
func TestAPI_NamesBadParameters(t *testing.T) {
	s := serve(t)
	s.fleet()
	if err := pubsubio.Ensure(t.Context(), s.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	doc, err := strictDocument()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		get := doc.Paths.Value(path).Get
		if get == nil || path == "/metrics" || path == "/api/v1/deadletters" { // reviews cost time; their parameters are those of other lists
			continue
		}
		needed := url.Values{}
		for _, p := range get.Parameters {
			if p.Value.Required && p.Value.In == "query" {
				needed.Set(p.Value.Name, fmt.Sprint(p.Value.Example))
			}
		}
		for _, p := range get.Parameters {
			for _, value := range nasty {
				query, at := maps.Clone(needed), strings.ReplaceAll(path, "{id}", "D1")
				if p.Value.In == "path" {
					if value == "" || value == "../.." {
						continue // another path
					}
					at = strings.ReplaceAll(path, "{id}", url.PathEscape(value))
				} else {
					query.Set(p.Value.Name, value)
				}
				s.answersOrNames(http.MethodGet, at+"?"+query.Encode(), "", p.Value.Name)
			}
		}
	}
}

// answersOrNames sends a request, which must succeed, find nothing, or be refused by name.
// A stream is asked for its header only.
func (s *served) answersOrNames(method, path, token, name string, body ...string) {
	s.t.Helper()
	if strings.HasPrefix(path, "/api/v1/stream") {
		method = http.MethodHead
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusConflict, http.StatusGone:
		return
	case http.StatusBadRequest:
		if method == http.MethodHead {
			return
		}
		var p httpapi.Problem
		if err := json.Unmarshal(text, &p); err == nil && slices.ContainsFunc(p.Parameters, func(p httpapi.ParameterProblem) bool {
			outer, _, _ := strings.Cut(strings.Trim(p.Name, "\""), ".")
			return outer == name
		}) {
			return
		}
	}
	s.t.Errorf("%s %s %s: %s does not name %s: %s", method, path, body, resp.Status, name, text)
}

// F-API-03: a field of a body with a value of the wrong kind is named, with what to give.
func TestAPI_NamesBadFields(t *testing.T) {
	g := newGuarded(t, httpapi.MetricsOpen)
	doc, err := strictDocument()
	if err != nil {
		t.Fatal(err)
	}
	token := g.token(asOperator)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		post := doc.Paths.Value(path).Post
		if post == nil {
			continue
		}
		at := strings.ReplaceAll(path, "{id}", "D1")
		media := post.RequestBody.Value.Content["application/json"]
		example, is := media.Example.(map[string]any)
		if !is {
			t.Fatalf("%s has no example", path)
		}
		for _, whole := range []string{"", "null", "7", "[]", "{", `{"reason": "x"} {}`, `"reason"`, "\xff"} {
			g.asks(token, "POST", at, whole, http.StatusBadRequest, "send ")
		}
		for name, field := range media.Schema.Value.Properties {
			for _, value := range []any{7, -7, 1.5, true, "", "\x00", strings.Repeat("x", 2000), []any{}, []any{7}, map[string]any{}, map[string]any{"x": 1}} {
				body := maps.Clone(example)
				body[name] = value
				if body["dryRun"] == nil && doc.Paths.Value(path).Post.RequestBody.Value.Content["application/json"].Schema.Value.Properties["dryRun"] != nil {
					body["dryRun"] = true
				}
				data, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				if field.Value.VisitJSON(jsonOf(t, value)) == nil { // of the right kind; what it says is judged elsewhere
					continue
				}
				g.answersOrNames("POST", at, token, name, string(data))
			}
		}
	}
	g.asks(token, "POST", "/api/v1/orders/O1/hold", `{"reason": 7}`, 400, "reason is a number; give a string")
	g.asks(token, "POST", "/api/v1/orders/O1/priority", `{"reason": ["x"], "priority": "HIGH"}`, 400, "reason is an array; give a string")
	g.asks(token, "POST", "/api/v1/orders/O1/hold", `{"reason": "x", "why": "y"}`, 400, `"why" is not a field; the fields are reason`)
	g.asks(token, "POST", "/api/v1/deadletters/replay", `{"dryRun": "yes"}`, 400, "dryRun is a string; give true or false")
	g.asks(token, "POST", "/api/v1/deadletters/replay", `{"limit": 1.5}`, 400, "limit is a number", "give a whole number")
}

// jsonOf is a value as JSON decodes it.
func jsonOf(t *testing.T, value any) (decoded any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// F-API-03: a request of a few kilobytes does not make an answer of a hundred.
func TestAPI_NamesAFewUnknownParametersOnly(t *testing.T) {
	s := serve(t)
	var query strings.Builder
	for i := range 900 {
		fmt.Fprintf(&query, "a%d=1&", i)
	}
	resp, err := s.client.Get(s.url + "/api/v1/drones?" + query.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadRequest || len(text) > query.Len() || !strings.Contains(string(text), `\"a0\" is not a parameter`) {
		t.Errorf("%d bytes ask, %d bytes answer, %s, %v", query.Len(), len(text), resp.Status, err)
	}
}
