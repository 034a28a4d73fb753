package operator_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// F-AUD-05: the record of a refused message says what an operator did with its dead letter. A
// message without a record gets none.
func TestDesk_DecidesRefusals(t *testing.T) {
	o := openLetterOffice(t)
	ctx := t.Context()
	for _, id := range []string{"21", "22", "23", "24"} {
		o.refuse(pubsubio.TopicOrders, id, "{", nil)
		if id == "24" {
			continue // refused by an earlier version
		}
		err := o.desk.Store.RecordRefusal(ctx, domain.Refusal{
			ID: domain.RefusalIDFor(pubsubio.TopicOrders, id), Topic: pubsubio.TopicOrders, MessageID: id, Reason: "UNDECODABLE", RefusedAt: discardedAt, Outcome: domain.RefusalWaiting,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.says(o.desk.DiscardDeadLetters(ctx, operator.LetterFilter{IDs: []string{"21", "24"}}, "broken sender", false))
	o.says(o.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: []string{"22"}}, false))
	docs, err := o.clients.Firestore.Collection(firestoretx.Refusals).Documents(ctx).GetAll()
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string][2]any{}
	for _, doc := range docs {
		outcomes[doc.Ref.ID] = [2]any{doc.Data()["outcome"], doc.Data()["decidedBy"]}
	}
	by := o.desk.By
	want := map[string][2]any{"orders-21": {"DISCARDED", by}, "orders-22": {"REPLAYED", by}, "orders-23": {"WAITING", nil}}
	if len(outcomes) != len(want) {
		t.Errorf("records %v, want %v", outcomes, want)
	}
	for id, w := range want {
		if outcomes[id] != w {
			t.Errorf("%s is %v, want %v", id, outcomes[id], w)
		}
	}
}
