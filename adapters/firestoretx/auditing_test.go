package firestoretx

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

var (
	// question is a row of the table of docs/auditing.md.
	question = regexp.MustCompile("(?m)^\\| ([^|]+\\?|[^|]+) \\| `(\\w+)` \\| (`[^|]+`) \\| `(\\w+)( desc)?` \\|$")
	where    = regexp.MustCompile("`(\\w+) (==|>=|<) ([^`]+)`")
)

// auditQuery is the query of one row, and the fields that it names.
func auditQuery(t *testing.T, client *firestore.Client, row []string) (firestore.Query, []string) {
	t.Helper()
	query, fields := client.Collection(row[2]).Query, []string{row[4]}
	for _, c := range where.FindAllStringSubmatch(row[3], -1) {
		var value any = c[3]
		if at, err := time.Parse(time.RFC3339, c[3]); err == nil {
			value = at
		}
		query, fields = query.Where(c[1], c[2], value), append(fields, c[1])
	}
	direction := firestore.Asc
	if row[5] != "" {
		direction = firestore.Desc
	}
	return query.OrderBy(row[4], direction), fields
}

// seedAudited stores one document that answers each question of docs/auditing.md.
func seedAudited(t *testing.T, s *Store) {
	t.Helper()
	at := time.Date(2026, 11, 24, 14, 5, 30, 0, time.UTC)
	event := domain.Event{Entity: domain.EntityOrder, ID: "O-1", Time: at, DroneID: "DRONE-1", OrderID: "O-1", MissionID: "M-1"}
	documents := map[string][]map[string]any{
		Events: {s.encodeEvent(event)},
		Decisions: {ledgerCodec.encode(domain.LedgerEntry{
			Outcome: domain.OutcomeRejected, Reason: "STALE_FENCE", DroneID: "DRONE-1", AppliedAt: at,
		})},
		Cycles:   {cycleCodec.encode(domain.Cycle{DepotID: "DEPOT-1", Outcome: domain.CycleFailed, StartedAt: at})},
		Missions: {missionCodec.encode(domain.Mission{DroneID: "DRONE-1", Status: domain.MissionFailed, StartTime: at})},
		Orders: {
			orderCodec.encode(domain.Order{Status: domain.OrderPending, CreatedAt: at, Deadline: at.Add(time.Hour)}),
			orderCodec.encode(domain.Order{Status: domain.OrderDelivered, CreatedAt: at, Deadline: at.Add(time.Hour)}),
		},
	}
	for collection, list := range documents {
		for _, doc := range list {
			if _, _, err := s.client.Collection(collection).Add(t.Context(), doc); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// F-DOC-03: what an auditor asks in the console is answered, with the indexes of
// production; those about events in a sharded fleet too, shard by shard.
func TestAuditing_ConsoleQuestionsAreAnswered(t *testing.T) {
	page, err := os.ReadFile("../../docs/auditing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := question.FindAllStringSubmatch(string(page), -1)
	if asked := strings.Count(string(page), "? | `"); len(rows) < 6 || len(rows) < asked {
		t.Fatalf("read %d questions of %d", len(rows), asked)
	}
	for name, fleet := range map[string]struct {
		indexes []byte
		shards  int
	}{"default": {deploy.FirestoreIndexes, 0}, "sharded": {deploy.ShardedFirestoreIndexes, 8}} {
		t.Run(name, func(t *testing.T) {
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: fleet.indexes})
			s := New(emutest.Clients(t).Firestore, Config{EventShards: fleet.shards})
			seedAudited(t, s)
			for _, row := range rows {
				query, _ := auditQuery(t, s.client, row)
				if fleet.shards > 0 && row[2] == Events {
					query = query.Where(eventShard, "==", shardOf("O-1", fleet.shards))
				}
				docs := query.Documents(t.Context())
				if _, err := docs.Next(); err == iterator.Done {
					t.Errorf("%s: no answer", row[1])
				} else if err != nil {
					t.Errorf("%s: %v", row[1], err)
				}
				docs.Stop()
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
		Cycles: fieldsOf(cycleCodec), Events: fieldsOf(eventCodec),
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
