package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-DAY-01: this machine's user is an operator under a name that the audit keeps. Only the site's
// own pages make changes in that name; scripts still need a key, and a key is worth what it was.
func TestAPI_LetsTheLocalUserOperateFromItsOwnPages(t *testing.T) {
	s := serveFor(t, emutest.Hosts(t), httpapi.Access{Local: "operator (dev)"}, emutest.Log(t))
	s.fleet()
	var who session
	s.get("/api/v1/session", http.StatusOK, &who)
	if who.Name != "operator (dev)" || who.Method != "local" || !slices.Contains(who.Verbs, "orders hold") {
		t.Errorf("the caller is %+v", who)
	}
	key, _, err := operator.Commands{Store: s.store, By: "ann"}.CreateKey(t.Context(), operator.KeyUse{Role: domain.KeyViewer, ExpiresAt: s.store.Now().Add(domain.MaxKeyLifetime)}, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from   string
		want   int
		header []string
	}{
		{"a script", 403, nil},
		{"a viewer's key", 403, []string{"Authorization", "Bearer " + key}},
		{"a viewer's key in a page", 403, []string{"Authorization", "Bearer " + key, "Sec-Fetch-Site", "same-origin"}},
		{"another site", 403, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://example.org"}},
		{"another port", 403, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}},
		{"another site in an old browser", 403, []string{"Origin", "https://example.org"}},
		{"a name that leads here", 403, []string{"Sec-Fetch-Site", "same-origin", "Host", "evil.example.org"}},
		{"the console", 200, []string{"Sec-Fetch-Site", "same-origin", "Origin", s.url}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1/orders/O2/hold", strings.NewReader(`{"reason": "x"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(c.header); i += 2 {
			if req.Header.Set(c.header[i], c.header[i+1]); c.header[i] == "Host" {
				req.Host = c.header[i+1]
			}
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.want {
			t.Errorf("from %s: %s %s, %v; want %d", c.from, resp.Status, body, err, c.want)
		}
	}
	var story json.RawMessage
	s.get("/api/v1/orders/O2/story", http.StatusOK, &story)
	if !strings.Contains(string(story), "operator (dev)") {
		t.Errorf("the audit lacks the name: %s", story)
	}
	s.get("/api/v1/dev/incidents", http.StatusNotFound, nil) // which only a trial has
}
