package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-INT-07: a webhook that is applied on the command line gets the orders of a State Manager.
func TestWebhooks_FromTheCommandLine(t *testing.T) {
	hosts := emutest.Hosts(t)
	bodies := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	if err := os.WriteFile(file, []byte("webhooks:\n  - {id: W1, url: '"+server.URL+"', kinds: [order.accepted]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := statemanager.Run(t, hosts, 0, "webhooks", "apply", "-f", file, "--reason=test")
	if !strings.Contains(out, "The secret of webhook W1 is whsec_") {
		t.Errorf("printed %s", out)
	}
	next := func() string {
		t.Helper()
		select {
		case body := <-bodies:
			return body
		case <-time.After(clitest.Patience):
			t.Fatal("no message comes")
			return ""
		}
	}
	statemanager.Run(t, hosts, 0, "webhooks", "test", "W1")
	if body := next(); !strings.Contains(body, `"type":"webhook.test"`) {
		t.Errorf("got %s", body)
	}
	serve := statemanager.Start(t, hosts, "serve", "--http-addr=off")
	serve.Find(serve.Stderr, "State Manager serving")
	go func() { _, _ = io.Copy(io.Discard, serve.Stderr) }()
	order := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: domain.Position{Lat: 5.6, Lon: -0.2}}}
	if err := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{}).IngestOrder(t.Context(), order, time.Now()); err != nil {
		t.Fatal(err)
	}
	if body := next(); !strings.Contains(body, `"type":"order.accepted"`) || !strings.Contains(body, `"orderId":"O1"`) {
		t.Errorf("got %s", body)
	}
	out, _ = statemanager.Run(t, hosts, 0, "webhooks", "deliveries", "--webhook=W1")
	if !strings.Contains(out, "order.accepted") {
		t.Errorf("printed %s", out)
	}
	_ = serve.Cmd.Process.Kill()
	_ = serve.Cmd.Wait()
}
