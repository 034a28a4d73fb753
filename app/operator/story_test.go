package operator

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// F-DOC-01: the events of one entity are sorted by revision, regardless of clocks; other
// events by time; those of one transaction begin with the mission.
func TestSortEvents_OrdersByRevisionThenTime(t *testing.T) {
	event := func(kind domain.EntityKind, id string, revision int64, second int) domain.Event {
		return domain.Event{Entity: kind, ID: id, Revision: revision, Time: noon.Add(time.Duration(second) * time.Second)}
	}
	want := []domain.Event{
		event(domain.EntityOrder, "O1", 1, 1),
		event(domain.EntityDrone, "D1", 0, 2), // a note, though the drone's events came later
		event(domain.EntityMission, "M1", 1, 5),
		event(domain.EntityDrone, "D1", 1, 5),
		event(domain.EntityDrone, "D1", 2, 3), // written by a clock that was behind
		event(domain.EntityOrder, "O1", 2, 5),
		event(domain.EntityOrder, "O2", 1, 5),
		event(domain.EntityDrone, "D2", 1, 6),
		event(domain.EntityDrone, "D1", 3, 7),
		event(domain.EntityDrone, "D1", 0, 8),
		event(domain.EntityDrone, "D1", 4, 9),
	}
	for _, order := range [][]int{{10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, {4, 0, 8, 2, 6, 1, 10, 3, 9, 7, 5}} {
		events := make([]domain.Event, len(want))
		for i, from := range order {
			events[i] = want[from]
		}
		sortEvents(events)
		for i, e := range events {
			if e.Entity != want[i].Entity || e.ID != want[i].ID || e.Revision != want[i].Revision || !e.Time.Equal(want[i].Time) {
				t.Errorf("place %d: %s %s, revision %d; want %s %s, revision %d", i, e.Entity, e.ID, e.Revision, want[i].Entity, want[i].ID, want[i].Revision)
			}
		}
	}
}

// F-DOC-01: a step shows only what changed, and names related entities once.
func TestStory_LinesShowOnlyChanges(t *testing.T) {
	fresh := map[string]any{"assignedMissionId": "", "attempts": int64(0), "held": false, "heldReason": nil, "contentHash": "h1"}
	assigned := map[string]any{"assignedMissionId": "M1", "assignedDroneId": "D1", "attempts": int64(1), "held": false, "heldReason": nil, "contentHash": "h1"}
	changed := map[string]any{"assignedMissionId": "M2", "assignedDroneId": "", "attempts": int64(1), "held": true, "heldReason": nil, "contentHash": "h2"}
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	s := story{
		subject: SubjectOrder, id: "O1",
		ledger: []domain.LedgerEntry{
			{ID: "DEC-1", DroneID: "D1", OrderIDs: []domain.OrderID{"O1"}, MissionID: "M1", CycleID: "C1", Fence: "7", Outcome: domain.OutcomeApplied, AppliedAt: at(1)},
			{ID: "DEC-3", DroneID: "D1", OrderIDs: []domain.OrderID{"O1", "O2"}, Outcome: domain.OutcomeRejected, Reason: "STALE", Detail: "too old", AppliedAt: at(9)},
		},
		events: []domain.Event{
			{Entity: domain.EntityOrder, ID: "O1", Revision: 1, To: "PENDING", Time: at(0), OrderID: "O1", State: fresh},
			{Entity: domain.EntityOrder, ID: "O1", Revision: 2, From: "PENDING", To: "ASSIGNED", Time: at(1), State: assigned,
				OrderID: "O1", DroneID: "D1", MissionID: "M1", DecisionID: "DEC-1", CycleID: "C1"},
			{Entity: domain.EntityOrder, ID: "O1", To: "ASSIGNED", Reason: "NO", Time: at(2), OrderID: "O1", State: map[string]any{"attempts": int64(5)}},
			{Entity: domain.EntityOrder, ID: "O1", Revision: 3, From: "ASSIGNED", To: "ASSIGNED", Time: at(3), State: changed,
				OrderID: "O1", DecisionID: "DEC-2", CycleID: "C2"},
			{Entity: domain.EntityDrone, ID: "O1", Revision: 1, To: "IDLE", Time: at(4), OrderID: "O2", DroneID: "O1"},
		},
	}
	want := []string{
		"order O1: new: PENDING",
		"decision DEC-1: APPLIED | drone D1, orders O1, mission M1, cycle C1, fence 7",
		"order O1: PENDING -> ASSIGNED; attempts=1 | drone D1, mission M1",
		"order O1: refused; stays ASSIGNED because NO",
		"order O1: stays ASSIGNED; assignedDroneId=none; assignedMissionId=M2; content changed; held=true | decision DEC-2, cycle C2",
		"drone O1: new: IDLE | order O2",
		"decision DEC-3: REJECTED because STALE: too old | drone D1, orders O1 O2",
	}
	var got []string
	for _, l := range s.lines() {
		got = append(got, l.what+prefixed(" | ", l.related))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// F-DOC-01: a decision is placed right before its effects, even if a clock that was ahead
// wrote the earlier events.
func TestStory_PlacesADecisionBeforeItsEffects(t *testing.T) {
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	s := story{
		subject: SubjectOrder, id: "O1",
		ledger: []domain.LedgerEntry{
			{ID: "DEC-0", DroneID: "D1", Outcome: domain.OutcomeRejected, Reason: "STALE", AppliedAt: at(4)},
			{ID: "DEC-1", DroneID: "D1", Outcome: domain.OutcomeApplied, AppliedAt: at(5)},
		},
		events: []domain.Event{
			{Entity: domain.EntityOrder, ID: "O1", Revision: 1, To: "PENDING", Time: at(9)},
			{Entity: domain.EntityOrder, ID: "O1", Revision: 2, From: "PENDING", To: "ASSIGNED", Time: at(5), DecisionID: "DEC-1"},
			{Entity: domain.EntityOrder, ID: "O1", Revision: 3, From: "ASSIGNED", To: "IN_DELIVERY", Time: at(6), DecisionID: "DEC-1"},
		},
	}
	want := []string{
		"decision DEC-0: REJECTED because STALE", "order O1: new: PENDING",
		"decision DEC-1: APPLIED", "order O1: PENDING -> ASSIGNED", "order O1: ASSIGNED -> IN_DELIVERY",
	}
	var got []string
	for _, l := range s.lines() {
		got = append(got, l.what)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// F-DOC-01: the current state shows everything that an operator acts on, and only what
// applies.
func TestStory_NowShowsWhatApplies(t *testing.T) {
	mission := domain.Mission{ID: "M1", Status: domain.MissionActive, DroneID: "D1", OrderIDs: []domain.OrderID{"O1"}, StartTime: noon}
	revoked := mission
	revoked.CommandPublishedAt, revoked.RevokePublishedAt = noon, noon.Add(time.Second)
	for _, row := range []struct {
		name string
		s    story
		want []string
	}{
		{"drone", story{subject: SubjectDrone, drone: &domain.Drone{ID: "D1"}}, nil},
		{"drone with an unacknowledged mission", story{subject: SubjectDrone, drone: &domain.Drone{ID: "D1", CurrentMissionID: "M1"}},
			[]string{"  on mission M1, not acknowledged yet"}},
		{"drone with an acknowledged mission", story{subject: SubjectDrone, drone: &domain.Drone{ID: "D1", CurrentMissionID: "M1", MissionAcked: true}},
			[]string{"  on mission M1, acknowledged"}},
		{"drone in trouble", story{subject: SubjectDrone, drone: &domain.Drone{ID: "D1", EmergencyLatched: true, GhostMissionID: "M0"}},
			[]string{"  its emergency waits for an operator: drones clear D1 --reason ...", "  still flies mission M0, which failed"}},
		{"order", story{subject: SubjectOrder, order: &domain.Order{ID: "O1"}}, nil},
		{"order with every flag", story{subject: SubjectOrder, order: &domain.Order{ID: "O1", AssignedDroneID: "D1", AssignedMissionID: "M1", DeliveredAt: noon, Held: true, HeldReason: "ask", Late: true}},
			[]string{"  drone D1, mission M1", "  delivered 2026-11-21 12:00:00.000 UTC", "  held: ask", "  late"}},
		{"mission", story{subject: SubjectMission, mission: &mission},
			[]string{"  decision -, cycle -, started 2026-11-21 12:00:00.000 UTC, not ended, planned 0.0 min and 0.0 % of battery", "  command not sent yet"}},
		{"mission that was revoked", story{subject: SubjectMission, mission: &revoked},
			[]string{"  decision -, cycle -, started 2026-11-21 12:00:00.000 UTC, not ended, planned 0.0 min and 0.0 % of battery",
				"  command sent 2026-11-21 12:00:00.000 UTC, revoked 2026-11-21 12:00:01.000 UTC"}},
		{"decision", story{subject: SubjectDecision, decision: &domain.LedgerEntry{ID: "DEC-1", DroneID: "D1", SnapshotTime: noon, AppliedAt: noon.Add(time.Second)}},
			[]string{"  drone D1, orders none, cycle -, fence -", "  snapshot 2026-11-21 12:00:00.000, published , received , judged 2026-11-21 12:00:01.000 UTC", "  message -"}},
		{"cycle", story{subject: SubjectCycle, cycle: &domain.Cycle{ID: "C1", StartedAt: noon, SnapshotTime: noon, Drones: 3, Orders: 2, Missions: 1, Assigned: 2, ReadTook: time.Second, SolveTook: 2 * time.Second, PublishTook: 3 * time.Second}},
			[]string{"  by -, fence -, started 2026-11-21 12:00:00.000 UTC, not ended",
				"  saw 3 drones and 2 orders at 2026-11-21 12:00:00.000 UTC; 1 missions for 2 orders; no plan", "  read 1s, solve 2s, publish 3s"}},
	} {
		var out bytes.Buffer
		row.s.printNow(&Desk{Out: &out, Now: func() time.Time { return noon }})
		if got := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")[1:]; !slices.Equal(got, row.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// Times are shown relative to now, past and future.
func TestDesk_AgoShowsRelativeTimes(t *testing.T) {
	d := Desk{Now: func() time.Time { return noon }}
	for since, want := range map[time.Duration]string{
		0: "0s ago", 3*time.Second + 400*time.Millisecond: "3s ago", -5 * time.Minute: "in 5m0s",
		time.Hour: "1h0m0s ago", time.Hour + 31*time.Second: "1h1m0s ago", -(2*time.Hour + 20*time.Second): "in 2h0m0s",
	} {
		if got := d.ago(noon.Add(-since)); got != want {
			t.Errorf("%s: %q, want %q", since, got, want)
		}
	}
	for _, day := range []string{"0001-01-02", "1970-01-01", "9999-12-31"} {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.ago(at); got != day {
			t.Errorf("%s is shown as %q", day, got)
		}
	}
	if got := d.ago(time.Time{}); got != "" {
		t.Errorf("never: %q", got)
	}
}

// F-DOC-01: fields that a newer version records are shown, whatever their type.
func TestStory_LinesShowStatesOfAnyType(t *testing.T) {
	state := func(stops ...any) map[string]any {
		return map[string]any{"stops": stops, "wind": map[string]any{"from": "N"}}
	}
	s := story{subject: SubjectOrder, id: "O1", events: []domain.Event{
		{Entity: domain.EntityOrder, ID: "O1", Revision: 1, To: "PENDING", Time: noon, State: state("A")},
		{Entity: domain.EntityOrder, ID: "O1", Revision: 2, From: "PENDING", To: "PENDING", Time: noon, State: state("A", "B")},
		{Entity: domain.EntityOrder, ID: "O1", Revision: 3, From: "PENDING", To: "PENDING", Time: noon, State: state("A", "B")},
	}}
	for i, want := range []string{
		"order O1: new: PENDING; stops=[A]; wind=map[from:N]", "order O1: stays PENDING; stops=[A B]", "order O1: stays PENDING",
	} {
		if got := s.lines()[i].what; got != want {
			t.Errorf("line %d is %q, want %q", i+1, got, want)
		}
	}
}
