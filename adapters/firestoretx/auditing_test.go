package firestoretx

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

var (
	// question is a row of the tables of docs/auditing.md.
	question = regexp.MustCompile("(?m)^\\| ([^|]+) \\| `(\\w+)` \\| ([^|]+) \\| (?:`(\\w+)( desc)?`|-) \\| [^|]+ \\|$")
	where    = regexp.MustCompile("`(\\w+) (==|>=|<) ([^`]+)`")
)

// auditCondition is a condition of a row, and a value that just misses it.
type auditCondition struct {
	field, operator string
	value, miss     any
}

func auditConditions(t *testing.T, row []string) (list []auditCondition) {
	t.Helper()
	for _, m := range where.FindAllStringSubmatch(row[3], -1) {
		c := auditCondition{field: m[1], operator: m[2], value: m[3], miss: m[3] + "-"}
		if at, err := time.Parse(time.RFC3339, m[3]); err == nil {
			c.value, c.miss = at, at
			if c.operator == ">=" {
				c.miss = at.Add(-time.Microsecond)
			}
		} else if yes, err := strconv.ParseBool(m[3]); err == nil {
			c.value, c.miss = yes, !yes
		} else if n, err := strconv.ParseFloat(m[3], 64); err == nil && c.operator == "<" {
			c.value, c.miss = n, n
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		t.Errorf("%s: no condition in %s", row[1], row[3])
	}
	return list
}

// auditQuery is the query of one row, and the fields that it names.
func auditQuery(t *testing.T, client *firestore.Client, row []string) (firestore.Query, []string) {
	t.Helper()
	query := client.Collection(row[2]).Query
	var fields []string
	for _, c := range auditConditions(t, row) {
		query, fields = query.Where(c.field, c.operator, c.value), append(fields, c.field)
	}
	if row[4] == "" {
		return query, fields
	}
	direction := firestore.Asc
	if row[5] != "" {
		direction = firestore.Desc
	}
	return query.OrderBy(row[4], direction), append(fields, row[4])
}

// seedAudited stores documents that answer the questions of docs/auditing.md.
func seedAudited(t *testing.T, s *Store) {
	t.Helper()
	const ann = "ann@example.org"
	at := time.Date(2026, 11, 24, 14, 5, 30, 0, time.UTC)
	event := domain.Event{
		Entity: domain.EntityOrder, ID: "O-1", To: string(domain.OrderCancelled), Cause: domain.CauseOperator, By: ann, Reason: "ORDER_CONFLICT",
		Time: at, DroneID: "DRONE-1", OrderID: "O-1", MissionID: "M-1",
	}
	order := domain.Order{
		OrderContent: domain.OrderContent{Priority: domain.PriorityCritical, RequesterID: "ward-4"}, CreatedAt: at, Deadline: at.Add(time.Hour), Late: true,
	}
	waiting, delivered := order, order
	waiting.Status, delivered.Status, delivered.DeliveredAt = domain.OrderPending, domain.OrderDelivered, at
	documents := map[string][]map[string]any{
		Events: {s.encodeEvent(event)},
		Decisions: {ledgerCodec.encode(domain.LedgerEntry{
			Outcome: domain.OutcomeRejected, Reason: "STALE_FENCE", DroneID: "DRONE-1", CycleID: "C-1", AppliedAt: at,
		})},
		Cycles: {cycleCodec.encode(domain.Cycle{DepotID: "DEPOT-1", Outcome: domain.CycleFailed, StartedAt: at.Add(-time.Minute)})},
		Missions: {missionCodec.encode(domain.Mission{
			DroneID: "DRONE-1", Status: domain.MissionFailed, FailureReason: domain.FailureStalled, StartTime: at, EndTime: at,
		})},
		Orders:       {orderCodec.encode(waiting), orderCodec.encode(delivered)},
		PlaceChanges: {placeChangeCodec.encode(domain.PlaceChange{Kind: domain.PlaceDepot, ID: "DEPOT-1", ChangedAt: at, ChangedBy: ann})},
		Maintenance:  {maintenanceCodec.encode(domain.MaintenanceRecord{DroneID: "DRONE-1", At: at, By: ann})},
		Discards:     {discardCodec.encode(domain.Discard{Topic: "orders", DiscardedAt: at, DiscardedBy: ann})},
		Replays:      {replayCodec.encode(domain.Replay{Topic: "orders", ReplayedAt: at, ReplayedBy: ann})},
		LockBreaks:   {lockBreakCodec.encode(domain.LockBreak{Key: "cycle", BrokenAt: at, BrokenBy: ann})},
		Keys:         {keyCodec.encode(domain.APIKey{CreatedAt: at, CreatedBy: ann}), keyCodec.encode(domain.APIKey{CreatedAt: at, CreatedBy: "bob", RevokedAt: at, RevokedBy: ann})},
		AlertAcks:    {alertAckCodec.encode(domain.AlertAck{At: at, By: ann})},
		Refusals: {refusalCodec.encode(domain.Refusal{
			Topic: "orders", Reason: "UNDECODABLE", RefusedAt: at, Outcome: domain.RefusalWaiting,
		})},
		Learned: {droneTravelCodec.encode(domain.DroneTravel{SpeedKmh: 39})},
	}
	for collection, list := range documents {
		for _, doc := range list {
			if _, _, err := s.client.Collection(collection).Add(t.Context(), doc); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// asksShards says which questions docs/auditing.md gives the condition of shards: the ordered ones about
// events and orders that name no drone, order, mission, person or requester.
func asksShards(row []string) bool {
	spread := slices.ContainsFunc([]string{"droneId", "orderId", "missionId", "by", "requesterId"}, func(field string) bool {
		return strings.Contains(row[3], "`"+field+" ==")
	})
	return (row[2] == Events || row[2] == Orders) && row[4] != "" && !spread
}

// F-DOC-03, F-AUD-01, F-AUD-03, F-AUD-04, F-AUD-08, F-AUD-11, F-AUD-13, F-HIS-03: an auditor's questions in
// the console are answered with production's indexes, those of a sharded fleet with one condition more at most.
// A document that misses one condition is not in an answer.
func TestAuditing_ConsoleQuestionsAreAnswered(t *testing.T) {
	page, err := os.ReadFile("../../docs/auditing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := question.FindAllStringSubmatch(string(page), -1)
	if asked := strings.Count(string(page), "? | `"); len(rows) < 40 || len(rows) < asked {
		t.Fatalf("read %d questions of %d", len(rows), asked)
	}
	for name, fleet := range map[string]struct {
		indexes []byte
		sharded bool
	}{"default": {deploy.FirestoreIndexes, false}, "sharded": {deploy.ShardedFirestoreIndexes, true}} {
		t.Run(name, func(t *testing.T) {
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: fleet.indexes})
			s := New(emutest.Clients(t).Firestore, Config{Sharded: fleet.sharded})
			seedAudited(t, s)
			for _, row := range rows {
				query, _ := auditQuery(t, s.client, row)
				if asksShards(row) {
					query = s.ofShards(query)
				}
				answers := func() []*firestore.DocumentSnapshot {
					docs, err := query.Documents(t.Context()).GetAll()
					if err != nil {
						t.Errorf("%s: %v", row[1], err)
					}
					return docs
				}
				hits := answers()
				if len(hits) == 0 {
					t.Errorf("%s: no answer", row[1])
					continue
				}
				for _, c := range auditConditions(t, row) {
					near := maps.Clone(hits[0].Data())
					near[c.field] = c.miss
					if _, _, err := s.client.Collection(row[2]).Add(t.Context(), near); err != nil {
						t.Fatal(err)
					}
				}
				if again := answers(); len(again) != len(hits) {
					t.Errorf("%s: %d answers, and %d with near misses beside them", row[1], len(hits), len(again))
				}
			}
		})
	}
}

// The queries of docs/auditing.md name fields that documents have.
func TestAuditing_QuestionsNameFieldsOfDocuments(t *testing.T) {
	page, err := os.ReadFile("../../docs/auditing.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]map[string]bool{
		Orders: fieldsOf(orderCodec), Missions: fieldsOf(missionCodec), Decisions: fieldsOf(ledgerCodec),
		Cycles: fieldsOf(cycleCodec), Events: fieldsOf(eventCodec), PlaceChanges: fieldsOf(placeChangeCodec), Maintenance: fieldsOf(maintenanceCodec),
		Discards: fieldsOf(discardCodec), Replays: fieldsOf(replayCodec), LockBreaks: fieldsOf(lockBreakCodec), AlertAcks: fieldsOf(alertAckCodec),
		Refusals: fieldsOf(refusalCodec), Learned: fieldsOf(droneTravelCodec), Keys: fieldsOf(keyCodec),
	}
	client := emutest.Clients(t).Firestore
	for _, row := range question.FindAllStringSubmatch(string(page), -1) {
		_, named := auditQuery(t, client, row)
		for _, name := range named {
			if _, exists := fields[row[2]][name]; !exists {
				t.Errorf("%s: no document in %s has a field %s", row[1], row[2], name)
			}
		}
	}
}
