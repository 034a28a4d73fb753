package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// known puts D1 into the world, ready, with a mission that failed at second 0, and then
// applies change.
func known(change func(d *domain.Drone)) func(*world) {
	return func(w *world) {
		d := readyDrone("D1")
		d.FailedMissions = []domain.FailedMission{{ID: failedMission, FailedAt: at(0)}}
		change(&d)
		w.with(d)
	}
}

// held puts D1 into the world, bound to mission M since second 0, and then applies change.
func held(change func(d *domain.Drone, m *domain.Mission)) func(*world) {
	return func(w *world) {
		known(func(*domain.Drone) {})(w)
		w.with(openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		d, m, o := w.drones["D1"], w.missions["M-X"], w.orders["O1"]
		change(&d, &m)
		if m.Status == domain.MissionCompleted {
			o.Status, o.DeliveredAt = domain.OrderDelivered, m.EndTime
		}
		w.with(d, m, o)
	}
}

// acked marks the drone as knowing its mission.
func acked(d *domain.Drone) { d.MissionAcked, d.FreeAfter = true, time.Time{} }

// done marks mission M as completed, its order as delivered, and the drone as on
// its way home.
func done(d *domain.Drone, m *domain.Mission) {
	acked(d)
	m.Status, m.ReachedStops, m.EndTime = domain.MissionCompleted, 3, at(15)
}

var droneSituations = []situation{
	{
		name:  "NEW",
		prose: "No document yet. The drone is registered; only a fault or a fresh IDLE counts.",
		build: func(*world) {},
		grid: `
claim       | none, M, failed, other | none old, M old, failed old, other old
no claim    | →UNKNOWN               | →UNKNOWN
IDLE        | →IDLE                  | →UNKNOWN
RESERVED    | →UNKNOWN               | →UNKNOWN
MOVING      | →UNKNOWN               | →UNKNOWN
DELIVERING  | →UNKNOWN               | →UNKNOWN
CHARGING    | →UNKNOWN               | →UNKNOWN
MAINTENANCE | →MAINTENANCE           | →MAINTENANCE
PROBLEM     | →PROBLEM               | →PROBLEM
EMERGENCY   | →EMERGENCY latched     | →EMERGENCY latched
UNKNOWN     | →UNKNOWN               | →UNKNOWN
IDLE 4 %    | →EMERGENCY             | →EMERGENCY
`,
	},
	{
		name:  "INTRODUCED",
		prose: "Registered or set up, but never ready to fly so far: it stays UNKNOWN until its first fresh IDLE.",
		build: known(func(d *domain.Drone) { d.Status, d.IdleSince, d.FailedMissions = domain.DroneUnknown, time.Time{}, nil }),
		grid: `
claim       | none, M, failed, other | none old, M old, failed old, other old
no claim    | .                      | .
IDLE        | →IDLE                  | .
RESERVED    | .                      | .
MOVING      | .                      | .
DELIVERING  | .                      | .
CHARGING    | .                      | .
MAINTENANCE | →MAINTENANCE           | →MAINTENANCE
PROBLEM     | →PROBLEM               | →PROBLEM
EMERGENCY   | →EMERGENCY latched     | →EMERGENCY latched
UNKNOWN     | .                      | .
IDLE 4 %    | →EMERGENCY             | →EMERGENCY
`,
	},
	{
		name:  "UNBOUND_IDLE",
		prose: "Ready and offered to the optimizer. A report that names a mission that has just failed makes it unavailable.",
		build: known(func(*domain.Drone) {}),
		grid: `
claim       | none, M, other     | failed early             | failed late        | none old, M old, other old | failed old
no claim    | .                  | →UNKNOWN ghost           | .                  | .                          | .
IDLE        | .                  | →UNKNOWN ghost           | .                  | .                          | .
RESERVED    | →UNKNOWN           | →UNKNOWN ghost           | →UNKNOWN           | →UNKNOWN                   | →UNKNOWN
MOVING      | →MOVING            | →MOVING ghost            | →MOVING ghost      | →MOVING                    | →MOVING ghost
DELIVERING  | →DELIVERING        | →DELIVERING ghost        | →DELIVERING ghost  | →DELIVERING                | →DELIVERING ghost
CHARGING    | →CHARGING          | →CHARGING ghost          | →CHARGING          | →CHARGING                  | →CHARGING
MAINTENANCE | →MAINTENANCE       | →MAINTENANCE ghost       | →MAINTENANCE       | →MAINTENANCE               | →MAINTENANCE
PROBLEM     | →PROBLEM           | →PROBLEM ghost           | →PROBLEM           | →PROBLEM                   | →PROBLEM
EMERGENCY   | →EMERGENCY latched | →EMERGENCY latched ghost | →EMERGENCY latched | →EMERGENCY latched         | →EMERGENCY latched
UNKNOWN     | →UNKNOWN           | →UNKNOWN ghost           | →UNKNOWN           | →UNKNOWN                   | →UNKNOWN
IDLE 4 %    | →EMERGENCY         | →EMERGENCY ghost         | →EMERGENCY         | →EMERGENCY                 | →EMERGENCY
`,
	},
	{
		name:     "UNBOUND_OTHER",
		prose:    "Any other status without a mission: it was silent, its mission failed or was withdrawn, it charges, it has a problem, or its battery was empty.",
		build:    known(func(*domain.Drone) {}),
		statuses: []domain.DroneStatus{domain.DroneUnknown, domain.DroneMoving, domain.DroneDelivering, domain.DroneCharging, domain.DroneMaintenance, domain.DroneProblem, domain.DroneEmergency, domain.DroneReserved},
		grid: `
claim       | none, M, other     | failed early             | failed late        | none old, M old, other old | failed old
no claim    | .                  | ghost                    | .                  | .                          | .
IDLE        | →IDLE              | ghost                    | →IDLE              | .                          | .
RESERVED    | →UNKNOWN           | →UNKNOWN ghost           | →UNKNOWN           | →UNKNOWN                   | →UNKNOWN
MOVING      | →MOVING            | →MOVING ghost            | →MOVING ghost      | →MOVING                    | →MOVING ghost
DELIVERING  | →DELIVERING        | →DELIVERING ghost        | →DELIVERING ghost  | →DELIVERING                | →DELIVERING ghost
CHARGING    | →CHARGING          | →CHARGING ghost          | →CHARGING          | →CHARGING                  | →CHARGING
MAINTENANCE | →MAINTENANCE       | →MAINTENANCE ghost       | →MAINTENANCE       | →MAINTENANCE               | →MAINTENANCE
PROBLEM     | →PROBLEM           | →PROBLEM ghost           | →PROBLEM           | →PROBLEM                   | →PROBLEM
EMERGENCY   | →EMERGENCY latched | →EMERGENCY latched ghost | →EMERGENCY latched | →EMERGENCY latched         | →EMERGENCY latched
UNKNOWN     | →UNKNOWN           | →UNKNOWN ghost           | →UNKNOWN           | →UNKNOWN                   | →UNKNOWN
IDLE 4 %    | →EMERGENCY         | →EMERGENCY ghost         | →EMERGENCY         | →EMERGENCY                 | →EMERGENCY
`,
	},
	{
		name:  "LATCHED",
		prose: "It reported an emergency that no operator has cleared. No report changes that.",
		build: known(func(d *domain.Drone) { d.Status, d.EmergencyLatched = domain.DroneEmergency, true }),
		grid: `
claim       | none, M, other | failed early | failed late | none old, M old, other old | failed old
no claim    | .              | ghost        | .           | .                          | .
IDLE        | .              | ghost        | .           | .                          | .
RESERVED    | .              | ghost        | .           | .                          | .
MOVING      | .              | ghost        | ghost       | .                          | ghost
DELIVERING  | .              | ghost        | ghost       | .                          | ghost
CHARGING    | .              | ghost        | .           | .                          | .
MAINTENANCE | .              | ghost        | .           | .                          | .
PROBLEM     | .              | ghost        | .           | .                          | .
EMERGENCY   | .              | ghost        | .           | .                          | .
UNKNOWN     | .              | ghost        | .           | .                          | .
IDLE 4 %    | .              | ghost        | .           | .                          | .
`,
	},
	{
		name:  "GHOST",
		prose: "It was flying the failed mission at its last report, and has been told to stop.",
		build: known(func(d *domain.Drone) {
			d.Status, d.GhostMissionID, d.GhostRevokedAt = domain.DroneMoving, failedMission, at(5)
		}),
		grid: `
claim       | none, M, other              | failed early             | failed late              | none old, M old, other old  | failed old
no claim    | no ghost                    | ghost                    | ghost                    | no ghost                    | ghost
IDLE        | →IDLE no ghost              | ghost                    | →IDLE no ghost           | no ghost                    | no ghost
RESERVED    | →UNKNOWN no ghost           | →UNKNOWN ghost           | →UNKNOWN ghost           | →UNKNOWN no ghost           | →UNKNOWN ghost
MOVING      | no ghost                    | ghost                    | ghost                    | no ghost                    | ghost
DELIVERING  | →DELIVERING no ghost        | →DELIVERING ghost        | →DELIVERING ghost        | →DELIVERING no ghost        | →DELIVERING ghost
CHARGING    | →CHARGING no ghost          | →CHARGING ghost          | →CHARGING no ghost       | →CHARGING no ghost          | →CHARGING no ghost
MAINTENANCE | →MAINTENANCE no ghost       | →MAINTENANCE ghost       | →MAINTENANCE no ghost    | →MAINTENANCE no ghost       | →MAINTENANCE no ghost
PROBLEM     | →PROBLEM no ghost           | →PROBLEM ghost           | →PROBLEM ghost           | →PROBLEM no ghost           | →PROBLEM ghost
EMERGENCY   | →EMERGENCY latched no ghost | →EMERGENCY latched ghost | →EMERGENCY latched ghost | →EMERGENCY latched no ghost | →EMERGENCY latched ghost
UNKNOWN     | →UNKNOWN no ghost           | →UNKNOWN ghost           | →UNKNOWN ghost           | →UNKNOWN no ghost           | →UNKNOWN ghost
IDLE 4 %    | →EMERGENCY no ghost         | →EMERGENCY ghost         | →EMERGENCY ghost         | →EMERGENCY no ghost         | →EMERGENCY ghost
`,
	},
	{
		name:  "BOUND_UNACKED",
		prose: "Assigned at second 0, and it has not named the mission yet. Until freeAfter only a fault ends this; after it, a parked drone that does not name M proves that the command expired unseen.",
		build: held(func(*domain.Drone, *domain.Mission) {}),
		grid: `
claim       | none early, other early        | none late, other late          | failed early                         | failed late                    | M early, M late                 | none old, other old            | failed old                     | M old
no claim    | .                              | .                              | ghost                                | .                              | acked                           | .                              | .                              | acked
IDLE        | .                              | NOT_ACKED →IDLE                | ghost                                | NOT_ACKED →IDLE                | acked                           | NOT_ACKED →UNKNOWN             | NOT_ACKED →UNKNOWN             | acked
RESERVED    | .                              | .                              | ghost                                | .                              | acked                           | .                              | .                              | acked
MOVING      | .                              | .                              | ghost                                | ghost                          | acked moved                     | .                              | ghost                          | acked moved
DELIVERING  | .                              | .                              | ghost                                | ghost                          | acked moved →DELIVERING         | .                              | ghost                          | acked moved →DELIVERING
CHARGING    | .                              | NOT_ACKED →CHARGING            | ghost                                | NOT_ACKED →CHARGING            | acked                           | NOT_ACKED →CHARGING            | NOT_ACKED →CHARGING            | acked
MAINTENANCE | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE ghost       | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE        | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE
PROBLEM     | DRONE_FAULT →PROBLEM           | DRONE_FAULT →PROBLEM           | DRONE_FAULT →PROBLEM ghost           | DRONE_FAULT →PROBLEM           | acked →PROBLEM faulty           | DRONE_FAULT →PROBLEM           | DRONE_FAULT →PROBLEM           | acked →PROBLEM faulty
EMERGENCY   | DRONE_FAULT →EMERGENCY latched | DRONE_FAULT →EMERGENCY latched | DRONE_FAULT →EMERGENCY latched ghost | DRONE_FAULT →EMERGENCY latched | acked →EMERGENCY faulty latched | DRONE_FAULT →EMERGENCY latched | DRONE_FAULT →EMERGENCY latched | acked →EMERGENCY faulty latched
UNKNOWN     | .                              | .                              | ghost                                | .                              | acked                           | .                              | .                              | acked
IDLE 4 %    | DRONE_FAULT →EMERGENCY         | DRONE_FAULT →EMERGENCY         | DRONE_FAULT →EMERGENCY ghost         | DRONE_FAULT →EMERGENCY         | acked →EMERGENCY faulty         | DRONE_FAULT →EMERGENCY         | DRONE_FAULT →EMERGENCY         | acked →EMERGENCY faulty
`,
	},
	{
		name:  "BOUND_ACKED",
		prose: "It knows its mission and has not flown under it yet.",
		build: held(func(d *domain.Drone, _ *domain.Mission) { acked(d) }),
		grid: `
claim       | none, other               | failed early                    | failed late               | M early, M late           | none old, other old       | failed old                | M old
no claim    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE        | parked                    | parked ghost                    | parked                    | .                         | parked                    | parked                    | .
RESERVED    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
MOVING      | .                         | ghost                           | ghost                     | moved                     | .                         | ghost                     | moved
DELIVERING  | →DELIVERING               | →DELIVERING ghost               | →DELIVERING ghost         | moved →DELIVERING         | →DELIVERING               | →DELIVERING ghost         | moved →DELIVERING
CHARGING    | parked                    | parked ghost                    | parked                    | .                         | parked                    | parked                    | .
MAINTENANCE | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE ghost  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE
PROBLEM     | →PROBLEM faulty           | →PROBLEM faulty ghost           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty
EMERGENCY   | →EMERGENCY faulty latched | →EMERGENCY faulty latched ghost | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched
UNKNOWN     | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE 4 %    | →EMERGENCY faulty         | →EMERGENCY faulty ghost         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty
`,
	},
	{
		name:  "BOUND_ACKED_MOVED",
		prose: "It flies its mission, with stops to go. When it parks, its mission goes on until late reports can no longer come.",
		build: held(func(d *domain.Drone, _ *domain.Mission) { acked(d); d.MissionMoved = true }),
		grid: `
claim       | none, other               | failed early                    | failed late               | M early, M late           | none old, other old       | failed old                | M old
no claim    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE        | parked                    | parked ghost                    | parked                    | .                         | parked                    | parked                    | .
RESERVED    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
MOVING      | .                         | ghost                           | ghost                     | .                         | .                         | ghost                     | .
DELIVERING  | →DELIVERING               | →DELIVERING ghost               | →DELIVERING ghost         | →DELIVERING               | →DELIVERING               | →DELIVERING ghost         | →DELIVERING
CHARGING    | parked                    | parked ghost                    | parked                    | .                         | parked                    | parked                    | .
MAINTENANCE | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE ghost  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE  | DRONE_FAULT →MAINTENANCE
PROBLEM     | →PROBLEM faulty           | →PROBLEM faulty ghost           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty
EMERGENCY   | →EMERGENCY faulty latched | →EMERGENCY faulty latched ghost | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched
UNKNOWN     | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE 4 %    | →EMERGENCY faulty         | →EMERGENCY faulty ghost         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty
`,
	},
	{
		name:  "BOUND_PARKED",
		prose: "It parked half a minute ago with stops to go: late reports that could prove them are no longer awaited.",
		build: held(func(d *domain.Drone, _ *domain.Mission) { acked(d); d.MissionMoved, d.ParkedSince = true, at(-10) }),
		grid: `
claim       | none, other                | failed early                     | failed late                | M early, M late                    | none old, other old        | failed old                 | M old
no claim    | .                          | ghost                            | .                          | flies on                           | .                          | .                          | flies on
IDLE        | ABORTED_BY_DRONE →IDLE     | ABORTED_BY_DRONE →UNKNOWN ghost  | ABORTED_BY_DRONE →IDLE     | flies on                           | ABORTED_BY_DRONE →UNKNOWN  | ABORTED_BY_DRONE →UNKNOWN  | flies on
RESERVED    | .                          | ghost                            | .                          | flies on                           | .                          | .                          | flies on
MOVING      | flies on                   | flies on ghost                   | flies on ghost             | flies on                           | flies on                   | flies on ghost             | flies on
DELIVERING  | flies on →DELIVERING       | flies on →DELIVERING ghost       | flies on →DELIVERING ghost | flies on →DELIVERING               | flies on →DELIVERING       | flies on →DELIVERING ghost | flies on →DELIVERING
CHARGING    | ABORTED_BY_DRONE →CHARGING | ABORTED_BY_DRONE →CHARGING ghost | ABORTED_BY_DRONE →CHARGING | flies on                           | ABORTED_BY_DRONE →CHARGING | ABORTED_BY_DRONE →CHARGING | flies on
MAINTENANCE | DRONE_FAULT →MAINTENANCE   | DRONE_FAULT →MAINTENANCE ghost   | DRONE_FAULT →MAINTENANCE   | DRONE_FAULT →MAINTENANCE           | DRONE_FAULT →MAINTENANCE   | DRONE_FAULT →MAINTENANCE   | DRONE_FAULT →MAINTENANCE
PROBLEM     | →PROBLEM faulty            | →PROBLEM faulty ghost            | →PROBLEM faulty            | flies on →PROBLEM faulty           | →PROBLEM faulty            | →PROBLEM faulty            | flies on →PROBLEM faulty
EMERGENCY   | →EMERGENCY faulty latched  | →EMERGENCY faulty latched ghost  | →EMERGENCY faulty latched  | flies on →EMERGENCY faulty latched | →EMERGENCY faulty latched  | →EMERGENCY faulty latched  | flies on →EMERGENCY faulty latched
UNKNOWN     | .                          | ghost                            | .                          | flies on                           | .                          | .                          | flies on
IDLE 4 %    | →EMERGENCY faulty          | →EMERGENCY faulty ghost          | →EMERGENCY faulty          | flies on →EMERGENCY faulty         | →EMERGENCY faulty          | →EMERGENCY faulty          | flies on →EMERGENCY faulty
`,
	},
	{
		name:  "BOUND_ACKED_DONE",
		prose: "Its mission is completed, though it never reported flying.",
		build: held(done),
		grid: `
claim       | none, other               | failed early                    | failed late               | M early, M late           | none old, other old       | failed old                | M old
no claim    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE        | free →IDLE                | free →UNKNOWN ghost             | free →IDLE                | .                         | free →UNKNOWN             | free →UNKNOWN             | .
RESERVED    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
MOVING      | .                         | ghost                           | ghost                     | moved                     | .                         | ghost                     | moved
DELIVERING  | →DELIVERING               | →DELIVERING ghost               | →DELIVERING ghost         | moved →DELIVERING         | →DELIVERING               | →DELIVERING ghost         | moved →DELIVERING
CHARGING    | free →CHARGING            | free →CHARGING ghost            | free →CHARGING            | .                         | free →CHARGING            | free →CHARGING            | .
MAINTENANCE | free →MAINTENANCE         | free →MAINTENANCE ghost         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE
PROBLEM     | →PROBLEM faulty           | →PROBLEM faulty ghost           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty
EMERGENCY   | →EMERGENCY faulty latched | →EMERGENCY faulty latched ghost | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched
UNKNOWN     | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE 4 %    | →EMERGENCY faulty         | →EMERGENCY faulty ghost         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty
`,
	},
	{
		name:  "BOUND_ACKED_MOVED_DONE",
		prose: "Its mission is completed and it flies home.",
		build: held(func(d *domain.Drone, m *domain.Mission) { done(d, m); d.MissionMoved = true }),
		grid: `
claim       | none, other               | failed early                    | failed late               | M early, M late           | none old, other old       | failed old                | M old
no claim    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE        | free →IDLE                | free →UNKNOWN ghost             | free →IDLE                | free →IDLE                | free →UNKNOWN             | free →UNKNOWN             | free →UNKNOWN
RESERVED    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
MOVING      | .                         | ghost                           | ghost                     | .                         | .                         | ghost                     | .
DELIVERING  | →DELIVERING               | →DELIVERING ghost               | →DELIVERING ghost         | →DELIVERING               | →DELIVERING               | →DELIVERING ghost         | →DELIVERING
CHARGING    | free →CHARGING            | free →CHARGING ghost            | free →CHARGING            | .                         | free →CHARGING            | free →CHARGING            | .
MAINTENANCE | free →MAINTENANCE         | free →MAINTENANCE ghost         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE
PROBLEM     | →PROBLEM faulty           | →PROBLEM faulty ghost           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty
EMERGENCY   | →EMERGENCY faulty latched | →EMERGENCY faulty latched ghost | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched
UNKNOWN     | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE 4 %    | →EMERGENCY faulty         | →EMERGENCY faulty ghost         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty
`,
	},
	{
		name:  "BOUND_FAULTY",
		prose: "It flies its mission and has reported a PROBLEM since second 5: 15 s ago early, 35 s ago late.",
		build: held(func(d *domain.Drone, _ *domain.Mission) {
			acked(d)
			d.MissionMoved, d.Status, d.FaultSince = true, domain.DroneProblem, at(5)
		}),
		grid: `
claim       | none early, other early  | none late, other late          | failed early                   | failed late                    | M early                  | M late                         | none old, other old            | failed old                     | M old
no claim    | .                        | .                              | ghost                          | .                              | .                        | .                              | .                              | .                              | .
IDLE        | parked →MOVING well      | parked →MOVING well            | parked →MOVING well ghost      | parked →MOVING well            | →MOVING well             | →MOVING well                   | parked →MOVING well            | parked →MOVING well            | →MOVING well
RESERVED    | .                        | .                              | ghost                          | .                              | .                        | .                              | .                              | .                              | .
MOVING      | →MOVING well             | →MOVING well                   | →MOVING well ghost             | →MOVING well ghost             | →MOVING well             | →MOVING well                   | →MOVING well                   | →MOVING well ghost             | →MOVING well
DELIVERING  | →DELIVERING well         | →DELIVERING well               | →DELIVERING well ghost         | →DELIVERING well ghost         | →DELIVERING well         | →DELIVERING well               | →DELIVERING well               | →DELIVERING well ghost         | →DELIVERING well
CHARGING    | parked →MOVING well      | parked →MOVING well            | parked →MOVING well ghost      | parked →MOVING well            | →MOVING well             | →MOVING well                   | parked →MOVING well            | parked →MOVING well            | →MOVING well
MAINTENANCE | DRONE_FAULT →MAINTENANCE | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE ghost | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE       | DRONE_FAULT →MAINTENANCE
PROBLEM     | .                        | DRONE_FAULT                    | ghost                          | DRONE_FAULT                    | .                        | DRONE_FAULT                    | DRONE_FAULT                    | DRONE_FAULT                    | DRONE_FAULT
EMERGENCY   | →EMERGENCY latched       | DRONE_FAULT →EMERGENCY latched | →EMERGENCY latched ghost       | DRONE_FAULT →EMERGENCY latched | →EMERGENCY latched       | DRONE_FAULT →EMERGENCY latched | DRONE_FAULT →EMERGENCY latched | DRONE_FAULT →EMERGENCY latched | DRONE_FAULT →EMERGENCY latched
UNKNOWN     | .                        | .                              | ghost                          | .                              | .                        | .                              | .                              | .                              | .
IDLE 4 %    | →EMERGENCY               | DRONE_FAULT →EMERGENCY         | →EMERGENCY ghost               | DRONE_FAULT →EMERGENCY         | →EMERGENCY               | DRONE_FAULT →EMERGENCY         | DRONE_FAULT →EMERGENCY         | DRONE_FAULT →EMERGENCY         | DRONE_FAULT →EMERGENCY
`,
	},
	{
		name:  "BOUND_LATCHED",
		prose: "It flies its mission again after an emergency that no operator has cleared.",
		build: held(func(d *domain.Drone, _ *domain.Mission) {
			acked(d)
			d.MissionMoved, d.Status, d.EmergencyLatched = true, domain.DroneEmergency, true
		}),
		grid: `
claim       | none, other | failed early      | failed late | M early, M late | none old, other old | failed old  | M old
no claim    | .           | ghost             | .           | .               | .                   | .           | .
IDLE        | parked      | parked ghost      | parked      | .               | parked              | parked      | .
RESERVED    | .           | ghost             | .           | .               | .                   | .           | .
MOVING      | .           | ghost             | ghost       | .               | .                   | ghost       | .
DELIVERING  | .           | ghost             | ghost       | .               | .                   | ghost       | .
CHARGING    | parked      | parked ghost      | parked      | .               | parked              | parked      | .
MAINTENANCE | DRONE_FAULT | DRONE_FAULT ghost | DRONE_FAULT | DRONE_FAULT     | DRONE_FAULT         | DRONE_FAULT | DRONE_FAULT
PROBLEM     | faulty      | faulty ghost      | faulty      | faulty          | faulty              | faulty      | faulty
EMERGENCY   | faulty      | faulty ghost      | faulty      | faulty          | faulty              | faulty      | faulty
UNKNOWN     | .           | ghost             | .           | .               | .                   | .           | .
IDLE 4 %    | faulty      | faulty ghost      | faulty      | faulty          | faulty              | faulty      | faulty
`,
	},
	{
		name:  "BOUND_GHOST",
		prose: "Assigned at second 0 and unacked, and it was flying its failed mission at its last report.",
		build: held(func(d *domain.Drone, _ *domain.Mission) { d.GhostMissionID, d.GhostRevokedAt = failedMission, at(5) }),
		grid: `
claim       | none early, other early                 | none late, other late                   | failed early                         | failed late                          | M early, M late                          | none old, other old                     | failed old                           | M old
no claim    | no ghost                                | no ghost                                | ghost                                | ghost                                | acked no ghost                           | no ghost                                | ghost                                | acked no ghost
IDLE        | no ghost                                | NOT_ACKED →IDLE no ghost                | ghost                                | NOT_ACKED →IDLE no ghost             | acked no ghost                           | NOT_ACKED →UNKNOWN no ghost             | NOT_ACKED →UNKNOWN no ghost          | acked no ghost
RESERVED    | no ghost                                | no ghost                                | ghost                                | ghost                                | acked no ghost                           | no ghost                                | ghost                                | acked no ghost
MOVING      | no ghost                                | no ghost                                | ghost                                | ghost                                | acked moved no ghost                     | no ghost                                | ghost                                | acked moved no ghost
DELIVERING  | no ghost                                | no ghost                                | ghost                                | ghost                                | acked moved →DELIVERING no ghost         | no ghost                                | ghost                                | acked moved →DELIVERING no ghost
CHARGING    | no ghost                                | NOT_ACKED →CHARGING no ghost            | ghost                                | NOT_ACKED →CHARGING no ghost         | acked no ghost                           | NOT_ACKED →CHARGING no ghost            | NOT_ACKED →CHARGING no ghost         | acked no ghost
MAINTENANCE | DRONE_FAULT →MAINTENANCE no ghost       | DRONE_FAULT →MAINTENANCE no ghost       | DRONE_FAULT →MAINTENANCE ghost       | DRONE_FAULT →MAINTENANCE no ghost    | DRONE_FAULT →MAINTENANCE no ghost        | DRONE_FAULT →MAINTENANCE no ghost       | DRONE_FAULT →MAINTENANCE no ghost    | DRONE_FAULT →MAINTENANCE no ghost
PROBLEM     | DRONE_FAULT →PROBLEM no ghost           | DRONE_FAULT →PROBLEM no ghost           | DRONE_FAULT →PROBLEM ghost           | DRONE_FAULT →PROBLEM ghost           | acked →PROBLEM faulty no ghost           | DRONE_FAULT →PROBLEM no ghost           | DRONE_FAULT →PROBLEM ghost           | acked →PROBLEM faulty no ghost
EMERGENCY   | DRONE_FAULT →EMERGENCY latched no ghost | DRONE_FAULT →EMERGENCY latched no ghost | DRONE_FAULT →EMERGENCY latched ghost | DRONE_FAULT →EMERGENCY latched ghost | acked →EMERGENCY faulty latched no ghost | DRONE_FAULT →EMERGENCY latched no ghost | DRONE_FAULT →EMERGENCY latched ghost | acked →EMERGENCY faulty latched no ghost
UNKNOWN     | no ghost                                | no ghost                                | ghost                                | ghost                                | acked no ghost                           | no ghost                                | ghost                                | acked no ghost
IDLE 4 %    | DRONE_FAULT →EMERGENCY no ghost         | DRONE_FAULT →EMERGENCY no ghost         | DRONE_FAULT →EMERGENCY ghost         | DRONE_FAULT →EMERGENCY ghost         | acked →EMERGENCY faulty no ghost         | DRONE_FAULT →EMERGENCY no ghost         | DRONE_FAULT →EMERGENCY ghost         | acked →EMERGENCY faulty no ghost
`,
	},
	{
		name:  "BOUND_MISSION_GONE",
		prose: "Its mission's document is gone: it is released as after a completed one.",
		build: func(w *world) {
			held(func(d *domain.Drone, _ *domain.Mission) { acked(d); d.MissionMoved = true })(w)
			delete(w.missions, "M-X")
			delete(w.orders, "O1")
		},
		grid: `
claim       | none, other               | failed early                    | failed late               | M early, M late           | none old, other old       | failed old                | M old
no claim    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE        | free →IDLE                | free →UNKNOWN ghost             | free →IDLE                | free →IDLE                | free →UNKNOWN             | free →UNKNOWN             | free →UNKNOWN
RESERVED    | .                         | ghost                           | .                         | .                         | .                         | .                         | .
MOVING      | .                         | ghost                           | ghost                     | .                         | .                         | ghost                     | .
DELIVERING  | →DELIVERING               | →DELIVERING ghost               | →DELIVERING ghost         | →DELIVERING               | →DELIVERING               | →DELIVERING ghost         | →DELIVERING
CHARGING    | free →CHARGING            | free →CHARGING ghost            | free →CHARGING            | .                         | free →CHARGING            | free →CHARGING            | .
MAINTENANCE | free →MAINTENANCE         | free →MAINTENANCE ghost         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE         | free →MAINTENANCE
PROBLEM     | →PROBLEM faulty           | →PROBLEM faulty ghost           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty           | →PROBLEM faulty
EMERGENCY   | →EMERGENCY faulty latched | →EMERGENCY faulty latched ghost | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched | →EMERGENCY faulty latched
UNKNOWN     | .                         | ghost                           | .                         | .                         | .                         | .                         | .
IDLE 4 %    | →EMERGENCY faulty         | →EMERGENCY faulty ghost         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty         | →EMERGENCY faulty
`,
	},
}
