package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// F-REG-18: a snapshot has what planners need of a drone's registration. F-REG-05: without it,
// what the drone has is not known.
func TestSnapshot_HasWhatIsRegistered(t *testing.T) {
	for _, want := range []domain.Drone{
		{TypeID: "T1", SerialNumber: "1596A1234567890", ColdBox: &domain.ColdBox{MinCelsius: 0, MaxCelsius: 8}, CountsStops: true},
		{},
	} {
		want.ID, want.Status = "D1", domain.DroneIdle
		data, err := wire.MarshalSnapshot(domain.Snapshot{CycleID: "C1", Depot: domain.Depot{ID: "DEPOT"}, Drones: []domain.Drone{want}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeSnapshot(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]domain.Drone{want}, got.Drones); diff != "" || !got.Drones[0].CarriesCold() {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
