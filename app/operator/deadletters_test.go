package operator_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// busyOffice is an office of a fleet with a running State Manager.
type busyOffice struct {
	*office
	hosts     connect.Config
	publisher *pubsubio.Publisher
	meter     *meter.Meter // of the State Manager
}

func openBusyOffice(t *testing.T) *busyOffice {
	t.Helper()
	hosts := emutest.Hosts(t)
	b := &busyOffice{office: openOfficeAt(t, hosts), hosts: hosts}
	if err := pubsubio.Ensure(t.Context(), b.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	b.publisher = pubsubio.NewPublisher(b.clients.PubSub)
	t.Cleanup(b.publisher.Stop)
	clients := emutest.Connect(t, hosts)
	b.meter = clients.Meter
	m, err := manager.New(clients, simclock.Real(), manager.Config{PlanUnregistered: true}, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	return b
}

// send publishes and returns the message's id.
func (b *busyOffice) send(topic string, data []byte, attrs map[string]string, key string) string {
	b.t.Helper()
	id, err := b.publisher.Publish(b.t.Context(), topic, data, attrs, key).Wait(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *busyOffice) telemetry(t domain.Telemetry) string {
	b.t.Helper()
	data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(pubsubio.TopicTelemetry, data, attrs, string(t.DroneID))
}

type letter struct {
	Topic, MessageID, OrderingKey, Reason, Error, Text string
	PublishedAt                                        time.Time
	Data                                               []byte
	Attributes                                         map[string]string
	OriginalBytes, AttributesDropped                   int
	Discarded                                          bool
}

// letters returns the output of deadletters list --json.
func (b *busyOffice) letters(f operator.LetterFilter) []letter {
	b.t.Helper()
	b.desk.JSON = true
	defer func() { b.desk.JSON = false }()
	var list struct{ DeadLetters []letter }
	if err := json.Unmarshal([]byte(b.says(b.desk.ListDeadLetters(b.t.Context(), f))), &list); err != nil {
		b.t.Fatal(err)
	}
	return list.DeadLetters
}

// awaitLetters waits until the dead letters are exactly those of these messages.
func (b *busyOffice) awaitLetters(ids ...string) []letter {
	b.t.Helper()
	want := slices.Sorted(slices.Values(ids))
	var list []letter
	emutest.Eventually(b.t, "dead letters", func() error {
		list = b.letters(operator.LetterFilter{})
		var got []string
		for _, l := range list {
			got = append(got, l.MessageID)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("letters of %d messages %v, want %d %v", len(got), got, len(want), want)
		}
		return nil
	})
	return list
}

// malformed is one entry of the decoders' corpus.
type malformed struct {
	Name, Kind, ContentType, Text, Hex, Reason, Error string
}

func corpus(t *testing.T) []malformed {
	t.Helper()
	text, err := os.ReadFile("../../adapters/wire/testdata/malformed.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []malformed
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// F-DLQ-01: every malformed message becomes a dead letter with its reason and original
// data; good messages between them pass.
func TestDeadLetters_EveryMalformedMessageIsKeptWithItsReason(t *testing.T) {
	b := openBusyOffice(t)
	topics := map[string]string{"telemetry": pubsubio.TopicTelemetry, "order": pubsubio.TopicOrders, "decision": pubsubio.TopicDecisions}
	sent := map[string]malformed{}
	for _, m := range corpus(t) {
		topic, inbound := topics[m.Kind]
		if !inbound {
			continue
		}
		data := []byte(m.Text)
		if m.Hex != "" {
			var err error
			if data, err = hex.DecodeString(m.Hex); err != nil {
				t.Fatal(err)
			}
		}
		attrs := map[string]string{"corpus": m.Name}
		if m.ContentType != "" {
			attrs[wire.AttrContentType] = m.ContentType
		}
		m.Kind, m.Text = topic, string(data)
		sent[b.send(topic, data, attrs, "")] = m
	}
	future := domain.Telemetry{DroneID: "D-AHEAD", Timestamp: time.Now().Add(time.Hour), Position: home, Battery: 90, Status: domain.DroneIdle}
	data, _, err := wire.EncodeTelemetry(future, wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	sent[b.telemetry(future)] = malformed{Kind: pubsubio.TopicTelemetry, Text: string(data), Reason: string(policy.ReasonFutureTimestamp), Error: "D-AHEAD"}
	fence := `{"decision_id": "DEC-FENCE", "fence": "abc"}`
	sent[b.send(pubsubio.TopicDecisions, []byte(fence), nil, "")] = malformed{Kind: pubsubio.TopicDecisions, Text: fence, Reason: wire.ReasonInvalid, Error: "fence"}
	b.telemetry(domain.Telemetry{DroneID: "D-GOOD", Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle})

	list := b.awaitLetters(slices.Collect(maps.Keys(sent))...)
	// A decision that cannot be judged has no entry, as docs/messages.md says.
	if ledger, err := b.desk.Store.ListLedger(t.Context(), firestoretx.LedgerFilter{}, firestoretx.Page{}); err != nil || len(ledger.Items)+len(ledger.Malformed) > 0 {
		t.Errorf("the ledger has %+v, %v", ledger.Items, err)
	}
	for i, l := range list {
		m := sent[l.MessageID]
		if l.Topic != m.Kind || l.Reason != m.Reason || string(l.Data) != m.Text {
			t.Errorf("%s: letter %+v", m.Name, l)
		}
		// Attributes are cut after 1,024 bytes, between runes.
		if !strings.Contains(l.Error, m.Error) && !strings.HasPrefix(m.Error, l.Error[:min(len(l.Error), 900)]) {
			t.Errorf("%s: error %q, want %q", m.Name, l.Error, m.Error)
		}
		if m.Name != "" && l.Attributes["corpus"] != m.Name {
			t.Errorf("%s: attributes %v", m.Name, l.Attributes)
		}
		if i > 0 && l.PublishedAt.Before(list[i-1].PublishedAt) {
			t.Errorf("letter %d was published before the one above it", i)
		}
	}
	emutest.Eventually(t, "the good report passes", func() error {
		_, err := b.desk.Store.Drone(t.Context(), "D-GOOD")
		return err
	})
	if only := b.letters(operator.LetterFilter{Topic: pubsubio.TopicOrders, Limit: 2}); len(only) != 2 || only[0].Topic != pubsubio.TopicOrders {
		t.Errorf("two letters of orders: %+v", only)
	}
	b.expect(b.says(b.desk.ListDeadLetters(t.Context(), operator.LetterFilter{Reason: string(policy.ReasonFutureTimestamp)})),
		"PUBLISHED (UTC)", pubsubio.TopicTelemetry, "FUTURE_TIMESTAMP", "D-AHEAD")
}

// F-DLQ-01, F-WIRE-03: a poison message of the largest size is truncated to what a letter
// can hold, and is not redelivered for ever. A truncated letter is never replayed.
func TestDeadLetters_HoldWhatFitsOfTheLargestMessages(t *testing.T) {
	longtest.Only(t, "moves messages of 10 MB")
	b := openBusyOffice(t)
	ctx := t.Context()
	attributes := func(n, bytes int) map[string]string {
		attrs := map[string]string{wire.AttrContentType: "application/json"}
		for i := len(attrs); i < n; i++ {
			attrs[fmt.Sprintf("a%02d", i)] = strings.Repeat("v", bytes)
		}
		return attrs
	}
	const most = 10_000_000 // bytes of a request
	large := []byte(strings.Repeat("x", most-200))
	for _, tt := range []struct {
		name     string
		data     []byte
		attrs    map[string]string
		complete bool
	}{
		{"as many attributes as leave room for the reason", []byte("{nonsense"), attributes(90, 1), true},
		{"all attributes", []byte("{nonsense"), attributes(100, 1), false},
		{"the longest attributes", []byte("{nonsense"), attributes(100, 1024), false},
		{"all bytes", large, nil, false},
		{"all bytes, with the longest attributes", large[:most-110_000], attributes(100, 1024), false},
		{"attributes of our own names", []byte("{nonsense"), map[string]string{pubsubio.AttrDataBytes: "99", pubsubio.AttrAttributesDropped: "1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := b.send(pubsubio.TopicTelemetry, tt.data, tt.attrs, "")
			l := b.awaitLetters(id)[0]
			if len(l.Data) == 0 || !strings.HasPrefix(string(tt.data), string(l.Data)) || (l.OriginalBytes == 0) != (len(l.Data) == len(tt.data)) ||
				l.OriginalBytes != 0 && (l.OriginalBytes != len(tt.data) || len(l.Data) < most-300_000) {
				t.Errorf("the letter holds %d of %d bytes, and gives the original size as %d", len(l.Data), len(tt.data), l.OriginalBytes)
			}
			for name, value := range l.Attributes {
				if tt.attrs[name] != value {
					t.Errorf("the letter's attribute %s is %q", name, value)
				}
			}
			ours := tt.attrs[pubsubio.AttrDataBytes] != ""
			if !ours && len(l.Attributes)+l.AttributesDropped != len(tt.attrs) || l.Attributes[wire.AttrContentType] != tt.attrs[wire.AttrContentType] {
				t.Errorf("the letter holds %d of %d attributes, and counts %d as dropped", len(l.Attributes), len(tt.attrs), l.AttributesDropped)
			}
			if tt.complete != (l.OriginalBytes == 0 && l.AttributesDropped == 0) {
				t.Errorf("untruncated letter with OriginalBytes %d and AttributesDropped %d", l.OriginalBytes, l.AttributesDropped)
			}
			if tt.complete {
				b.discard()
				return
			}
			small := b.send(pubsubio.TopicTelemetry, []byte("{nonsense"), nil, "")
			b.awaitLetters(id, small)
			err := b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{All: true}, false)
			if err == nil || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), "have its sender publish it again") {
				t.Errorf("error %v", err)
			}
			b.expect(b.says(nil), "1 of 2 replayed.") // the message is refused again, under a new id
			emutest.Eventually(t, "the letter stays", func() error {
				list := b.letters(operator.LetterFilter{})
				if len(list) != 2 || list[0].MessageID != id || list[1].MessageID == small {
					return fmt.Errorf("%d letters", len(list))
				}
				return nil
			})
			b.discard()
		})
	}
}

// discard deletes all letters of telemetry.
func (b *busyOffice) discard() {
	b.t.Helper()
	ctx := b.t.Context()
	review := fmt.Sprintf("projects/%s/subscriptions/%s", b.clients.PubSub.Project(), pubsubio.DeadLetterSubscription(pubsubio.TopicTelemetry))
	for {
		//lint:ignore SA1019 an empty answer must return at once
		resp, err := b.clients.PubSub.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{Subscription: review, MaxMessages: 100, ReturnImmediately: true})
		if err != nil {
			b.t.Fatal(err)
		}
		ack := &pubsubpb.AcknowledgeRequest{Subscription: review}
		for _, m := range resp.GetReceivedMessages() {
			ack.AckIds = append(ack.AckIds, m.GetAckId())
		}
		if len(ack.GetAckIds()) == 0 {
			return
		}
		if err := b.clients.PubSub.SubscriptionAdminClient.Acknowledge(ctx, ack); err != nil {
			b.t.Fatal(err)
		}
	}
}

// F-DLQ-01: after the cause is fixed, refused messages are replayed in the order they were
// published, and no letter is lost.
func TestDeadLetters_ReplayAfterTheCauseIsFixed(t *testing.T) {
	b := openBusyOffice(t)
	ctx := t.Context()
	broken := b.clients.Firestore.Doc("drones/D1")
	if _, err := broken.Set(ctx, map[string]any{"status": 5}); err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-10 * time.Second)
	var ids []string
	for i := range 5 {
		ids = append(ids, b.telemetry(domain.Telemetry{
			DroneID: "D1", Timestamp: began.Add(time.Duration(i) * time.Second), Position: home, Battery: 90, Status: domain.DroneIdle,
		}))
	}
	poison := b.send(pubsubio.TopicOrders, []byte("{not json"), nil, "")
	list := b.awaitLetters(append(ids, poison)...)
	for _, l := range list {
		if l.MessageID != poison && (l.Reason != "MALFORMED_DOCUMENT" || l.OrderingKey != "D1" || !strings.Contains(l.Error, "drones/D1: field status")) {
			t.Errorf("letter %+v", l)
		}
	}

	malformedOnes := operator.LetterFilter{Reason: "MALFORMED_DOCUMENT"}
	b.expect(b.says(b.desk.ReplayDeadLetters(ctx, malformedOnes, true)), "MALFORMED_DOCUMENT", "D1", "5 would be replayed")
	b.awaitLetters(append(ids, poison)...)
	if _, err := broken.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	b.expect(b.says(b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: ids[:1]}, false)), "1 of 1 replayed.")
	b.awaitLetters(append(ids[1:], poison)...)
	b.expect(b.says(b.desk.ReplayDeadLetters(ctx, malformedOnes, false)), "4 of 4 replayed.")
	emutest.Eventually(t, "the replayed reports are applied", func() error {
		d, err := b.desk.Store.Drone(ctx, "D1")
		if err == nil && !d.LastUpdate.Equal(began.Add(4*time.Second).Truncate(time.Microsecond)) {
			err = fmt.Errorf("drone is %+v", d)
		}
		return err
	})
	b.awaitLetters(poison)

	// A message that is still wrong becomes a letter again.
	b.expect(b.says(b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{Topic: pubsubio.TopicOrders}, false)), "UNDECODABLE", "1 of 1 replayed.")
	emutest.Eventually(t, "the poison returns", func() error {
		list := b.letters(operator.LetterFilter{})
		if len(list) != 1 || list[0].MessageID == poison || list[0].Text != "{not json" {
			return fmt.Errorf("letters %+v", list)
		}
		return nil
	})
	if err := b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: []string{"none"}}, false); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("error %v", err)
	}
	if err := b.desk.ListDeadLetters(ctx, operator.LetterFilter{Topic: "missions"}); err == nil || !strings.Contains(err.Error(), "telemetry orders decisions") {
		t.Errorf("error %v", err)
	}
	b.expect(b.says(b.desk.ListDeadLetters(ctx, operator.LetterFilter{Reason: "INVALID"})), "No dead letters found.")
}

// F-DLQ-01: a letter whose message cannot be published stays.
func TestDeadLetters_FailedReplayLosesNothing(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	if err := pubsubio.Ensure(ctx, o.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	b := &busyOffice{office: o, publisher: pubsubio.NewPublisher(o.clients.PubSub)}
	t.Cleanup(b.publisher.Stop)
	// A letter as a State Manager writes it.
	b.send(pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte("{not json"), map[string]string{
		pubsubio.AttrTopic: pubsubio.TopicOrders, pubsubio.AttrMessageID: "m1", pubsubio.AttrReason: wire.ReasonUndecodable, pubsubio.AttrError: "not JSON",
	}, "")
	b.awaitLetters("m1")
	orders := &pubsubpb.DeleteTopicRequest{Topic: fmt.Sprintf("projects/%s/topics/%s", o.clients.PubSub.Project(), pubsubio.TopicOrders)}
	if err := o.clients.PubSub.TopicAdminClient.DeleteTopic(ctx, orders); err != nil {
		t.Fatal(err)
	}
	if err := o.desk.ReplayDeadLetters(ctx, operator.LetterFilter{All: true}, false); err == nil || !strings.Contains(err.Error(), "message m1") {
		t.Errorf("error %v", err)
	}
	o.expect(o.says(nil), "m1", "0 of 1 replayed.")
	b.awaitLetters("m1")
}

// F-DLQ-01, F-ORD-02, F-DEC-02: a replayed message keeps its original time. It does not
// undo newer messages of its sender, and an old decision stays old.
func TestDeadLetters_ReplayKeepsTheOriginalTime(t *testing.T) {
	b := openBusyOffice(t)
	ctx := t.Context()
	published := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	refused := func(topic, id, data string) {
		t.Helper()
		// A letter as a State Manager writes it.
		b.send(pubsubio.DeadLetterTopic(topic), []byte(data), map[string]string{
			wire.AttrContentType: "application/json", pubsubio.AttrTopic: topic, pubsubio.AttrMessageID: id, pubsubio.AttrReason: wire.ReasonInvalid,
			pubsubio.AttrPublishTime: published.Format("2006-01-02T15:04:05.000000Z07:00"),
		}, "")
	}
	b.order("O1") // BLOOD, the requester's newer request
	b.report(domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle})
	refused(pubsubio.TopicOrders, "m1", `{"id": "O1", "priority": "STANDARD", "productType": "MEDICINE", "deliveryLocation": {"lat": 48.86, "lon": 2.36}}`)
	emutest.IssueFences(t, b.clients.Firestore, "1", "")
	refused(pubsubio.TopicDecisions, "m2", `{"droneId": "D1", "fence": "1", "orderIds": ["O1"], "estimatedBatteryConsumption": 10, "estimatedDurationMinutes": 9, "route": [
		{"type": "WAREHOUSE_PICKUP", "position": {"lat": 48.8566, "lon": 2.3522}, "relatedOrderId": "O1"},
		{"type": "HOSPITAL_DELIVERY", "position": {"lat": 48.86, "lon": 2.36}, "relatedOrderId": "O1"}]}`)
	refused(pubsubio.TopicOrders, "m3", "{not json")
	b.awaitLetters("m1", "m2", "m3")
	b.expect(b.says(b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{All: true}, false)), "3 of 3 replayed.")

	emutest.Eventually(t, "the replayed messages are settled", func() error {
		settled := int64(0)
		for s, n := range b.meter.Settled() {
			if s.Outcome != meter.Nacked {
				settled += n
			}
		}
		if settled < 3 {
			return fmt.Errorf("%d are", settled)
		}
		return nil
	})
	for want, n := range map[meter.Settlement]int64{
		{Kind: pubsubio.TopicOrders, Outcome: meter.Rejected, Reason: string(policy.ReasonOrderSuperseded)}:    1,
		{Kind: pubsubio.TopicDecisions, Outcome: meter.Rejected, Reason: string(policy.ReasonDecisionExpired)}: 1,
	} {
		if got := b.meter.Settled()[want]; got != n {
			t.Errorf("%+v: %d, want %d; all: %v", want, got, n, b.meter.Settled())
		}
	}
	if o, err := b.desk.Store.Order(ctx, "O1"); err != nil || o.ProductType != "BLOOD" || o.Status != domain.OrderPending {
		t.Errorf("order %+v, %v", o, err)
	}
	// A second refusal does not change the original time either.
	emutest.Eventually(t, "the poison returns", func() error {
		list := b.letters(operator.LetterFilter{})
		if len(list) != 1 || list[0].Text != "{not json" || !list[0].PublishedAt.Equal(published) {
			return fmt.Errorf("letters %+v, want one published %s", list, published)
		}
		return nil
	})
}

// Without the fleet's subscriptions the error is one line that names them.
func TestDeadLetters_MissingSubscriptionsAreNamed(t *testing.T) {
	o := openOffice(t)
	err := o.desk.ListDeadLetters(t.Context(), operator.LetterFilter{})
	if err == nil || !strings.Contains(err.Error(), "-dead-letter-review does not exist") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// A replay may be repeated if its answer was lost. The replayed message names the
// operator who requested it.
func TestDeadLetters_RepeatedReplayFindsNothing(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	if err := pubsubio.Ensure(ctx, o.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	b := &busyOffice{office: o, publisher: pubsubio.NewPublisher(o.clients.PubSub)}
	t.Cleanup(b.publisher.Stop)
	b.send(pubsubio.DeadLetterTopic(pubsubio.TopicOrders), []byte("{not json"), map[string]string{pubsubio.AttrMessageID: "m1"}, "")
	b.awaitLetters("m1")
	commands := operator.Commands{Store: o.desk.Store, PubSub: o.clients.PubSub, By: "ann@example.org"}
	filter := operator.LetterFilter{IDs: []string{"m1"}, Partial: true}
	first, err := commands.ReplayDeadLetters(ctx, filter)
	if err != nil || first.Resolved != 1 || len(first.Missing) != 0 {
		t.Errorf("first: %+v, %v", first, err)
	}
	again, err := commands.ReplayDeadLetters(ctx, filter)
	if err != nil || again.Resolved != 0 || !slices.Equal(again.Missing, []string{"m1"}) {
		t.Errorf("again: %+v, %v", again, err)
	}
	emutest.Eventually(t, "the message comes again", func() error {
		resp, err := o.clients.PubSub.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{
			Subscription: fmt.Sprintf("projects/%s/subscriptions/%s", o.clients.PubSub.Project(), pubsubio.Subscription(pubsubio.TopicOrders)), MaxMessages: 1,
		})
		if err != nil || len(resp.GetReceivedMessages()) != 1 {
			return fmt.Errorf("pulled %v, %w", resp, err)
		}
		if by := resp.GetReceivedMessages()[0].GetMessage().GetAttributes()[pubsubio.AttrReplayedBy]; by != "ann@example.org" {
			t.Errorf("replayed by %q", by)
		}
		return nil
	})
}

// F-DLQ-01: a replay without a selection is refused with one error; replaying every letter
// must be requested explicitly.
func TestDeadLetters_ReplayOfEverythingIsExplicit(t *testing.T) {
	b := openLetterOffice(t)
	ctx := t.Context()
	b.refuse(pubsubio.TopicOrders, "m1", "{", nil)
	b.refuse(pubsubio.TopicTelemetry, "m2", "{", nil)
	b.awaitLetters("m1", "m2")
	for _, f := range []operator.LetterFilter{{}, {Limit: 1}, {All: true, IDs: []string{"m1"}}} {
		err := b.desk.ReplayDeadLetters(ctx, f, false)
		if err == nil || !strings.HasPrefix(err.Error(), "all ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v", f, err)
		}
	}
	b.awaitLetters("m1", "m2")
	b.expect(b.says(b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{All: true}, false)), "2 of 2 replayed.")
	b.awaitLetters()
}

// F-DLQ-01: from the id of a refused message, the story says whether it waits, was discarded or was
// replayed, and follows the replays to the resulting order. The replayed message carries the old
// id.
func TestDeadLetters_ShowWhatBecameOfAMessage(t *testing.T) {
	b := openBusyOffice(t)
	ctx := t.Context()
	// The documents of these orders are malformed.
	for _, id := range []string{"O1", "O2"} {
		if _, err := b.clients.Firestore.Doc("orders/"+id).Set(ctx, map[string]any{"status": 7}); err != nil {
			t.Fatal(err)
		}
	}
	order := func(id domain.OrderID) string {
		data, attrs, err := wire.EncodeOrder(domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: hospital,
		}}, wire.JSON)
		if err != nil {
			t.Fatal(err)
		}
		return b.send(pubsubio.TopicOrders, data, attrs, "")
	}
	show := func(id string) string { return b.says(b.desk.ShowDeadLetter(ctx, id)) }
	first, noise := order("O1"), order("O2")
	b.awaitLetters(first, noise)
	b.expect(show(first), "Message "+first+" of orders was refused: MALFORMED_DOCUMENT: ", "its dead letter waits")

	// The cause is not fixed yet: the message becomes a letter again, under another id.
	b.says(b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: []string{first}}, false))
	var second string
	emutest.Eventually(t, "the letter of the replayed message", func() error {
		for _, l := range b.letters(operator.LetterFilter{}) {
			if l.Attributes[pubsubio.AttrReplayOf] == first {
				second = l.MessageID
				return nil
			}
		}
		return errors.New("none yet")
	})
	b.expect(show(first), "Message "+first+" of orders was refused: MALFORMED_DOCUMENT: ", "  replayed as message "+second+" at ", " UTC by ann@example.org\n",
		"Message "+second+" of orders was refused: MALFORMED_DOCUMENT: ", "its dead letter waits")

	if _, err := b.clients.Firestore.Doc("orders/O1").Delete(ctx); err != nil {
		t.Fatal(err)
	}
	b.says(b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: []string{second}}, false))
	b.awaitLetters(noise)
	emutest.Eventually(t, "the order", func() error {
		_, err := b.desk.Store.Order(ctx, "O1")
		return err
	})
	b.expect(show(first), "replayed as message "+second, "Message "+second+" of orders was refused", "replayed as message ",
		" of orders has no record of a refusal.\n", "  audit order O1 tells what came of it\n")
	b.says(b.desk.DiscardDeadLetters(ctx, operator.LetterFilter{IDs: []string{noise}}, "an exercise", false))
	b.expect(show(noise), "Message "+noise+" of orders was refused: MALFORMED_DOCUMENT", "discarded at ", " UTC by ann@example.org because an exercise\n")
	for _, id := range []string{"", "none"} {
		if err := b.desk.ShowDeadLetter(ctx, id); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("message %q: error %v", id, err)
		}
	}
	b.desk.JSON = true
	var story struct {
		MessageID string
		Replays   []struct {
			MessageID, Topic, ReplayedBy, Subject, SubjectID string
			NewMessageIDs                                    []string
		}
		Discards, Waiting []any
	}
	if err := json.Unmarshal([]byte(show(first)), &story); err != nil {
		t.Fatal(err)
	}
	if r := story.Replays; len(r) != 2 || r[0].MessageID != first || !slices.Equal(r[0].NewMessageIDs, []string{second}) || r[1].MessageID != second ||
		r[1].Subject != "order" || r[1].SubjectID != "O1" || r[1].ReplayedBy != "ann@example.org" || story.Discards == nil || story.Waiting == nil {
		t.Errorf("story %+v", story)
	}
}

// F-DLQ-01: a letter is deleted only after its replay is on record.
func TestDeadLetters_ReplayIsRecordedBeforeTheLetterIsDeleted(t *testing.T) {
	b := openLetterOffice(t)
	b.refuse(pubsubio.TopicOrders, "m1", "{", nil)
	b.awaitLetters("m1")
	store := b.desk.Store
	broken := emutest.Connect(t, connect.Config{Project: b.clients.Config.Project, FirestoreHost: "127.0.0.1:1", PubSubHost: b.clients.Config.PubSubHost})
	b.desk.Store = firestoretx.New(broken.Firestore, firestoretx.Config{PlanUnregistered: true})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := b.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: []string{"m1"}}, false)
	if err == nil || !strings.Contains(err.Error(), "published again but their dead letters remain") {
		t.Errorf("error %v", err)
	}
	b.says(nil)
	b.desk.Store = store
	b.awaitLetters("m1")
	b.expect(b.says(b.desk.ReplayDeadLetters(t.Context(), operator.LetterFilter{IDs: []string{"m1"}}, false)), "1 of 1 replayed.")
	b.expect(b.says(b.desk.ShowDeadLetter(t.Context(), "m1")), "replayed as message ")
}
