package plannersim_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// loaded is the reference world in which payload counts for every drone.
func loaded(drones int, seed uint64) (*fleetsim.World, error) {
	w, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: drones, Seed: seed})
	if err == nil {
		for i := range w.Drones {
			w.Drones[i].ConsumptionPerKmKg = 3 * fleetsim.ConsumptionPerKmKg
		}
	}
	return w, err
}

// rounding, in percent, is what a drone that flies second by second may use more: it does not
// keep to the shortest line by some centimetres.
const rounding = 0.01

// F-CHG-02: a simulated drone uses no more charge for a mission than its plan says, and lands
// with the reserve.
func TestPlan_CoversWhatALoadedDroneUses(t *testing.T) {
	w, err := loaded(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	flown := 0
	rapid.Check(t, func(rt *rapid.T) {
		kg := map[domain.OrderID]float64{}
		snap := domain.Snapshot{ReadTime: plannersim.Begin, Depot: w.Depots[0], Drones: w.Drones, Warehouses: w.Warehouses}
		for i := range rapid.IntRange(1, 6).Draw(rt, "orders") {
			o := domain.Order{ID: domain.OrderID(fmt.Sprint("O", i)), CreatedAt: plannersim.Begin, Deadline: plannersim.Begin.Add(time.Hour)}
			o.Priority, o.ProductType = domain.PriorityHigh, "MEDICINE"
			o.Delivery = rapid.SampledFrom(w.Hospitals).Draw(rt, "hospital").Position
			o.WeightKg = rapid.Float64Range(0, 5).Draw(rt, "kg")
			kg[o.ID] = o.WeightKg
			snap.Orders = append(snap.Orders, o)
		}
		p := planner.New(planner.Config{Options: solver.Options{Iterations: 20, Workers: 1}, Immediate: true}, time.Now)
		result, err := p.PlanSnapshot(t.Context(), snap, plannersim.Begin)
		if err != nil {
			rt.Fatal(err)
		}
		for _, d := range planner.DecisionsOf(result.Plan, snap) {
			for _, known := range w.Drones {
				if known.ID != d.DroneID {
					continue
				}
				landed := fly(fleetsim.NewDrone(known, w.Depots[0].Position).Weighing(func(id domain.OrderID) float64 { return kg[id] }), d)
				used := known.Battery - landed.Battery
				if landed.Status != domain.DroneIdle || used > d.EstimatedBatteryConsumption+rounding || landed.Battery < 20-rounding {
					rt.Errorf("%s used %.4f %% and has %.4f %%, planned were %.4f %%: %+v", d.DroneID, used, landed.Battery, d.EstimatedBatteryConsumption, landed)
				}
				flown++
			}
		}
	})
	if flown == 0 {
		t.Error("no drone flew")
	}
}

// fly has a drone fly a decision's mission, and returns what it reports when it has landed. It
// does not charge there.
func fly(drone fleetsim.Drone, d domain.Decision) (last domain.Telemetry) {
	now := plannersim.Begin
	drone, _ = drone.WithSlot(false).Obey(domain.Command{
		Mission:   domain.Mission{ID: "M", DroneID: d.DroneID, OrderIDs: d.OrderIDs, Route: d.Route, Status: domain.MissionActive, StartTime: now},
		ExpiresAt: now.Add(time.Minute),
	}, now)
	for range 3600 {
		now = now.Add(time.Second)
		drone, last = drone.After(time.Second).Report(now)
		if last.MissionID == "" {
			break
		}
	}
	return last
}

// F-CHG-02: a fleet whose drones use more the more they carry keeps its reserve, also where
// missions change under way.
func TestRun_LoadedDronesKeepTheirReserve(t *testing.T) {
	s := plannersim.Scenario{World: loaded, PerMinute: 4, Seed: 3, Duration: 40 * time.Minute, Drones: 12, Amend: true, Standby: true}
	r := runWith(t, s, planner.Config{Options: solver.Options{Iterations: 5, Workers: 1}, Advance: true})
	if r.LowestCharge < 20 || r.Delivered < 20 || r.Amendments.Applied == 0 || len(r.Rejected) > 0 {
		t.Errorf("lowest charge %.3f %%, %d delivered, amendments %+v, rejected %v", r.LowestCharge, r.Delivered, r.Amendments, r.Rejected)
	}
	t.Logf("lowest charge %.3f %%, %d delivered, amendments %+v", r.LowestCharge, r.Delivered, r.Amendments)
}
