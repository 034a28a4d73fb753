package wire_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// F-WIRE-02: decode(encode(x)) is x, in both forms, with and without the
// content type.
func TestRoundTrip_EveryValueSurvivesBothFormats(t *testing.T) {
	t.Run("telemetry", rapid.MakeCheck(func(t *rapid.T) {
		survives(t, telemetries().Draw(t, "telemetry"), wire.EncodeTelemetry, wire.DecodeTelemetry)
	}))
	t.Run("order", rapid.MakeCheck(func(t *rapid.T) {
		survives(t, orders().Draw(t, "order"), wire.EncodeOrder, wire.DecodeOrder)
	}))
	t.Run("decision", rapid.MakeCheck(func(t *rapid.T) {
		survives(t, decisions().Draw(t, "decision"), wire.EncodeDecision, wire.DecodeDecision)
	}))
	t.Run("command", rapid.MakeCheck(func(t *rapid.T) {
		survives(t, commands().Draw(t, "command"), wire.EncodeCommand, wire.DecodeCommand)
	}))
}

func survives[T any](t *rapid.T, sent T,
	encode func(T, wire.Format) ([]byte, map[string]string, error),
	decode func([]byte, map[string]string) (T, error),
) {
	for _, format := range []wire.Format{wire.Protobuf, wire.JSON} {
		data, attrs, err := encode(sent, format)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		for _, a := range []map[string]string{attrs, nil} {
			got, err := decode(data, a)
			if err != nil {
				t.Fatalf("%s with attributes %v: %v", format, a, err)
			}
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Fatalf("%s with attributes %v (-want +got):\n%s", format, a, diff)
			}
		}
	}
}

func ids[T ~string]() *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) T {
		return T(rapid.StringN(1, 64, domain.MaxIDBytes).Filter(func(s string) bool {
			return domain.CheckID(s) == nil
		}).Draw(t, "id"))
	})
}

// normal are texts in the form that messages must have.
func normal(least int) *rapid.Generator[string] {
	return rapid.StringN(least, 32, 128).Filter(norm.NFC.IsNormalString)
}

// optional is absent half of the time.
func optional[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) (v T) {
		if rapid.Bool().Draw(t, "present") {
			v = g.Draw(t, "value")
		}
		return v
	})
}

func positions() *rapid.Generator[domain.Position] {
	return rapid.Custom(func(t *rapid.T) domain.Position {
		return domain.Position{
			Lat: rapid.Float64Range(-90, 90).Draw(t, "lat"),
			Lon: rapid.Float64Range(-180, 180).Draw(t, "lon"),
		}
	})
}

// times are of the store's resolution, within the years a timestamp can hold.
func times() *rapid.Generator[time.Time] {
	first := time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC).UnixMicro()
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC).UnixMicro()
	return rapid.Map(rapid.Int64Range(first, last), func(us int64) time.Time { return time.UnixMicro(us).UTC() })
}

func telemetries() *rapid.Generator[domain.Telemetry] {
	return rapid.Custom(func(t *rapid.T) domain.Telemetry {
		return domain.Telemetry{
			DroneID:   ids[domain.DroneID]().Draw(t, "drone"),
			Timestamp: times().Draw(t, "time"),
			Position:  positions().Draw(t, "position"),
			Battery:   rapid.Float64Range(0, 100).Draw(t, "battery"),
			SpeedKmh:  rapid.Float64Range(0, 1e6).Draw(t, "speed"),
			Status:    optional(rapid.SampledFrom(domain.DroneStatuses)).Draw(t, "status"),
			MissionID: optional(ids[domain.MissionID]()).Draw(t, "mission"),
			// Zero is not the same as absent.
			CompletedStops:     optional(rapid.Ptr(rapid.IntRange(0, wire.MaxWaypointsPerDecision), false)).Draw(t, "completed stops"),
			MissionRevision:    rapid.IntRange(0, math.MaxInt32).Draw(t, "revision"),
			SupportsAmendments: rapid.Bool().Draw(t, "amendments"),
			SupportsStandby:    rapid.Bool().Draw(t, "standby"),
			BatteryHealth:      optional(rapid.Ptr(rapid.Float64Range(0, 100), false)).Draw(t, "battery health"), // F-REG-17
			FlightSeconds:      optional(rapid.Ptr(rapid.Int64Range(0, 1e9), false)).Draw(t, "flight seconds"),
			SerialNumber:       optional(rapid.Just("1596A1234567890")).Draw(t, "serial number"),
		}
	})
}

func orders() *rapid.Generator[domain.OrderRequest] {
	return rapid.Custom(func(t *rapid.T) domain.OrderRequest {
		r := domain.OrderRequest{
			ID:     ids[domain.OrderID]().Draw(t, "order"),
			Cancel: rapid.Bool().Draw(t, "cancel"),
		}
		r.Priority = rapid.SampledFrom(domain.Priorities[:]).Draw(t, "priority")
		if r.Cancel && rapid.Bool().Draw(t, "bare") {
			r.Priority = domain.PriorityStandard
			return r
		}
		r.ProductType = normal(1).Draw(t, "product")
		if rapid.Bool().Draw(t, "pickup") {
			p := positions().Draw(t, "pickup")
			r.Pickup = &p
		}
		r.Delivery = positions().Draw(t, "delivery")
		r.WeightKg = rapid.Float64Range(0, 1e6).Draw(t, "weight")
		r.ColdChain = rapid.Bool().Draw(t, "cold")
		r.RequesterID = normal(0).Draw(t, "requester")
		r.CreatedAt = optional(times()).Draw(t, "created")
		r.Deadline = optional(times()).Draw(t, "deadline")
		return r
	})
}

func routes() *rapid.Generator[[]domain.Waypoint] {
	waypoint := rapid.Custom(func(t *rapid.T) domain.Waypoint {
		w := domain.Waypoint{
			Type:        rapid.SampledFrom(domain.WaypointTypes).Draw(t, "type"),
			Position:    positions().Draw(t, "position"),
			OrderID:     optional(ids[domain.OrderID]()).Draw(t, "order"),
			WarehouseID: optional(ids[domain.WarehouseID]()).Draw(t, "warehouse"),
			ETA:         optional(times()).Draw(t, "eta"),
		}
		switch w.Type {
		case domain.WaypointCharge:
			w.ChargeToPercent = rapid.Float64Range(1, 100).Draw(t, "level")
		case domain.WaypointWait:
			w.WaitUntil = times().Draw(t, "until")
		case domain.WaypointDepotStart, domain.WaypointWarehousePickup, domain.WaypointHospitalDelivery, domain.WaypointDepotReturn:
		}
		return w
	})
	return rapid.Map(rapid.SliceOfN(waypoint, 0, 8), nilIfEmpty)
}

func orderIDs(least int) *rapid.Generator[[]domain.OrderID] {
	return rapid.Map(rapid.SliceOfNDistinct(ids[domain.OrderID](), least, 8, rapid.ID[domain.OrderID]), nilIfEmpty)
}

func decisions() *rapid.Generator[domain.Decision] {
	return rapid.Custom(func(t *rapid.T) domain.Decision {
		d := domain.Decision{
			ID:                          optional(ids[domain.DecisionID]()).Draw(t, "decision"),
			CycleID:                     optional(ids[domain.CycleID]()).Draw(t, "cycle"),
			Fence:                       rapid.StringMatching(`[0-9]{0,19}`).Draw(t, "fence"),
			DepotID:                     optional(ids[domain.DepotID]()).Draw(t, "depot"),
			SnapshotTime:                optional(times()).Draw(t, "snapshot"),
			DroneID:                     ids[domain.DroneID]().Draw(t, "drone"),
			Route:                       routes().Draw(t, "route"),
			EstimatedBatteryConsumption: rapid.Float64Range(0, 1000).Draw(t, "battery"),
			EstimatedDurationMinutes:    rapid.Float64Range(0, 1000).Draw(t, "minutes"),
		}
		least := 1
		if slices.ContainsFunc(d.Route, domain.Waypoint.Duty) {
			least = 0
		}
		d.OrderIDs = orderIDs(least).Draw(t, "orders")
		if rapid.Bool().Draw(t, "amends") {
			d.AmendsMissionID = ids[domain.MissionID]().Draw(t, "mission")
			d.AmendsRevision = rapid.IntRange(1, math.MaxInt32).Draw(t, "revision")
		}
		d.PayloadHash = wire.DecisionHash(d)
		return d
	})
}

func commands() *rapid.Generator[domain.Command] {
	return rapid.Custom(func(t *rapid.T) domain.Command {
		return domain.Command{
			Mission: domain.Mission{
				ID:                          ids[domain.MissionID]().Draw(t, "mission"),
				DroneID:                     ids[domain.DroneID]().Draw(t, "drone"),
				OrderIDs:                    orderIDs(0).Draw(t, "orders"),
				Route:                       routes().Draw(t, "route"),
				Status:                      rapid.SampledFrom(domain.MissionStatuses).Draw(t, "status"),
				RouteRevision:               rapid.IntRange(0, math.MaxInt32).Draw(t, "revision"),
				StartTime:                   optional(times()).Draw(t, "start"),
				EndTime:                     optional(times()).Draw(t, "end"),
				EstimatedBatteryConsumption: rapid.Float64Range(0, 1000).Draw(t, "battery"),
				EstimatedDurationMinutes:    rapid.Float64Range(0, 1000).Draw(t, "minutes"),
			},
			ExpiresAt: times().Draw(t, "expires"),
			Revoke:    rapid.Bool().Draw(t, "revoke"),
		}
	})
}

func nilIfEmpty[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
