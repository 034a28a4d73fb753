package deploy_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

var update = flag.Bool("update", false, "write the tables of deploy/bigquery anew")

// historyRows are the messages of the history's tables. The first field of each is the row's id and the
// second the time by which its table is partitioned.
var historyRows = map[string]proto.Message{
	pubsubio.HistoryEvents: &pb.EventRow{}, pubsubio.HistoryOrders: &pb.OrderRow{}, pubsubio.HistoryMissions: &pb.MissionRow{},
	pubsubio.HistoryDecisions: &pb.DecisionRow{}, pubsubio.HistoryRefusals: &pb.RefusalRow{},
}

// column is one of a table of BigQuery. Its description is the field of the .proto that it is made from.
type column struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Mode        string   `json:"mode,omitempty"`
	Description string   `json:"description,omitempty"`
	Fields      []column `json:"fields,omitempty"`
}

func columnsOf(m protoreflect.MessageDescriptor) (columns []column) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		c := column{Name: string(f.Name()), Type: columnType(f), Description: fmt.Sprintf("%s, field %d", m.Name(), f.Number())}
		if f.IsList() {
			c.Mode = "REPEATED"
		}
		if c.Type == "RECORD" {
			c.Fields = columnsOf(f.Message())
		}
		columns = append(columns, c)
	}
	return columns
}

func columnType(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.StringKind:
		return "STRING"
	case protoreflect.BoolKind:
		return "BOOL"
	case protoreflect.DoubleKind:
		return "FLOAT64"
	case protoreflect.Int32Kind:
		return "INT64"
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.Timestamp" {
			return "TIMESTAMP"
		}
		return "RECORD"
	}
	return "no column for " + f.Kind().String() // protojson writes 64 bits as text
}

// view selects from a raw table, which may have a row twice, the latest row of each id.
func view(table string, m protoreflect.MessageDescriptor) string {
	var names []string
	for i := range m.Fields().Len() {
		names = append(names, string(m.Fields().Get(i).Name()))
	}
	latest := names[1]
	if m.Fields().ByName("revision") != nil {
		latest = "revision"
	}
	return fmt.Sprintf("SELECT %s\nFROM (\n  SELECT *, ROW_NUMBER() OVER (PARTITION BY %s, %s ORDER BY %s DESC) AS nth\n  FROM `fleet.%s_raw`\n) AS numbered\nWHERE nth = 1\n",
		strings.Join(names, ", "), names[0], names[1], latest, table)
}

// reportField tells report.js how to read a field.
type reportField struct {
	Name     string              `json:"name"`
	JSON     string              `json:"json"`
	Type     string              `json:"type"`
	Optional bool                `json:"optional,omitempty"`
	Prefix   string              `json:"prefix,omitempty"` // of the long names of an enum's values
	Values   map[int]string      `json:"values,omitempty"`
	Fields   map[int]reportField `json:"fields,omitempty"`
}

func reportFields(m protoreflect.MessageDescriptor) map[int]reportField {
	fields := map[int]reportField{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		r := reportField{Name: string(f.Name()), JSON: f.JSONName(), Type: f.Kind().String(), Optional: f.HasOptionalKeyword()}
		switch f.Kind() {
		case protoreflect.Int32Kind, protoreflect.Int64Kind:
			r.Type = "int"
		case protoreflect.EnumKind:
			values := f.Enum().Values()
			r.Prefix, r.Values = strings.TrimSuffix(string(values.Get(0).Name()), "UNSPECIFIED"), map[int]string{}
			for i := range values.Len() {
				r.Values[int(values.Get(i).Number())] = strings.TrimPrefix(string(values.Get(i).Name()), r.Prefix)
			}
		case protoreflect.MessageKind:
			if r.Type = "time"; columnType(f) == "RECORD" {
				r.Type, r.Fields = "message", reportFields(f.Message())
			}
		default:
		}
		fields[int(f.Number())] = r
	}
	return fields
}

// sqlType is a type of BigQuery's routines.
type sqlType struct {
	Kind   string     `json:"typeKind"`
	Struct *sqlStruct `json:"structType,omitempty"`
}

type sqlStruct struct {
	Fields []sqlField `json:"fields"`
}

type sqlField struct {
	Name string  `json:"name"`
	Type sqlType `json:"type"`
}

// reportType is what report.js returns. JavaScript has no 64-bit integers.
func reportType(m protoreflect.MessageDescriptor) sqlType {
	var s sqlStruct
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		t := sqlType{Kind: columnType(f)}
		switch f.Kind() {
		case protoreflect.Int32Kind, protoreflect.Int64Kind:
			t.Kind = "FLOAT64"
		case protoreflect.EnumKind:
			t.Kind = "STRING"
		default:
		}
		if t.Kind == "RECORD" {
			t = reportType(f.Message())
		}
		s.Fields = append(s.Fields, sqlField{string(f.Name()), t})
	}
	return sqlType{"STRUCT", &s}
}

// historyFiles are the files of deploy/bigquery that follow from the .proto.
func historyFiles(t testing.TB, rows map[string]protoreflect.MessageDescriptor, report protoreflect.MessageDescriptor) map[string]string {
	t.Helper()
	files := map[string]string{}
	add := func(name string, content any) {
		text, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text) + "\n"
	}
	for table, m := range rows {
		add(table+".json", columnsOf(m))
		files[table+".sql"] = view(table, m)
	}
	add("report.fields.json", reportFields(report))
	add("report.type.json", reportType(report))
	selected := []string{"publish_time", "message_id"}
	for i := range report.Fields().Len() {
		selected = append(selected, "report."+string(report.Fields().Get(i).Name()))
	}
	files["reports.sql"] = fmt.Sprintf("SELECT %s\nFROM (SELECT publish_time, message_id, `fleet.report`(data) AS report FROM `fleet.reports_raw`)\nWHERE report IS NOT NULL\n", strings.Join(selected, ", "))
	return files
}

func descriptors() map[string]protoreflect.MessageDescriptor {
	rows := map[string]protoreflect.MessageDescriptor{}
	for table, m := range historyRows {
		rows[table] = m.ProtoReflect().Descriptor()
	}
	return rows
}

func reportDescriptor() protoreflect.MessageDescriptor {
	return (&pb.DroneTelemetry{}).ProtoReflect().Descriptor()
}

// staleFiles names the files that differ from what is wanted.
func staleFiles(want map[string]string) (stale []string) {
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join("bigquery", name)); err != nil || string(got) != text {
			stale = append(stale, name)
		}
	}
	return stale
}

// F-HIS-01: the tables of BigQuery, and what reads the reports, are those that the .proto says. A field that is
// missing or has another number, name or type is found.
func TestHistory_TablesAreThoseOfTheProto(t *testing.T) {
	want := historyFiles(t, descriptors(), reportDescriptor())
	for _, name := range staleFiles(want) {
		if !*update {
			t.Errorf("deploy/bigquery/%s is stale; run go test ./deploy -run TestHistory_Tables -update", name)
		} else if err := os.WriteFile(filepath.Join("bigquery", name), []byte(want[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(want[name], "no column for") {
			t.Errorf("%s has a field for which there is no column", name)
		}
	}

	// The check must be able to fail.
	for what, change := range map[string]func(*descriptorpb.DescriptorProto){
		"renumbered": func(m *descriptorpb.DescriptorProto) { m.Field[3].Number = proto.Int32(99) },
		"missing":    func(m *descriptorpb.DescriptorProto) { m.Field = m.Field[:len(m.Field)-1] },
		"renamed":    func(m *descriptorpb.DescriptorProto) { m.Field[3].Name = proto.String("other") },
		"retyped": func(m *descriptorpb.DescriptorProto) {
			m.Field[0].Type = descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum()
		},
	} {
		for table := range historyRows {
			rows := descriptors()
			rows[table] = changed(t, rows[table], change)
			if stale := staleFiles(historyFiles(t, rows, reportDescriptor())); len(stale) == 0 {
				t.Errorf("a %s field of %s is not found", what, table)
			}
		}
		if stale := staleFiles(historyFiles(t, descriptors(), changed(t, reportDescriptor(), change))); len(stale) == 0 {
			t.Errorf("a %s field of the reports is not found", what)
		}
	}
}

// changed is a message in a changed copy of its file.
func changed(t testing.TB, m protoreflect.MessageDescriptor, change func(*descriptorpb.DescriptorProto)) protoreflect.MessageDescriptor {
	t.Helper()
	file := protodesc.ToFileDescriptorProto(m.ParentFile())
	for _, one := range file.GetMessageType() {
		if one.GetName() == string(m.Name()) {
			change(one)
		}
	}
	fresh, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return fresh.Messages().ByName(m.Name())
}

// F-HIS-01: BigQuery's function reads reports in protobuf and in JSON, and nothing else.
func TestHistory_ReadsReportsInBothForms(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed, so the function that decodes reports cannot run")
	}
	stops, health, flown := 2, 87.5, int64(123456)
	at := time.Date(2026, 11, 24, 14, 0, 0, 250e6, time.UTC)
	sent := domain.Telemetry{
		DroneID: "DRÖNE-1", Timestamp: at, Position: domain.Position{Lat: 48.85, Lon: -2.35}, Battery: 81.5, SpeedKmh: 60, Status: domain.DroneMoving,
		MissionID: "M-1", CompletedStops: &stops, MissionRevision: 3, SupportsAmendments: true, BatteryHealth: &health, FlightSeconds: &flown, SerialNumber: "AB1C42",
	}
	var reports []string
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		data, _, err := wire.EncodeTelemetry(sent, f)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, base64.StdEncoding.EncodeToString(data))
	}
	least, _, err := wire.EncodeTelemetry(domain.Telemetry{DroneID: "D", Timestamp: at, Status: domain.DroneIdle}, wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	reports = append(reports, base64.StdEncoding.EncodeToString(least), base64.StdEncoding.EncodeToString(least[:len(least)-1]), base64.StdEncoding.EncodeToString([]byte("{no JSON")))
	rows := runReport(t, node, reports)
	full := map[string]any{
		"drone_id": "DRÖNE-1", "timestamp": "2026-11-24T14:00:00.250Z", "position": map[string]any{"lat": 48.85, "lon": -2.35}, "battery_percentage": 81.5,
		"speed_kmh": 60.0, "status": "MOVING", "current_mission_id": "M-1", "completed_stops": 2.0, "mission_revision": 3.0, "supports_amendments": true,
		"supports_standby": false, "battery_health_percent": 87.5, "flight_seconds": 123456.0, "serial_number": "AB1C42",
	}
	empty := map[string]any{
		"drone_id": "D", "timestamp": "2026-11-24T14:00:00.250Z", "position": map[string]any{"lat": 0.0, "lon": 0.0}, "battery_percentage": 0.0,
		"speed_kmh": 0.0, "status": "IDLE", "current_mission_id": "", "completed_stops": nil, "mission_revision": 0.0, "supports_amendments": false,
		"supports_standby": false, "battery_health_percent": nil, "flight_seconds": nil, "serial_number": "",
	}
	if diff := cmp.Diff([]any{full, full, empty, nil, nil}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// runReport has node run the function as Terraform makes it.
func runReport(t *testing.T, node string, reports []string) (rows []any) {
	t.Helper()
	files := deployFiles(t)
	body := strings.Replace(string(files["bigquery/report.js"]), "FIELDS", string(files["bigquery/report.fields.json"]), 1)
	given, err := json.Marshal(reports)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e", fmt.Sprintf("function report(data) {\n%s\n}\nconsole.log(JSON.stringify(%s.map(report)))", body, given))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return rows
}
