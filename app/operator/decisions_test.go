package operator_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// F-REL-03: missions, cycles and decisions are listed, and a list as CSV has a header and a row for
// each entity, whatever its cells contain; notes and cursors go elsewhere.
func TestDesk_ListsMissionsCyclesAndDecisions(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	at := time.Date(2026, 11, 24, 14, 5, 30, 0, time.UTC)
	for _, doc := range []struct {
		collection, id string
		fields         map[string]any
	}{
		{firestoretx.Missions, "M1", map[string]any{"status": "FAILED", "droneId": "D1", "orderIds": []string{"O1", "O2"}, "failureReason": "STALLED", "startTime": at}},
		{firestoretx.Cycles, "C1", map[string]any{"depotId": "DEPOT-1", "outcome": "FAILED", "startedAt": at, "detail": "said \"no\", twice"}},
		{firestoretx.Decisions, "X1", map[string]any{"outcome": "REJECTED", "reason": "STALE_FENCE", "droneId": "D1", "orderIds": []string{"O1"}, "cycleId": "C1", "appliedAt": at}},
		{firestoretx.Decisions, "X2", map[string]any{"outcome": "APPLIED", "droneId": "D1", "appliedAt": at}},
	} {
		if _, err := o.clients.Firestore.Collection(doc.collection).Doc(doc.id).Set(ctx, doc.fields); err != nil {
			t.Fatal(err)
		}
	}
	lists := []func(limit int) error{
		func(int) error { return o.desk.ListMissions(ctx, domain.MissionFailed, firestoretx.Page{}) },
		func(int) error { return o.desk.ListCycles(ctx, domain.CycleFailed, firestoretx.Page{}) },
		func(limit int) error {
			return o.desk.ListDecisions(ctx, firestoretx.LedgerFilter{}, firestoretx.Page{Limit: limit})
		},
	}
	table := ""
	for _, list := range lists {
		table += o.says(list(0))
	}
	o.expect(table, "M1", "FAILED", "D1", "O1 O2", "0 of 0", "2026-11-24 14:05:30", "STALLED", "C1", "DEPOT-1", "FAILED", `said "no", twice`, "X1", "REJECTED", "STALE_FENCE", "O1", "C1", "X2", "APPLIED")
	o.expect(o.says(o.desk.ListMissions(ctx, domain.MissionActive, firestoretx.Page{})), "No missions are ACTIVE.")

	var notes bytes.Buffer
	o.desk.CSV, o.desk.Notes = true, &notes
	for i, list := range lists {
		rows, malformed := csv.NewReader(strings.NewReader(o.says(list(1)))).ReadAll()
		if malformed != nil || len(rows) != 2 {
			t.Fatalf("list %d: %q, %v", i, rows, malformed)
		}
		if i == 1 && rows[1][10] != `said "no", twice` {
			t.Errorf("row %q", rows[1])
		}
	}
	o.expect(notes.String(), "There are more; give --cursor=")
	// Without an entity there is still a header.
	if text := o.says(o.desk.ListMissions(ctx, domain.MissionActive, firestoretx.Page{})); !strings.HasPrefix(text, "MISSION,STATUS,") || strings.Count(text, "\n") != 1 {
		t.Errorf("missions: %q", text)
	}
	if text := o.says(o.desk.ListLocks(ctx, false, nil, firestoretx.Page{})); !strings.HasPrefix(text, "LOCK,KEY HASH,") || strings.Count(text, "\n") != 1 {
		t.Errorf("locks: %q", text)
	}
}
