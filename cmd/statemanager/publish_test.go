package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// refuse publishes the dead letter of an undecodable order, with one more attribute.
func refuse(t *testing.T, clients *connect.Clients, name, value string) {
	t.Helper()
	refuseText(t, clients, "{not json", name, value)
}

func refuseText(t *testing.T, clients *connect.Clients, text, name, value string) {
	t.Helper()
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	_, err := publisher.Publish(t.Context(), pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte(text), map[string]string{
		pubsubio.AttrMessageID: "m1", name: value,
	}, "").Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// F-DLQ-01, F-OBS-01: a State Manager logs who replayed a message from the command line,
// as it does for a replay over HTTP.
func TestDeadLetters_TheLogNamesWhoReplayed(t *testing.T) {
	hosts := emutest.Hosts(t)
	refuse(t, emutest.Connect(t, hosts), pubsubio.AttrReplayedBy, "bob") // who replayed it before
	statemanager.Run(t, hosts, 0, "deadletters", "replay", "--all", "--by=ann@example.org")
	p := statemanager.Start(t, hosts, "serve", "--http-addr=off")
	if line := p.Find(p.Stderr, "replayed message received"); !strings.Contains(line, `"operator":"ann@example.org"`) {
		t.Errorf("logged %s", line)
	}
	p.Interrupt()
}

// F-DLQ-01: a discard from the command line deletes the letters and records who asked and
// why.
func TestDeadLetters_DiscardIsRecorded(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	refuse(t, clients, pubsubio.AttrReason, "UNDECODABLE")
	const discard = "deadletters discard --reason=UNDECODABLE --why=noise --by=ann@example.org"
	for _, step := range []struct{ args, want string }{
		{discard + " --dry-run", "1 would be discarded; omit --dry-run to do it.\n"},
		{discard, "1 of 1 discarded.\n"},
		{discard, "No dead letters found.\n"},
		{"deadletters list", "No dead letters found.\n"},
	} {
		if out, _ := statemanager.Run(t, hosts, 0, strings.Fields(step.args)...); !strings.HasSuffix(out, step.want) {
			t.Errorf("%s: printed %q, want %q", step.args, out, step.want)
		}
	}
	discards, err := firestoretx.New(clients.Firestore, firestoretx.Config{}).Discards(t.Context())
	if err != nil || len(discards) != 1 || discards[0].ID != "orders-m1" || discards[0].DiscardedBy != "ann@example.org" || discards[0].Why != "noise" {
		t.Errorf("on record: %+v, %v", discards, err)
	}
}

// F-DLQ-01, F-FLOW-01: one request does not exhaust a State Manager's memory, however
// large the dead letters are.
func TestDeadLetters_OneRequestIsBounded(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	key := identitytest.RSA(t, "k1")
	issuer := identitytest.Start(t, key)
	noise := strings.Repeat("noise ", 1_500_000)
	for range 3 {
		refuseText(t, emutest.Connect(t, hosts), noise, pubsubio.AttrReason, "UNDECODABLE")
	}
	p := statemanager.Start(t, hosts, "serve", "--http-addr=127.0.0.1:0", "--oidc-issuer="+issuer.URL, "--oidc-audience="+identitytest.Audience, "--oidc-operator=*")
	url, _, _ := strings.Cut(p.Find(p.Stderr, `"url":"`), `"`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/deadletters/replay", strings.NewReader(`{"dryRun": true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+issuer.Token(t, key, time.Now(), nil))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		DeadLetters []struct{ Text string }
		More        bool
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if n := len(answer.DeadLetters); n == 0 || n == 3 || !answer.More {
		t.Errorf("%d letters of %d bytes each, and more: %v; want some and more", n, len(noise), answer.More)
	}
	http.DefaultClient.CloseIdleConnections()
	p.Interrupt()
	if out, _ := statemanager.Run(t, hosts, 0, "deadletters", "list", "--json"); strings.Count(out, `"reason"`) != 3 || !strings.Contains(out, `"more": false`) {
		t.Error("the command line does not list all letters")
	}
	if out, _ := statemanager.Run(t, hosts, 0, "deadletters", "replay", "--all", "--json", "--limit=2"); !strings.Contains(out, `"replayed": 2`) {
		t.Error("the two requested letters of three were not replayed")
	}
}

func TestPublish_SendsExactlyWhatIsGiven(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	empty, order := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "order.json")
	for name, text := range map[string]string{empty: "", order: `{"id":"O1"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	statemanager.Refuses(t, hosts, 1, []string{"payload is empty"}, "publish", "orders", empty)
	// A payload above Pub/Sub's limit is not sent, not even in part.
	large := filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.WriteFile(large, []byte("{"), 0o600), os.Truncate(large, 10_000_001)); err != nil {
		t.Fatal(err)
	}
	statemanager.Refuses(t, hosts, 1, []string{"more than 10000000 bytes"}, "publish", "orders", large)
	statemanager.Refuses(t, hosts, 1, []string{"no such file"}, "publish", "orders", "/does/not/exist")
	statemanager.Refuses(t, hosts, 2, []string{"telemetry"}, "publish", "missions", order)
	statemanager.Refuses(t, connect.Config{}, 2, []string{"GOOGLE_CLOUD_PROJECT"}, "publish", "orders", order)

	// Attributes arrive as given, including semicolons.
	const note = `a;b=c\;d`
	out, _ := statemanager.Run(t, hosts, 0, "publish", "orders", order, "--ordering-key=O1", "--attribute=content-type=application/json", "--attribute=note="+note)
	if !strings.HasPrefix(out, "message ") || !strings.HasSuffix(out, "published to orders\n") {
		t.Errorf("printed %q", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	var got *pubsub.Message
	err := clients.PubSub.Subscriber(pubsubio.Subscription(pubsubio.TopicOrders)).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		got = m
		m.Ack()
		cancel()
	})
	if err != nil || got == nil {
		t.Fatalf("received %v, %v", got, err)
	}
	if string(got.Data) != `{"id":"O1"}` || got.OrderingKey != "O1" || got.Attributes["content-type"] != "application/json" || got.Attributes["note"] != note || len(got.Attributes) != 2 {
		t.Errorf("received %+v", got)
	}
}

// F-TEL-13: a report has its drone's id as ordering key unless another is given; one that
// cannot be decoded has none.
func TestPublish_ReportsAreOrderedByDrone(t *testing.T) {
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	publish := func(text string, more ...string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		statemanager.Run(t, hosts, 0, append([]string{"publish", "telemetry", file}, more...)...)
		ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
		defer cancel()
		var key string
		err := clients.PubSub.Subscriber(pubsubio.Subscription(pubsubio.TopicTelemetry)).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
			key = m.OrderingKey
			m.Ack()
			cancel()
		})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	const report = `{"droneId":"D-7","timestamp":"2026-11-25T12:00:00Z","position":{"lat":48.8,"lon":2.3},"batteryPercentage":80,"status":"IDLE"}`
	if key := publish(report); key != "D-7" {
		t.Errorf("ordering key %q, want the drone's id", key)
	}
	if key := publish(report, "--ordering-key=other"); key != "other" {
		t.Errorf("ordering key %q, want the given one", key)
	}
	if key := publish("{not json"); key != "" {
		t.Errorf("ordering key %q of what is no report", key)
	}
}
