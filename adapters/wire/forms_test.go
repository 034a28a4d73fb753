package wire_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// F-WIRE-02
func TestDecodeTelemetry_JSONForms(t *testing.T) {
	want := goldenTelemetry()
	for name, payload := range map[string]string{
		"camel names, short enum": `{"droneId":"D-001","timestamp":"2026-11-21T10:15:30.123456Z","position":{"lat":48.8606,"lon":2.3376},
			"batteryPercentage":81.5,"speedKmh":50,"status":"DELIVERING","currentMissionId":"M-C1-D-001"}`,
		"snake names, long enum": `{"drone_id":"D-001","timestamp":"2026-11-21T10:15:30.123456Z","position":{"lat":48.8606,"lon":2.3376},
			"battery_percentage":81.5,"speed_kmh":50,"status":"DRONE_STATUS_DELIVERING","current_mission_id":"M-C1-D-001"}`,
		"enum number, zoned time, numbers as text": `{"droneId":"D-001","timestamp":"2026-11-21T11:15:30.123456+01:00","position":{"lat":"48.8606","lon":2.3376},
			"batteryPercentage":8.15e1,"speedKmh":"50","status":4,"currentMissionId":"M-C1-D-001"}`,
		"unknown fields at every level": ` {"zz":{"status":"NONSENSE","a":[1,{"b":null}]},"droneId":"D-001","timestamp":"2026-11-21T10:15:30.123456Z",
			"position":{"lat":48.8606,"lon":2.3376,"alt":120},"batteryPercentage":81.5,"speedKmh":50 ,
			"status" : "DELIVERING" ,"currentMissionId":"M-C1-D-001","firmware":"2.1"}`,
		"nanoseconds are cut to what the store keeps": `{"droneId":"D-001","timestamp":"2026-11-21T10:15:30.123456789Z","position":{"lat":48.8606,"lon":2.3376},
			"batteryPercentage":81.5,"speedKmh":50,"status":"DELIVERING","currentMissionId":"M-C1-D-001"}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, attrs := range []map[string]string{nil, {"content-type": "application/json; charset=utf-8"}} {
				got, err := wire.DecodeTelemetry([]byte(payload), attrs)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// F-WIRE-02
func TestDecodeTelemetry_UnspecifiedStatusIsEmpty(t *testing.T) {
	for _, status := range []string{`"UNSPECIFIED"`, `"DRONE_STATUS_UNSPECIFIED"`, `0`, `null`} {
		got, err := wire.DecodeTelemetry([]byte(`{"droneId":"D","timestamp":"2026-11-21T10:15:30Z","position":{"lat":0,"lon":0},"status":`+status+`}`), nil)
		if err != nil {
			t.Fatalf("status %s: %v", status, err)
		}
		if got.Status != "" {
			t.Errorf("status %s decoded to %q, want none", status, got.Status)
		}
	}
}

// F-WIRE-02: an id of 123 bytes makes a protobuf payload begin like JSON.
func TestDecodeTelemetry_ProtobufThatLooksLikeJSON(t *testing.T) {
	for _, id := range []string{strings.Repeat("d", 123), "{" + strings.Repeat("d", 31), "{}" + strings.Repeat("d", 8)} {
		sent := goldenTelemetry()
		sent.DroneID = domain.DroneID(id)
		data, _, err := wire.EncodeTelemetry(sent, wire.Protobuf)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeTelemetry(data, nil)
		if err != nil {
			t.Errorf("id of %d bytes: %v", len(id), err)
		} else if diff := cmp.Diff(sent, got); diff != "" {
			t.Errorf("id of %d bytes (-want +got):\n%s", len(id), diff)
		}
	}
}

// F-WIRE-01: fields of newer writers are ignored.
func TestDecodeTelemetry_UnknownProtobufFieldsAreIgnored(t *testing.T) {
	data, attrs, err := wire.EncodeTelemetry(goldenTelemetry(), wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeTelemetry(append(data, 0xa2, 0x06, 0x03, 'n', 'e', 'w'), attrs) // field 100
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goldenTelemetry(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// F-WIRE-04: half a position is not a point. In protobuf the existing fleet leaves
// out a coordinate that is exactly 0, so only a position with neither is refused.
func TestDecodeOrder_PositionHasBothCoordinates(t *testing.T) {
	const rest = `"id":"O","productType":"BLOOD"`
	point, half := `{"lat":48.84,"lon":2.35}`, `{"lat":48.84}`
	for payload, want := range map[string]string{
		`{` + rest + `,"deliveryLocation":` + point + `}`:                               "",
		`{` + rest + `,"deliveryLocation":{"lat":0,"lon":0}}`:                           "",
		`{` + rest + `,"deliveryLocation":` + half + `}`:                                "invalid order: delivery_location.lon is missing; give lat and lon in degrees",
		`{` + rest + `,"deliveryLocation":{"lon":2.35}}`:                                "invalid order: delivery_location.lat is missing; give lat and lon in degrees",
		`{` + rest + `,"delivery_location":{}}`:                                         "invalid order: delivery_location.lat is missing; give lat and lon in degrees | delivery_location.lon is missing; give lat and lon in degrees",
		`{` + rest + `,"deliveryLocation":` + point + `,"pickupLocation":` + half + `}`: "invalid order: pickup_location.lon is missing; give lat and lon in degrees",
	} {
		if _, err := wire.DecodeOrder([]byte(payload), nil); message(err) != want {
			t.Errorf("%s: %v", payload, err)
		}
	}
	for name, c := range map[string]struct {
		position *pb.Position
		want     string
	}{
		"both":         {&pb.Position{Lat: proto.Float64(48.84), Lon: proto.Float64(2.35)}, ""},
		"on a zero":    {&pb.Position{Lat: proto.Float64(51.48)}, ""},
		"zeros":        {&pb.Position{Lat: proto.Float64(0), Lon: proto.Float64(0)}, ""},
		"without both": {&pb.Position{}, "invalid order: delivery_location is empty; give lat and lon in degrees"},
	} {
		data, err := proto.Marshal(&pb.Order{Id: "O", ProductType: "BLOOD", DeliveryLocation: c.position})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.DecodeOrder(data, nil); message(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// F-WIRE-04: every position of every message is checked.
func TestDecodeDecision_StopsHaveBothCoordinates(t *testing.T) {
	_, err := wire.DecodeDecision([]byte(`{"droneId":"D","orderIds":["O"],"route":[{"type":"DEPOT_START","position":{"lat":1,"lon":2}},{"type":"DEPOT_RETURN","position":{"lat":1}}]}`), nil)
	if want := "invalid decision: route[1].position.lon is missing; give lat and lon in degrees"; message(err) != want {
		t.Errorf("refused as %v", err)
	}
}

// F-WIRE-04: a STANDARD order that was meant CRITICAL is a patient.
func TestDecodeOrder_MisspeltFieldsAreRefused(t *testing.T) {
	for fields, want := range map[string]string{
		`"prioritty":"CRITICAL"`:        `invalid order: priority is spelt "prioritty"; give "priority"`,
		`"Priority":"CRITICAL"`:         `invalid order: priority is spelt "Priority"; give "priority"`,
		`"requireColdChain":true`:       `invalid order: requires_cold_chain is spelt "requireColdChain"; give "requiresColdChain"`,
		`"requires_coldchain":true`:     `invalid order: requires_cold_chain is spelt "requires_coldchain"; give "requiresColdChain"`,
		`"dedline":null`:                `invalid order: deadline is spelt "dedline"; give "deadline"`,
		`"urgency":"CRITICAL"`:          "",
		`"ward":"4"`:                    "",
		`"i":1`:                         "",
		`"idx":1,"da":2`:                "",
		`"priority":"HIGH","priorty":1`: "", // the field is given under its own name
	} {
		_, err := wire.DecodeOrder([]byte(`{"id":"O","productType":"BLOOD","deliveryLocation":{"lat":48.84,"lon":2.35,"alt":120},`+fields+`}`), nil)
		if message(err) != want {
			t.Errorf("%s: %v", fields, err)
		}
	}
}

// F-IN-01, F-IN-02: a byte order mark, and times with t and z, are read in every message.
func TestDecode_ReadsMarksAndLowerCaseTimes(t *testing.T) {
	const order = `{"id":"O","productType":"BLOOD","deliveryLocation":{"lat":1,"lon":2},"createdAt":"2026-11-21T10:15:30.5Z","deadline":"2026-11-21T12:15:30+01:00"}`
	want, err := wire.DecodeOrder([]byte(order), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"\ufeff" + order, strings.NewReplacer("21T", "21t", "5Z", "5z").Replace(order)} {
		got, err := wire.DecodeOrder([]byte(text), nil)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	snapshot := "\ufeff" + `{"timestamp":"2026-11-21t10:15:30z","depot":{"id":"D","position":{"lat":1,"lon":2}}}`
	if s, err := wire.DecodeSnapshot([]byte(snapshot)); err != nil || s.Time.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDecodeOrder_UnspecifiedPriorityIsStandard(t *testing.T) {
	got, err := wire.DecodeOrder([]byte(`{"id":"O","deliveryLocation":{"lat":1,"lon":0},"productType":"BLOOD"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Priority != domain.PriorityStandard {
		t.Errorf("priority is %v, want STANDARD", got.Priority)
	}
}

// F-ORD-03: a wish to cancel must not fail over a field nobody needs.
func TestDecodeOrder_CancellationNeedsOnlyTheID(t *testing.T) {
	bare := domain.OrderRequest{ID: "O", Cancel: true, OrderContent: domain.OrderContent{Priority: domain.PriorityStandard}}
	for name, payload := range map[string]string{
		"nothing else":     `{"id":"O","status":"CANCELLED"}`,
		"broken content":   `{"id":"O","status":"CANCELLED","deliveryLocation":{"lat":200},"packageWeightKg":-1}`,
		"unknown priority": `{"id":"O","status":"CANCELLED","deliveryLocation":{"lat":2},"productType":"BLOOD","priority":"SOON"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wire.DecodeOrder([]byte(payload), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(bare, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("valid content is kept", func(t *testing.T) {
		want := goldenOrder()
		want.Cancel = true
		data, attrs, err := wire.EncodeOrder(want, wire.Protobuf)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeOrder(data, attrs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// F-DEC-02: the ledger compares payloads by hash, whatever their form.
func TestDecodeDecision_PayloadHash(t *testing.T) {
	decision := goldenDecision()
	hashes := map[string]bool{}
	for _, format := range []wire.Format{wire.Protobuf, wire.JSON} {
		data, attrs, err := wire.EncodeDecision(decision, format)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeDecision(data, attrs)
		if err != nil {
			t.Fatal(err)
		}
		hashes[got.PayloadHash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("the two forms of one decision hash to %v, want one hash", hashes)
	}
	for name, change := range map[string]func(*domain.Decision){
		"id":            func(d *domain.Decision) { d.ID = "DEC-2" },
		"drone":         func(d *domain.Decision) { d.DroneID = "D-002" },
		"duration":      func(d *domain.Decision) { d.EstimatedDurationMinutes++ },
		"stop's type":   func(d *domain.Decision) { d.Route[1].Type = domain.WaypointDepotStart },
		"stop's order":  func(d *domain.Decision) { d.Route[1].OrderID = "O-2" },
		"warehouse":     func(d *domain.Decision) { d.Route[1].WarehouseID = "WH-2" },
		"arrival":       func(d *domain.Decision) { d.Route[1].ETA = d.Route[1].ETA.Add(time.Second) },
		"order":         func(d *domain.Decision) { d.OrderIDs = []domain.OrderID{"O-2"} },
		"fence":         func(d *domain.Decision) { d.Fence = "1" },
		"cycle":         func(d *domain.Decision) { d.CycleID = "C2" },
		"snapshot time": func(d *domain.Decision) { d.SnapshotTime = d.SnapshotTime.Add(time.Microsecond) },
		"stop":          func(d *domain.Decision) { d.Route = d.Route[:3] },
		"stop's place":  func(d *domain.Decision) { d.Route[1].Position = louvre },
		"estimate":      func(d *domain.Decision) { d.EstimatedBatteryConsumption++ },
	} {
		changed := goldenDecision()
		change(&changed)
		if wire.DecisionHash(changed) == decision.PayloadHash {
			t.Errorf("another %s leaves the hash as it was", name)
		}
	}
}

func TestDecodeDecision_OnlyDroneAndOrdersAreNeeded(t *testing.T) {
	got, err := wire.DecodeDecision([]byte(`{"droneId":"D","orderIds":["O"]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "" || !got.SnapshotTime.IsZero() || got.Fence != "" {
		t.Errorf("absent fields decoded to %+v", got)
	}
}

func TestDecodeCommand_RevocationOfAWithdrawnMissionHasNoOrders(t *testing.T) {
	sent := goldenCommand()
	sent.Revoke, sent.ExpiresAt, sent.Mission.OrderIDs, sent.Mission.Status = true, time.Time{}, nil, domain.MissionFailed
	data, attrs, err := wire.EncodeCommand(sent, wire.JSON)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeCommand(data, attrs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEncode_RefusesUnreadablePayloads(t *testing.T) {
	tooLarge := goldenDecision()
	for len(tooLarge.Route) < 10_000 {
		tooLarge.Route = append(tooLarge.Route, goldenRoute()...)
	}
	if _, _, err := wire.EncodeDecision(tooLarge, wire.Protobuf); err == nil || !strings.Contains(err.Error(), "at most 262144") {
		t.Errorf("decision above the limit: error %v", err)
	}
	badText := goldenTelemetry()
	badText.DroneID = "\xff"
	if _, _, err := wire.EncodeTelemetry(badText, wire.Protobuf); err == nil {
		t.Error("text that is not UTF-8 was encoded")
	}
	if _, _, err := wire.EncodeTelemetry(goldenTelemetry(), "xml"); err == nil || !strings.Contains(err.Error(), `format is "xml"`) {
		t.Errorf("unknown format: error %v", err)
	}
}

func TestDecodeSnapshot_NamesBadFieldsByPath(t *testing.T) {
	s := goldenSnapshot()
	s.Drones[0].Battery = 101
	s.Orders[0].Delivery.Lat = 91
	var m pb.OptimizationSnapshot
	data, err := wire.MarshalSnapshot(s)
	if err == nil {
		err = protojson.Unmarshal(data, &m)
	}
	m.Warehouses = append(m.Warehouses, &pb.Warehouse{Id: "WH-2"})
	m.ReadTime = &timestamppb.Timestamp{Seconds: 1 << 40}
	if err == nil {
		data, err = proto.Marshal(&m)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = wire.DecodeSnapshot(data)
	var invalid *wire.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("error is %v, want a *ValidationError", err)
	}
	var fields []string
	for _, p := range invalid.Problems {
		fields = append(fields, p.Field)
	}
	want := []string{"read_time", "drones[0].battery_percentage", "orders[0].delivery_location.lat", "warehouses[1].position"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// F-API-01: a number that the wire has no room for is written as the greatest or
// least that it has. Of "no limit", written as a great number, its last digits
// would make a limit.
func TestMarshalSnapshot_ClampsNumbersToTheWire(t *testing.T) {
	s := goldenSnapshot()
	s.Drones[0].MaxFlightTimeMinutes, s.Drones[0].BatteryCapacityMah = 1<<32+10, -1<<40
	s.Depot.Capacity, s.Depot.ChargingSlots = 1<<31, 1<<31-1
	data, err := wire.MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeSnapshot(data)
	if err != nil {
		t.Fatal(err)
	}
	want := [4]int{math.MaxInt32, math.MinInt32, math.MaxInt32, math.MaxInt32}
	if d := got.Drones[0]; [4]int{d.MaxFlightTimeMinutes, d.BatteryCapacityMah, got.Depot.Capacity, got.Depot.ChargingSlots} != want {
		t.Errorf("drone %+v at depot %+v, want %v", d, got.Depot, want)
	}
}

// F-CHG-01: slots and charge rates that nobody can mean are refused by name; left out, they
// are not known.
func TestDecodeSnapshot_RefusesImpossibleCharging(t *testing.T) {
	const form = `{"depot": {"id": "D", "position": {"lat": 1, "lon": 2}%s}, "drones": [{"id": "A", "position": {"lat": 1, "lon": 2}%s}]}`
	for _, c := range []struct{ slots, rate, want string }{
		{"", "", ""},
		{`, "chargingSlots": 3`, `, "chargeRate": 12.5`, ""},
		{`, "chargingSlots": 0`, "", "invalid snapshot: depot.charging_slots is 0; give 1 or more, or leave it out"},
		{`, "chargingSlots": -1`, "", "invalid snapshot: depot.charging_slots is -1; give 1 or more, or leave it out"},
		{"", `, "chargeRate": 0`, "invalid snapshot: drones[0].charge_rate is 0; give a finite number above 0, or leave it out"},
		{"", `, "chargeRate": -1`, "invalid snapshot: drones[0].charge_rate is -1; give a finite number above 0, or leave it out"},
		{"", `, "consumptionPerKmKg": -1`, "invalid snapshot: drones[0].consumption_per_km_kg is -1; give a finite number of at least 0"}, // F-CHG-02
		{"", `, "chargeRate": "NaN"`, "invalid snapshot: drones[0].charge_rate is NaN; give a finite number above 0, or leave it out"},
	} {
		_, err := wire.DecodeSnapshot(fmt.Appendf(nil, form, c.slots, c.rate))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s%s: %q, want %q", c.slots, c.rate, got, c.want)
		}
	}
	if _, err := wire.DecodeSnapshot(fmt.Appendf(nil, form, `, "chargingSlots": "NaN"`, "")); err == nil || !strings.Contains(err.Error(), "charging_slots") && !strings.Contains(err.Error(), "chargingSlots") {
		t.Errorf("slots that are not a number: %v", err)
	}
}

// F-AMD-01: a flight is a drone and a mission; without one it is nothing to plan.
func TestDecodeSnapshot_RefusesAFlightWithoutDroneOrMission(t *testing.T) {
	for form, want := range map[string]string{
		`{"depot": {"id": "D", "position": {"lat": 1, "lon": 2}}, "flights": [{"mission": {"id": "M", "droneId": "A", "status": "ACTIVE"}}]}`: "invalid snapshot: flights[0].drone is missing; give the drone that flies",
		`{"depot": {"id": "D", "position": {"lat": 1, "lon": 2}}, "flights": [{"drone": {"id": "A", "position": {"lat": 1, "lon": 2}}}]}`:     "invalid snapshot: flights[0].mission is missing; give the mission that the drone flies",
	} {
		if _, err := wire.DecodeSnapshot([]byte(form)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", form, err, want)
		}
	}
}

// F-DOC-13: a subscription can filter commands by their drone.
func TestEncodeCommand_NamesTheDroneInAnAttribute(t *testing.T) {
	for _, format := range []wire.Format{wire.Protobuf, wire.JSON} {
		_, attrs, err := wire.EncodeCommand(domain.Command{Mission: domain.Mission{ID: "M-1", DroneID: "DRONE-1"}, Revoke: true}, format)
		if err != nil || attrs[wire.AttrDrone] != "DRONE-1" {
			t.Errorf("%s: attributes %v, %v", format, attrs, err)
		}
	}
}
