package manager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-SND-01 to 03, F-REG-09, F-STP-01: somebody with the credential of one drone or requester, or
// with a plan of their own, tries to be others. Whoever may publish can still report an
// emergency of any drone if senders are not required; everything else is refused or flagged
// either way.
func TestManager_WithstandsAnAttacker(t *testing.T) {
	for _, required := range []bool{false, true} {
		t.Run(fmt.Sprintf("require sender %t", required), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			s.store = firestoretx.New(s.outside.Firestore, firestoretx.Config{Limits: patient})
			emutest.IssueFences(t, s.outside.Firestore, "1", "DEPOT-1")
			clients := emutest.Connect(t, s.hosts)
			s.runManager(clients, manager.Config{Worker: pubsubio.Config{RequireSender: required}})
			letters := func(reason policy.Reason) error {
				for k, n := range clients.Meter.Settled() {
					if k.Reason == string(reason) && n > 0 {
						return nil
					}
				}
				return fmt.Errorf("no message was refused as %s", reason)
			}
			say := func(sender string, r domain.Telemetry) {
				t.Helper()
				r.Timestamp, r.Battery = time.Now(), 90
				data, attrs, err := wire.EncodeTelemetry(r, wire.Protobuf)
				attrs[wire.AttrSender] = sender
				s.send(pubsubio.TopicTelemetry, data, attrs, err)
			}
			ask := func(sender string, r domain.OrderRequest) {
				t.Helper()
				data, attrs, err := wire.EncodeOrder(r, wire.Protobuf)
				attrs[wire.AttrSender] = sender
				s.send(pubsubio.TopicOrders, data, attrs, err)
			}
			own := domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60}
			for _, id := range []domain.DroneID{"D1", "D2"} {
				_, err := s.store.ApplyDrone(t.Context(), domain.DroneRegistration{ID: id, HomeDepotID: "DEPOT-1", Own: own}, firestoretx.Change{By: "ann", Why: "new"})
				if err != nil {
					t.Fatal(err)
				}
				say(string(id), domain.Telemetry{DroneID: id, Position: home, Status: domain.DroneIdle})
				s.awaitDrone(id, "idle", func(d domain.Drone) bool { return d.Status == domain.DroneIdle })
			}
			clinic := domain.Position{Lat: 48.95, Lon: 2.35} // 10 km away
			order := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
				Priority: domain.PriorityCritical, ProductType: "BLOOD", Pickup: &home, Delivery: clinic, RequesterID: "WARD-4",
			}}
			ask("WARD-4", order)
			s.awaitOrder("O1", domain.OrderPending)
			decide := func(id domain.DecisionID, drone domain.DroneID, to domain.Position) domain.LedgerEntry {
				t.Helper()
				entry, err := s.store.AssignMission(t.Context(), domain.Decision{
					ID: id, Fence: "1", DroneID: drone, OrderIDs: []domain.OrderID{"O1"}, SnapshotTime: time.Now().Add(time.Minute), EstimatedBatteryConsumption: 20, EstimatedDurationMinutes: 20,
					Route: []domain.Waypoint{{Type: domain.WaypointWarehousePickup, OrderID: "O1", Position: home}, {Type: domain.WaypointHospitalDelivery, OrderID: "O1", Position: to}},
				}, policy.Delivery{MessageID: string(id)})
				if err != nil {
					t.Fatal(err)
				}
				return entry
			}

			// 1. An emergency of another drone takes it out of service.
			say("D9", domain.Telemetry{DroneID: "D2", Position: home, Status: domain.DroneEmergency})
			if required {
				emutest.Eventually(t, "a forged emergency", func() error { return letters(policy.ReasonSenderMismatch) })
			} else {
				s.awaitDrone("D2", "EMERGENCY", func(d domain.Drone) bool { return d.Status == domain.DroneEmergency })
			}
			// 2. A drone that does not exist offers itself.
			say("D9", domain.Telemetry{DroneID: "D9", Position: home, Status: domain.DroneIdle})
			s.awaitDrone("D9", "unregistered", func(d domain.Drone) bool { return d.Unregistered })
			if e := decide("MADE-UP", "D9", clinic); e.Outcome != domain.OutcomeRejected || e.Reason != string(policy.ReasonDroneUnregistered) {
				t.Errorf("a mission for a drone that nobody registered: %+v", e)
			}
			// 3. A plan takes the order elsewhere.
			if e := decide("ELSEWHERE", "D1", home); e.Outcome != domain.OutcomeRejected || e.Reason != string(policy.ReasonStopMisplaced) {
				t.Errorf("a mission to another address: %+v", e)
			}
			// 4. Another requester cancels it.
			theirs := order
			theirs.Cancel, theirs.RequesterID = true, "WARD-5"
			ask("WARD-5", theirs)
			emutest.Eventually(t, "another's cancellation", func() error { return letters(policy.ReasonRequesterMismatch) })
			s.awaitOrder("O1", domain.OrderPending)
			theirs.RequesterID = "WARD-4" // it says that it is the other one
			if required {
				ask("WARD-5", theirs)
			}
			// 5. A drone claims at the depot that it has delivered.
			e := decide("RIGHT", "D1", clinic)
			if e.Outcome != domain.OutcomeApplied {
				t.Fatalf("%+v", e)
			}
			stops := 2
			say("D1", domain.Telemetry{DroneID: "D1", Position: home, Status: domain.DroneMoving, MissionID: e.MissionID, CompletedStops: &stops})
			d := s.awaitDrone("D1", "an implausible claim", func(d domain.Drone) bool { return d.Implausible != "" })
			if !strings.Contains(d.Implausible, "claimed 2 stops") {
				t.Errorf("recorded %q", d.Implausible)
			}
			if o := s.awaitOrder("O1", domain.OrderInDelivery); !o.DeliveredAt.IsZero() {
				t.Errorf("order %+v", o)
			}
			// The auditor sees it.
			events, err := s.store.EventsOf(t.Context(), "droneId", "D1")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(events.Items, func(e domain.Event) bool { return e.State["implausible"] == d.Implausible }) {
				t.Error("no event says what the drone claimed")
			}
		})
	}
}
