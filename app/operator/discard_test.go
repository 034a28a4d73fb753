package operator_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

var discardedAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// openLetterOffice opens an office without a State Manager, so a test writes its dead
// letters. Its clock stands at discardedAt.
func openLetterOffice(t *testing.T) *busyOffice {
	t.Helper()
	o := openOffice(t)
	if err := pubsubio.Ensure(t.Context(), o.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	o.desk.Store = firestoretx.New(o.clients.Firestore, firestoretx.Config{Now: func() time.Time { return discardedAt }})
	b := &busyOffice{office: o, publisher: pubsubio.NewPublisher(o.clients.PubSub)}
	t.Cleanup(b.publisher.Stop)
	return b
}

// refuse writes a letter as a State Manager does, with more attributes.
func (b *busyOffice) refuse(topic, id, data string, more map[string]string) {
	b.t.Helper()
	attrs := map[string]string{
		pubsubio.AttrTopic: topic, pubsubio.AttrMessageID: id, pubsubio.AttrReason: wire.ReasonUndecodable, pubsubio.AttrError: "not JSON",
	}
	for name, value := range more {
		attrs[name] = value
	}
	b.send(pubsubio.DeadLetterTopic(topic), []byte(data), attrs, "")
}

// discards returns the recorded discards by id.
func (b *busyOffice) discards() map[domain.DiscardID]domain.Discard {
	b.t.Helper()
	list, err := b.desk.Store.Discards(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	byID := map[domain.DiscardID]domain.Discard{}
	for _, d := range list {
		byID[d.ID] = d
	}
	return byID
}

func hashOf(payload string) string {
	sum := sha256.Sum256([]byte(payload))
	return hex.EncodeToString(sum[:])
}

// F-DLQ-01: the record of a discarded letter holds everything needed to judge it later;
// letters that were not selected stay.
func TestDiscard_RecordsAndDeletesTheSelectedLetters(t *testing.T) {
	b := openLetterOffice(t)
	ctx := t.Context()
	b.refuse(pubsubio.TopicOrders, "m1", "{not json", map[string]string{
		pubsubio.AttrPublishTime: "2026-11-20T08:30:00.123456Z", pubsubio.AttrOrderingKey: "O1",
		wire.AttrContentType: "application/json", "__ward__": "7",
	})
	b.refuse(pubsubio.TopicOrders, "m2", "{not", map[string]string{pubsubio.AttrDataBytes: "9", pubsubio.AttrAttributesDropped: "2"})
	b.refuse(pubsubio.TopicOrders, "m3", "{not json", nil)
	b.refuse(pubsubio.TopicTelemetry, "m1", "\xff\x00", nil) // the same id in another topic
	b.awaitLetters("m1", "m1", "m2", "m3")

	chosen := operator.LetterFilter{Topic: pubsubio.TopicOrders, IDs: []string{"m1", "m2"}}
	b.expect(b.says(b.desk.DiscardDeadLetters(ctx, chosen, "noise", true)), "m2", "2 would be discarded; omit --dry-run to do it.")
	b.awaitLetters("m1", "m1", "m2", "m3")
	if got := b.discards(); len(got) != 0 {
		t.Errorf("recorded by a dry run: %+v", got)
	}
	b.desk.JSON = true
	var answer struct {
		Discarded   int
		DeadLetters []letter
	}
	if err := json.Unmarshal([]byte(b.says(b.desk.DiscardDeadLetters(ctx, chosen, "a publisher\n that is gone", false))), &answer); err != nil {
		t.Fatal(err)
	}
	b.desk.JSON = false
	if len(answer.DeadLetters) != 2 || answer.Discarded != 2 || !answer.DeadLetters[0].Discarded || !answer.DeadLetters[1].Discarded {
		t.Errorf("answer %+v", answer)
	}
	b.awaitLetters("m1", "m3")
	b.expect(b.says(b.desk.DiscardDeadLetters(ctx, operator.LetterFilter{Topic: pubsubio.TopicTelemetry}, "noise", false)), "m1", "1 of 1 discarded.")
	b.awaitLetters("m3")
	if err := b.desk.DiscardDeadLetters(ctx, operator.LetterFilter{IDs: []string{"m1"}}, "noise", false); err == nil || !strings.Contains(err.Error(), `"m1"`) {
		t.Errorf("again: %v", err)
	}

	common := domain.Discard{Topic: pubsubio.TopicOrders, Reason: wire.ReasonUndecodable, Error: "not JSON", DiscardedAt: discardedAt, DiscardedBy: b.desk.By}
	m1, m2, noise := common, common, common
	m1.ID, m1.MessageID, m1.OrderingKey, m1.Why = "orders-m1", "m1", "O1", "a publisher that is gone"
	m1.PublishedAt = time.Date(2026, 11, 20, 8, 30, 0, 123456000, time.UTC)
	m1.Attributes = []string{"__ward__=7", "content-type=application/json"}
	m1.Payload, m1.Bytes, m1.PayloadHash = []byte("{not json"), 9, hashOf("{not json")
	m2.ID, m2.MessageID, m2.Why = "orders-m2", "m2", m1.Why
	m2.Payload, m2.Bytes, m2.PayloadHash, m2.OriginalBytes, m2.AttributesDropped = []byte("{not"), 4, hashOf("{not"), 9, 2
	noise.ID, noise.Topic, noise.MessageID, noise.Why = "telemetry-m1", pubsubio.TopicTelemetry, "m1", "noise"
	noise.Payload, noise.Bytes, noise.PayloadHash = []byte("\xff\x00"), 2, hashOf("\xff\x00")
	got := b.discards()
	if diff := cmp.Diff(map[domain.DiscardID]domain.Discard{m1.ID: m1, m2.ID: m2, noise.ID: noise}, got); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
	doc, err := b.clients.Firestore.Doc("discards/orders-m1").Get(ctx)
	if err != nil || doc.Data()["text"] != "{not json" || doc.Data()["data"] != nil {
		t.Errorf("the document holds %v, %v", doc.Data(), err)
	}
}

// F-DLQ-01: any letter can be discarded, also one of the largest size and one that no
// State Manager wrote. The record keeps the beginning of a large payload and its hash.
func TestDiscard_RecordsAnyLetter(t *testing.T) {
	b := openLetterOffice(t)
	attrs := map[string]string{}
	for i := range 80 {
		attrs[fmt.Sprintf("a%02d%s", i, strings.Repeat("n", 200))] = strings.Repeat("v", 1024)
	}
	binary := strings.Repeat("\x80\xff", 300<<10)
	text := "x" + strings.Repeat("€", 200<<10)
	b.refuse(pubsubio.TopicOrders, "binary", binary, attrs)
	b.refuse(pubsubio.TopicOrders, "text", text, attrs)
	b.refuse(pubsubio.TopicOrders, "a/b", "", map[string]string{"empty": ""})
	b.refuse(pubsubio.TopicOrders, strings.Repeat("m", 1024), "{not", nil)
	b.refuse(pubsubio.TopicOrders, "", "one", nil)
	b.refuse(pubsubio.TopicOrders, "", "two", nil)
	b.awaitLetters("binary", "text", "a/b", strings.Repeat("m", 1024), "", "")
	b.expect(b.says(b.desk.DiscardDeadLetters(t.Context(), operator.LetterFilter{Topic: pubsubio.TopicOrders}, "noise", false)), "6 of 6 discarded.")
	b.awaitLetters()

	got := b.discards()
	const most = 512 << 10
	for id, whole := range map[domain.DiscardID]string{"orders-binary": binary, "orders-text": text} {
		d := got[id]
		if n := len(d.Payload); !strings.HasPrefix(whole, string(d.Payload)) || n > most || n < most-4 || domain.IsText(d.Payload) != (whole == text) {
			t.Errorf("%s: %d bytes are kept", id, n)
		}
		if d.Bytes != len(whole) || d.PayloadHash != hashOf(whole) || len(d.Attributes) != 80 {
			t.Errorf("%s: recorded %d bytes, hash %s and %d attributes", id, d.Bytes, d.PayloadHash, len(d.Attributes))
		}
	}
	var others []string
	for _, d := range got {
		if d.Bytes < 10 {
			others = append(others, fmt.Sprintf("%.9s %s", d.MessageID, d.Payload))
		}
	}
	slices.Sort(others)
	if want := []string{" one", " two", "a/b ", "mmmmmmmmm {not"}; !slices.Equal(others, want) {
		t.Errorf("on record %q, want %q", others, want)
	}
}

// F-DLQ-01: a discard without a selection, a reason or a name is refused.
func TestDiscard_RequiresSelectionReasonAndName(t *testing.T) {
	b := openLetterOffice(t)
	b.refuse(pubsubio.TopicOrders, "m1", "{not json", nil)
	commands := operator.Commands{Store: b.desk.Store, PubSub: b.clients.PubSub, By: "ann"}
	nobody := commands
	nobody.By = ""
	m1 := operator.LetterFilter{IDs: []string{"m1"}}
	for _, row := range []struct {
		commands operator.Commands
		filter   operator.LetterFilter
		why      string
		part     string
	}{
		{commands, operator.LetterFilter{Limit: 1}, "noise", "ids is empty"},
		{commands, m1, " \n", "why is blank"},
		{nobody, m1, "noise", "by is not set"},
	} {
		_, err := row.commands.DiscardDeadLetters(t.Context(), row.filter, row.why)
		if err == nil || !strings.Contains(err.Error(), row.part) {
			t.Errorf("error %v, want %q", err, row.part)
		}
	}
	b.awaitLetters("m1")
	if got := b.discards(); len(got) != 0 {
		t.Errorf("on record: %+v", got)
	}
}

// F-DLQ-01: a letter that could not be recorded stays. A letter whose record's answer was
// lost stays too; a repeated discard keeps its first record.
func TestDiscard_DeletesALetterOnlyAfterItsRecord(t *testing.T) {
	for name, row := range map[string]struct {
		at       fault.Stage
		recorded string
	}{"not recorded": {fault.Before, "changed my mind"}, "recorded, and the answer lost": {fault.After, "noise"}} {
		t.Run(name, func(t *testing.T) {
			faults := fault.New(1)
			emutest.ServeFirestore(t, firestoreemu.Options{Faults: faults})
			b := openLetterOffice(t)
			ctx := t.Context()
			for _, id := range []string{"m1", "m2"} {
				b.refuse(pubsubio.TopicOrders, id, "{not json", nil)
			}
			b.awaitLetters("m1", "m2")
			broken := faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "discards/", At: row.at, Do: fault.Fail(codes.PermissionDenied)})
			orders := operator.LetterFilter{Topic: pubsubio.TopicOrders}
			err := b.desk.DiscardDeadLetters(ctx, orders, "noise", false)
			if err == nil || !strings.Contains(err.Error(), "record dead letters of orders: message m") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
			b.expect(b.says(nil), "m1", "m2", "0 of 2 discarded.")
			b.awaitLetters("m1", "m2")
			broken.Remove()
			b.desk.By = "bob"
			b.expect(b.says(b.desk.DiscardDeadLetters(ctx, orders, "changed my mind", false)), "2 of 2 discarded.")
			b.awaitLetters()
			got := b.discards()
			// The first failure stops the others at any point.
			if len(got) != 2 || got["orders-m1"].Why != row.recorded && got["orders-m2"].Why != row.recorded {
				t.Errorf("on record: %+v", got)
			}
		})
	}
}

// F-DLQ-01: a message with two letters, because its first ack was lost, has one record. A
// later letter with its id does not replace it.
func TestDiscard_FirstWriteWins(t *testing.T) {
	b := openLetterOffice(t)
	for range 2 {
		b.refuse(pubsubio.TopicOrders, "m1", "{not json", nil)
	}
	b.awaitLetters("m1", "m1")
	m1 := operator.LetterFilter{IDs: []string{"m1"}}
	b.expect(b.says(b.desk.DiscardDeadLetters(t.Context(), m1, "noise", false)), "2 of 2 discarded.")
	b.refuse(pubsubio.TopicOrders, "m1", "{not json", nil)
	b.awaitLetters("m1")
	b.expect(b.says(b.desk.DiscardDeadLetters(t.Context(), m1, "again", false)), "1 of 1 discarded.")
	if got := b.discards(); len(got) != 1 || got["orders-m1"].Why != "noise" || !bytes.Equal(got["orders-m1"].Payload, []byte("{not json")) {
		t.Errorf("on record: %+v", got)
	}
}

// F-DLQ-01: letters that another review holds are not discarded.
func TestDiscard_LeavesLettersOfAnotherReview(t *testing.T) {
	b := openLetterOffice(t)
	ctx := t.Context()
	b.refuse(pubsubio.TopicOrders, "m1", "{not json", nil)
	b.awaitLetters("m1")
	held, err := pubsubio.OpenReview(ctx, b.clients.PubSub, pubsubio.TopicOrders, 0, 0)
	if err != nil || len(held.Letters) != 1 {
		t.Fatalf("%+v, %v", held, err)
	}
	b.expect(b.says(b.desk.DiscardDeadLetters(ctx, operator.LetterFilter{Topic: pubsubio.TopicOrders}, "noise", false)), "No dead letters found.")
	commands := operator.Commands{Store: b.desk.Store, PubSub: b.clients.PubSub, By: "ann"}
	letters, err := commands.DiscardDeadLetters(ctx, operator.LetterFilter{IDs: []string{"m1"}, Partial: true}, "noise")
	if err != nil || letters.Resolved != 0 || !slices.Equal(letters.Missing, []string{"m1"}) {
		t.Errorf("%+v, %v", letters, err)
	}
	if got := b.discards(); len(got) != 0 {
		t.Errorf("on record: %+v", got)
	}
	if err := held.Close(ctx); err != nil {
		t.Fatal(err)
	}
	b.awaitLetters("m1")
}
