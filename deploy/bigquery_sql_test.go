package deploy_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// bigQueryFunctions are those that PostgreSQL lacks. The distance is that on a sphere, as BigQuery's is.
const bigQueryFunctions = `
CREATE FUNCTION unix_seconds(timestamptz) RETURNS bigint LANGUAGE sql AS 'SELECT floor(extract(epoch FROM $1))::bigint';
CREATE FUNCTION st_geogpoint(float8, float8) RETURNS point LANGUAGE sql AS 'SELECT point($1, $2)';
CREATE FUNCTION st_distance(a point, b point) RETURNS float8 LANGUAGE sql AS
	'SELECT 2 * 6371008.8 * asin(sqrt(sind((a[1] - b[1]) / 2) ^ 2 + cosd(a[1]) * cosd(b[1]) * sind((a[0] - b[0]) / 2) ^ 2))';
`

var postgresTypes = map[string]string{"STRING": "text", "TIMESTAMP": "timestamptz", "BOOL": "boolean", "FLOAT64": "float8", "INT64": "bigint", "RECORD": "fleet.position", "STRUCT": "fleet.position"}

// warehouse is a PostgreSQL with the tables and views of the history.
type warehouse struct {
	t    *testing.T
	conn *pgx.Conn
}

func newWarehouse(t *testing.T) *warehouse {
	t.Helper()
	if !storeserver.HasPostgres() {
		t.Skip("PostgreSQL is not installed, so the queries of docs/history.md cannot run")
	}
	conn, err := pgx.Connect(t.Context(), storeserver.Postgres(t, "fsync=off").URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	w := &warehouse{t, conn}
	w.do(`CREATE SCHEMA fleet; CREATE TYPE fleet.position AS (lat float8, lon float8);` + bigQueryFunctions)
	for table, m := range descriptors() {
		var columns []string
		for _, c := range columnsOf(m) {
			of := postgresTypes[c.Type]
			if c.Mode == "REPEATED" {
				of += "[]"
			}
			columns = append(columns, c.Name+" "+of)
		}
		w.do(fmt.Sprintf(`CREATE TABLE fleet.%s_raw (%s)`, table, strings.Join(columns, ", ")))
		text, err := os.ReadFile("bigquery/" + table + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		w.do(fmt.Sprintf(`CREATE VIEW fleet.%s AS %s`, table, strings.ReplaceAll(string(text), "`", "")))
	}
	columns := []string{"publish_time timestamptz"}
	for _, f := range reportType(reportDescriptor()).Struct.Fields {
		columns = append(columns, f.Name+" "+postgresTypes[f.Type.Kind])
	}
	w.do(fmt.Sprintf(`CREATE TABLE fleet.reports (%s)`, strings.Join(columns, ", ")))
	return w
}

func (w *warehouse) do(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.conn.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%v\n%s", err, sql)
	}
}

// insert adds a row as a subscription would write it.
func (w *warehouse) insert(table string, row []byte, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(fmt.Sprintf(`INSERT INTO fleet.%[1]s SELECT * FROM json_populate_record(NULL::fleet.%[1]s, $1)`, table), string(row))
}

// answer runs a query; its rows are in JSON.
func (w *warehouse) answer(query string) (rows []string) {
	w.t.Helper()
	found, err := w.conn.Query(w.t.Context(), `SELECT row_to_json(answer)::text FROM (`+query+`) AS answer`)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, query)
	}
	rows, err = pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		w.t.Fatalf("%v\n%s", err, query)
	}
	return rows
}

// F-HIS-01: the queries of docs/history.md answer what they are for, from rows as they are published, some of
// them twice.
func TestHistory_QueriesAnswer(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed, so reports cannot be decoded for the queries")
	}
	w := newWarehouse(t)
	w.do(`SET timezone = 'UTC'`)
	day := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	at := func(hours, minutes int) time.Time {
		return day.Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	order := func(id string, p domain.Priority, requester string, created, delivered time.Time, late bool, revision int64) {
		o := domain.Order{ID: domain.OrderID(id), Status: domain.OrderDelivered, CreatedAt: created, DeliveredAt: delivered, Late: late, Revision: revision}
		if delivered.IsZero() {
			o.Status = domain.OrderCancelled
		}
		o.Priority, o.RequesterID = p, requester
		row, err := wire.OrderRow(o)
		w.insert(pubsubio.HistoryOrders+"_raw", row, err)
	}
	order("O-1", domain.PriorityHigh, "WARD-1", at(14, 0), at(14, 20), true, 4) // before it was corrected
	order("O-1", domain.PriorityHigh, "WARD-1", at(14, 0), at(14, 20), false, 5)
	order("O-1", domain.PriorityHigh, "WARD-1", at(14, 0), at(14, 20), false, 5)
	order("O-2", domain.PriorityHigh, "WARD-1", at(14, 0), at(14, 50), true, 5)
	order("O-3", domain.PriorityCritical, "WARD-2", at(15, 0), at(15, 9), false, 5)
	order("O-4", domain.PriorityCritical, "WARD-2", at(15, 0), time.Time{}, false, 2)
	mission := func(id string, start, end time.Time, orders ...domain.OrderID) {
		row, err := wire.MissionRow(domain.Mission{ID: domain.MissionID(id), DroneID: "DRONE-1", OrderIDs: orders, Status: domain.MissionCompleted, StartTime: start, EndTime: end, EstimatedBatteryConsumption: 21, Revision: 3})
		w.insert(pubsubio.HistoryMissions+"_raw", row, err)
	}
	mission("M-1", at(14, 1), at(14, 55), "O-1", "O-2")
	mission("M-2", at(15, 1), at(15, 15), "O-3")
	events := 0
	event := func(e domain.Event) {
		events++
		row, err := wire.EventRow(fmt.Sprint("E-", events), e)
		w.insert(pubsubio.HistoryEvents+"_raw", row, err)
	}
	event(domain.Event{Entity: domain.EntityDrone, ID: "DRONE-1", To: "MOVING", Time: at(14, 2), MissionID: "M-1"})
	event(domain.Event{Entity: domain.EntityDrone, ID: "DRONE-1", To: "MOVING", Time: at(14, 30), MissionID: "M-1"}) // from its first stop on
	event(domain.Event{Entity: domain.EntityDrone, ID: "DRONE-1", To: "MOVING", Time: at(15, 3), MissionID: "M-2"})
	event(domain.Event{Entity: domain.EntityOrder, ID: "O-4", From: "PENDING", To: "CANCELLED", Time: at(15, 4), Cause: domain.CauseOperator, By: "ann@example.org", Reason: "not needed"})
	row, err := wire.DecisionRow(domain.LedgerEntry{ID: "DEC-1", Outcome: domain.OutcomeRejected, Reason: "STALE_FENCE", AppliedAt: at(14, 0)})
	w.insert(pubsubio.HistoryDecisions+"_raw", row, err)
	for i, r := range []domain.Refusal{{Topic: "orders", Reason: "UNDECODABLE", Count: 3}, {Topic: "orders", Reason: "UNDECODABLE"}, {Topic: "telemetry", Reason: "DRONE_UNKNOWN"}} {
		r.ID, r.RefusedAt = domain.RefusalID(fmt.Sprint("R-", i)), at(14, i)
		row, err := wire.RefusalRow(r)
		w.insert(pubsubio.HistoryRefusals+"_raw", row, err)
	}
	var reports []string
	for i, lat := range []float64{48.85, 48.86, 48.87, 48.87} {
		status := domain.DroneMoving
		if i == 3 {
			status = domain.DroneIdle
		}
		data, _, err := wire.EncodeTelemetry(domain.Telemetry{
			DroneID: "DRONE-1", Timestamp: at(14, 10+i), Position: domain.Position{Lat: lat, Lon: 2.35}, Battery: 80 - 7*float64(i), Status: status, MissionID: "M-1",
		}, wire.Protobuf)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, base64.StdEncoding.EncodeToString(data))
	}
	for i, report := range runReport(t, node, reports) {
		row, err := json.Marshal(report)
		w.insert("reports", row, err)
		w.do(`UPDATE fleet.reports SET publish_time = $1 WHERE publish_time IS NULL`, at(14, 10+i))
	}

	page, err := os.ReadFile("../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	want := [][]string{
		{`{"priority":"CRITICAL","requester_id":"WARD-2","delivered":1,"on_time":1}`, `{"priority":"HIGH","requester_id":"WARD-1","delivered":2,"on_time":0.5}`},
		{`{"priority":"CRITICAL","orders":1,"seconds":180}`, `{"priority":"HIGH","orders":2,"seconds":120}`},
		{
			`{"id":"M-1","start_time":"2026-11-24T14:01:00+00:00","end_time":"2026-11-24T14:55:00+00:00","status":"COMPLETED","estimated_battery_percent":21,"battery_percent":21}`,
			`{"id":"M-2","start_time":"2026-11-24T15:01:00+00:00","end_time":"2026-11-24T15:15:00+00:00","status":"COMPLETED","estimated_battery_percent":21,"battery_percent":null}`,
		},
		{`{"topic":"orders","reason":"UNDECODABLE","messages":4}`, `{"topic":"decisions","reason":"STALE_FENCE","messages":1}`, `{"topic":"telemetry","reason":"DRONE_UNKNOWN","messages":1}`},
		{`{"time":"2026-11-24T15:04:00+00:00","person":"ann@example.org","entity":"order","entity_id":"O-4","status_before":"PENDING","status_after":"CANCELLED","reason":"not needed"}`},
		{`{"drone_id":"DRONE-1","metres":2224}`},
	}
	if len(queries) != len(want) {
		t.Fatalf("%d queries, want %d", len(queries), len(want))
	}
	zeros := regexp.MustCompile(`(\.\d*?)0+([,}])`)
	for i, query := range queries {
		got := w.answer(query[1])
		for j := range got {
			got[j] = strings.ReplaceAll(zeros.ReplaceAllString(got[j], "$1$2"), ".}", "}")
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("query %d (-want +got):\n%s\n%s", i+1, diff, query[1])
		}
	}
}
