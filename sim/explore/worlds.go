package explore

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// World defines the initial state of histories and what may happen in them.
type World struct {
	Name, About string

	Ticks   uint8 // of the clock
	Orders  int   // that wait from the start
	Failed  int   // missions of theirs that failed before
	Parcels int   // that one mission takes at most
	// Depots is how many there can be; default 1. Those at most Radius km apart are one area.
	// Absent are those, a bit each, that are still to be added.
	Depots int
	Radius float64
	Absent uint8
	// Homes and PlannedBy say which of them is each drone's home and plans each order. Passed
	// is how often each order was handed over before.
	Homes             [maxDrones]int
	Members           int // that own areas; default: each cycle has a fence of its own
	PlannedBy, Passed [maxOrders]int
	Drones            int // of maxDrones, ready from the start
	// Messages is how many may be under way at once.
	Messages int
	Stocked  uint8 // orders that wait at the warehouse, a bit each; others say where they wait
	Script   []Request
	Left     budgets

	// TopSpeedKmh bounds what drones can have flown; default: they may be anywhere a tick later.
	TopSpeedKmh float64

	Unknown bool // drones are registered, and have not reported yet
	// Strangers are drones that nobody has registered; operators register and retire them.
	Strangers bool
	Amends    bool // drones support amendments
	Standby   bool // and missions without orders
	Counts    bool // drones say how many stops they have completed
	Linger    bool // drones report between stops, too
	Quiet     bool // they report in the fair end only
	Breaks    bool // drones fall silent, or get nowhere
	Ahead     bool // the first drone's clock is a tick ahead, until it is set right
	Heavy     bool // two parcels are too many for a drone
	Odd       []manner
	Faults    []manner
	Forge     []forgery
	Passes    []forgery // forged hand-overs
	Forged    bool      // a forged fence was applied, by a version that let it
	Before    []action  // taken before the histories begin

	// States is how many there are, where the tests reach them all.
	States int
}

// Request is an order message of the script.
type Request struct {
	Order   int
	Version int // hospital
	Cancel  bool
}

// initial returns the state in which a world begins.
func (m *model) initial() state {
	s := state{Now: 1, Left: m.world.Left, Depots: m.world.depots()}
	if m.world.Forged {
		s.Fence[0] = forgedFence
	}
	for i := range m.world.Drones {
		if m.world.Ahead && i == 0 {
			s.Flight[i].Flags |= ahead
		}
		if m.world.Strangers {
			continue
		}
		if m.world.Unknown {
			s.Drone[i] = m.drones.intern(domain.Drone{
				ID: droneID(i), Status: domain.DroneUnknown, HomeDepotID: depots[m.world.Homes[i]].ID, PayloadCapacityKg: payloadKg, RegisteredAt: start.Add(-time.Hour), Revision: revision,
			})
			continue
		}
		s.Drone[i] = m.drones.intern(domain.Drone{
			ID: droneID(i), Status: domain.DroneIdle, ReportedStatus: domain.DroneIdle, Position: depotAt, Battery: 90,
			LastUpdate: start, SeenAt: start, IdleSince: start.Add(-5 * time.Minute), HomeDepotID: depots[m.world.Homes[i]].ID, PayloadCapacityKg: payloadKg, Revision: revision,
			SupportsAmendments: m.world.Standby, SupportsStandby: m.world.Standby,
		})
		s.Newest[i] = m.internMessage(message{Kind: kindReport, Drone: i, Report: domain.Telemetry{
			DroneID: droneID(i), Timestamp: start, Position: depotAt, Battery: 90, Status: domain.DroneIdle,
		}})
		if m.world.TopSpeedKmh > 0 {
			s.Anchor[i] = s.Newest[i]
		}
	}
	for i := range m.world.Orders {
		req := domain.OrderRequest{ID: orderID(i), Deadline: deadline, OrderContent: domain.OrderContent{
			Priority: domain.PriorityStandard, ProductType: product, WeightKg: m.parcelKg(), Pickup: m.world.pickupOf(i), Delivery: hospitalAt(i, 0),
		}}
		if m.world.TopSpeedKmh > 0 {
			req.Delivery = nearbyAt
		}
		order := domain.Order{
			ID: req.ID, Status: domain.OrderPending, OrderContent: req.OrderContent, ContentHash: req.Hash(),
			CreatedAt: start.Add(-time.Minute), PendingSince: start.Add(-time.Minute), ContentPublishedAt: start.Add(-time.Minute),
			Deadline: deadline, Attempts: m.world.Failed, Revision: revision,
		}
		if m.several() {
			order.PlanningDepotID, order.PlanningSince = depots[m.world.PlannedBy[i]].ID, order.PendingSince
			order.HandedOverBy = formerDepots[:m.world.Passed[i]:m.world.Passed[i]]
			s.Had[i] = 1<<(maxDepots+m.world.Passed[i]) - 1<<maxDepots
		}
		s.Order[i] = m.orders.intern(order)
	}
	for _, a := range m.world.Before {
		s, _ = m.do(s, a)
	}
	if len(m.world.Before) > 0 {
		s.Left = m.world.Left
	}
	return s
}

func (w World) everyDepot() uint8 { return 1<<max(1, w.Depots) - 1 }

// depots are those with which histories begin, a bit each.
func (w World) depots() uint8 { return w.everyDepot() &^ w.Absent }

func (m *model) parcelKg() float64 {
	if m.world.Heavy {
		return 3
	}
	return 2
}

// Worlds are what the tests explore. Each is large in one respect and small in the
// others, so that its histories are followed far.
var Worlds = []World{
	{
		Name: "flight", About: "one order, one drone; a message is lost, one is delivered twice, every report may be late",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1,
		Left: budgets{Cycle: 1, Again: 1, Lose: 1},
	},
	{
		Name: "counts", About: "the same with drones that say how many stops they have completed",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1, Counts: true,
		Odd: []manner{overcount}, Left: budgets{Cycle: 1, Lose: 2, Odd: 1},
	},
	{
		Name: "handover", About: "a drone gives its mission up, another gets the order, an operator releases in error",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 2,
		Left: budgets{Cycle: 2, Abort: 1, Release: 1},
	},
	{
		Name: "race", About: "two drones, two orders, three overlapping cycles, a holder that lost its lease",
		Messages: 3, Ticks: 2, Orders: 2, Parcels: 2, Drones: 2,
		Left: budgets{Cycle: 3, Old: 1, Again: 1, Unsent: 1},
	},
	{
		Name: "slow", About: "two State Managers with transactions under way while requests and decisions come",
		Messages: 3, Ticks: 2, Orders: 1, Parcels: 2, Drones: 1, Script: []Request{{Order: 0, Version: 1}, {Order: 1}},
		Left: budgets{Cycle: 2, Slow: 2, Again: 1},
	},
	{
		Name: "requests", About: "an order is made, changed and cancelled, in any order; its drone hovers",
		Messages: 3, Ticks: 5, Parcels: 1, Drones: 1, Script: []Request{{Order: 0}, {Order: 0, Version: 1}, {Order: 0, Cancel: true}},
		Odd: []manner{hover}, Left: budgets{Cycle: 1, Again: 1, Odd: 1},
	},
	{
		Name: "withdraw", About: "a mission with two orders loses one under way",
		Messages: 3, Ticks: 6, Orders: 2, Parcels: 2, Drones: 1, Script: []Request{{Order: 0, Cancel: true}},
		Left: budgets{Cycle: 1, Again: 1},
	},
	{
		Name: "faults", About: "drones break, fall silent and get nowhere; a message is lost",
		Messages: 3, Ticks: 6, Orders: 1, Parcels: 1, Drones: 2, Breaks: true, Faults: []manner{problem, emergency, maintenance},
		Left: budgets{Cycle: 2, Fault: 2, Lose: 1},
	},
	{
		Name: "odd", About: "drones that nobody knew hover, pass a hospital early, charge, have low batteries and clocks far ahead",
		Messages: 3, Ticks: 6, Orders: 1, Parcels: 1, Drones: 2, Unknown: true, Odd: []manner{hover, pass, leap, low, charge},
		Left: budgets{Cycle: 2, Odd: 2},
	},
	{
		Name: "clock", About: "a drone's clock is a tick ahead until it is set right",
		Messages: 3, Ticks: 6, Orders: 1, Parcels: 1, Drones: 2, Ahead: true,
		Left: budgets{Cycle: 2},
	},
	{
		Name: "late", About: "one order, one drone that goes into maintenance; only the order of reports is against it",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1, Faults: []manner{maintenance},
		Left: budgets{Cycle: 1, Fault: 1},
	},
	{
		Name: "anew", About: "a mission has failed, the reports of its stops are still under way, another drone is ready",
		Messages: 5, Ticks: 6, Orders: 1, Parcels: 1, Drones: 2, Faults: []manner{maintenance},
		Before: failedUnheard, Left: budgets{Cycle: 1, Again: 1, Release: 1, Fault: 1},
	},
	{
		Name: "released", About: "a mission has failed with the parcel aboard, the report of its delivery is under way, an operator releases the order",
		Messages: 4, Ticks: 6, Orders: 1, Parcels: 1, Drones: 2, Counts: true,
		Before: failedAboard, Left: budgets{Cycle: 1, Again: 1, Release: 1, Abort: 1},
	},
	{
		Name: "ghost", About: "a drone falls silent, gets nowhere, and the word that it lost its mission is lost",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1, Breaks: true,
		Left: budgets{Cycle: 1, Fault: 1, Lose: 1},
	},
	{
		Name: "hover", About: "a drone says IDLE in flight, and passes the hospital before its pickup",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1, Odd: []manner{hover, pass},
		Left: budgets{Cycle: 1, Odd: 1},
	},
	{
		Name: "cancelled", About: "an order is cancelled under way, another waits, the drone hovers",
		Messages: 3, Ticks: 4, Orders: 2, Parcels: 1, Drones: 1, Script: []Request{{Order: 0, Cancel: true}}, Odd: []manner{hover},
		Left: budgets{Cycle: 2, Odd: 1},
	},
	{
		Name: "recalled", About: "an operator recalls missions, a message is lost, drones fly on or wait when they hear of it",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 2, Odd: []manner{roam},
		Left: budgets{Cycle: 2, Recall: 2, Lose: 1, Odd: 1},
	},
	{
		Name: "recalled late", About: "a mission is recalled while the reports of its stops are under way",
		Messages: 4, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1, Odd: []manner{roam},
		Before: pickedUpUnheard, Left: budgets{Recall: 1, Again: 1, Odd: 1},
	},
	{
		Name: "recalled half", About: "a mission with two orders is recalled, with or without a parcel aboard, while one may be cancelled",
		Messages: 3, Ticks: 7, Orders: 2, Parcels: 2, Drones: 1, Script: []Request{{Order: 1, Cancel: true}},
		Left: budgets{Cycle: 1, Recall: 1, Again: 1},
	},
	{
		Name: "grounded", About: "an operator grounds drones under way and on the ground, and releases them",
		Messages: 3, Ticks: 5, Orders: 1, Parcels: 1, Drones: 2,
		Left: budgets{Cycle: 2, Ground: 2, Abort: 1},
	},
	{
		Name: "stranger", About: "drones that nobody knows report, are registered and retired, and report again, while cycles overlap",
		Messages: 3, Ticks: 5, Orders: 1, Parcels: 1, Drones: 2, Strangers: true,
		Left: budgets{Cycle: 2, Register: 2, Retire: 1, Again: 1},
	},
	{
		Name: "boaster", About: "a drone claims stops that it cannot have reached, before, with and after true reports, from where it is and from elsewhere",
		Messages: 3, Ticks: 4, Orders: 1, Parcels: 1, Drones: 1, Counts: true, TopSpeedKmh: 12_000,
		Odd: []manner{boast, stray}, Faults: []manner{maintenance},
		Before: commanded, Left: budgets{Odd: 2, Fault: 1}, States: 31_511,
	},
	{
		Name: "pinned", About: "an operator pins orders to drones and forbids drones while cycles overlap",
		Messages: 3, Ticks: 4, Orders: 2, Parcels: 2, Drones: 2,
		Left: budgets{Cycle: 2, Pin: 2, Abort: 1},
	},
	{
		Name: "amended", About: "a mission is changed under way, more than once, while messages are late, lost and repeated; another drone is ready",
		Messages: 3, Ticks: 7, Orders: 2, Parcels: 2, Drones: 2, Counts: true, Amends: true,
		Before: underWay, Left: budgets{Cycle: 1, Amend: 2, Lose: 1, Again: 1},
	},
	{
		Name: "amended late", About: "a mission with two orders loses one under way; its drone gives up, falls silent or is recalled",
		Messages: 3, Ticks: 7, Orders: 2, Parcels: 2, Drones: 1, Counts: true, Amends: true, Breaks: true,
		Before: underWayWithTwo, Left: budgets{Amend: 1, Recall: 1, Abort: 1, Fault: 1},
	},
	{
		Name: "homebound", About: "drones are given their next mission on the way home, while messages are late, lost and repeated",
		Messages: 3, Ticks: 9, Orders: 3, Parcels: 1, Drones: 1, Counts: true, Amends: true,
		Before: onItsWayHome, Left: budgets{Cycle: 2, Lose: 1, Again: 1},
	},
	{
		Name: "standby", About: "a drone is told to wait, to serve an order, or both at once, while messages are late, lost and repeated",
		Messages: 3, Ticks: 7, Orders: 1, Parcels: 1, Drones: 1, Counts: true, Amends: true, Standby: true,
		Left: budgets{Standby: 1, Cycle: 1, Amend: 1, Lose: 1, Again: 1},
	},
	{
		Name: "standby late", About: "a drone that waits is given an order; it gives up, falls silent or is recalled; another drone is ready",
		Messages: 3, Ticks: 7, Orders: 2, Parcels: 1, Drones: 2, Counts: true, Amends: true, Standby: true, Breaks: true,
		Script: []Request{{Order: 0, Cancel: true}},
		Before: onStandby, Left: budgets{Cycle: 1, Amend: 1, Recall: 1, Abort: 1, Fault: 1},
	},
	{
		Name: "third try", About: "two missions of the order have failed before",
		Messages: 3, Ticks: 7, Orders: 1, Failed: 2, Parcels: 1, Drones: 1, Faults: []manner{maintenance},
		Forge: []forgery{blind}, Left: budgets{Cycle: 1, Fault: 1, Forge: 1},
	},
	{
		Name: "forged", About: "decisions that no honest optimizer makes",
		Messages: 3, Ticks: 3, Orders: 2, Parcels: 1, Drones: 2, Heavy: true,
		Forge: []forgery{blind, ghostOrder, ghostDrone, wrongRoute, heavy, farAway, conflict, fromFuture, plannedEarlier, unknownFence, unfenced},
		Left:  budgets{Cycle: 1, Forge: 1, Again: 1, Abort: 1},
	},
	{
		Name: "misplaced", About: "decisions whose stops are not at their order's addresses, beside honest ones",
		Messages: 3, Ticks: 3, Orders: 2, Parcels: 1, Drones: 2, Forge: []forgery{elsewhere, oldPickup},
		Left: budgets{Cycle: 1, Forge: 2, Again: 1, Abort: 1},
	},
	{
		Name: "moved", About: "a warehouse moves while two transactions are under way; a mission may be given the order that waits there, and so may a drone that is silent for good",
		Messages: 3, Ticks: 2, Orders: 2, Stocked: 1, Parcels: 1, Drones: 2, Counts: true, Amends: true,
		Before: underWayElsewhere, Left: budgets{Cycle: 1, Amend: 1, Move: 1, Slow: 2}, States: 55_294,
	},
	{
		Name: "areas", About: "three areas, one without drones; an order that was handed over three times before is handed over and held while cycles overlap and a depot is deleted",
		Messages: 2, Orders: 1, Parcels: 1, Drones: 2, Depots: 3, Homes: [maxDrones]int{0, 1}, PlannedBy: [maxOrders]int{1}, Passed: [maxOrders]int{3}, Quiet: true,
		Left: budgets{Cycle: 2, HandOver: 2, Old: 1, Again: 1, Delete: 1, Hold: 1}, States: 29_129,
	},
	{
		Name: "owned", About: "two members own two areas; one is frozen or has a wrong clock, so that both believe they own an area and go on, each with the fence of its ownership",
		Messages: 2, Orders: 2, Parcels: 1, Drones: 2, Depots: 2, Homes: [maxDrones]int{0, 1}, PlannedBy: [maxOrders]int{0, 1}, Members: 2, Quiet: true,
		Left: budgets{Cycle: 3, HandOver: 1, Take: 3, Again: 1}, States: 145_788,
	},
	{
		Name: "readdressed", About: "an order is made, wanted elsewhere, handed over and given up by its drone while depots are deleted that State Managers still know",
		Messages: 2, Parcels: 1, Drones: 1, Depots: 3, Homes: [maxDrones]int{1}, Script: []Request{{Order: 0}, {Order: 0, Version: 2}},
		Left: budgets{Cycle: 1, HandOver: 1, Slow: 1, Delete: 2, Abort: 1}, States: 38_048,
	},
	{
		Name: "grouped", About: "two depots are one area, a third is another; an order of one is served from the other and handed over while cycles overlap and a depot is deleted",
		Messages: 2, Orders: 1, Parcels: 1, Drones: 2, Depots: 3, Radius: 30, Homes: [maxDrones]int{0, 1}, PlannedBy: [maxOrders]int{2}, Quiet: true,
		Left: budgets{Cycle: 2, HandOver: 2, Again: 1, Delete: 1}, States: 12_348,
	},
	{
		Name: "regrouped", About: "a depot between two areas joins them and is deleted again, while an order waits and is handed over",
		Messages: 2, Orders: 1, Parcels: 1, Drones: 2, Depots: 3, Radius: 55, Absent: 1 << 2, Homes: [maxDrones]int{0, 1}, PlannedBy: [maxOrders]int{1}, Quiet: true,
		Left: budgets{Cycle: 1, HandOver: 2, Old: 1, Again: 1, Add: 1, Delete: 1}, States: 12_903,
	},
	{
		Name: "founded", About: "an order comes before there is a depot and is wanted elsewhere; depots are added and deleted, and the first area is another one each time",
		Messages: 2, Parcels: 1, Drones: 1, Depots: 3, Radius: 30, Absent: 7, Homes: [maxDrones]int{1}, Quiet: true, Script: []Request{{Order: 0}, {Order: 0, Version: 2}},
		Left: budgets{Cycle: 1, HandOver: 1, Add: 3, Delete: 1}, States: 15_734,
	},
	{
		Name: "passed", About: "hand-overs that no honest cycle makes, of an order that waits and of one that is delivered, beside honest ones",
		Messages: 2, Orders: 2, Parcels: 1, Drones: 2, Depots: 3, Radius: 30, Homes: [maxDrones]int{0, 1}, PlannedBy: [maxOrders]int{0, 2}, Quiet: true,
		Script: []Request{{Order: 1, Cancel: true}}, Passes: []forgery{blind, ghostOrder, stranger, usurper, unknownFence, unfenced},
		Before: onItsWayHome, Left: budgets{Cycle: 1, HandOver: 1, Forge: 1, Again: 1}, States: 18_987,
	},
	{
		Name: "blocked", About: "a forged fence was applied; cycles, a lost lease and forged decisions go on",
		Messages: 3, Ticks: 4, Orders: 2, Parcels: 1, Drones: 2, Forged: true, Forge: []forgery{unknownFence},
		Left: budgets{Cycle: 2, Old: 1, Forge: 1},
	},
}

// WorldOf returns the world with a name.
func WorldOf(name string) (World, bool) {
	for _, w := range Worlds {
		if w.Name == name {
			return w, true
		}
	}
	return World{}, false
}

// underWay is a mission with the first order, whose drone has said so.
var underWay = []action{
	{Do: doPlan, A: 0, B: 1}, {Do: doDeliver, A: 0}, // the decision
	{Do: doDeliver, A: 0}, // the command
	{Do: doTick}, {Do: doReport, A: 0, B: uint8(goOn)}, {Do: doDeliver, A: 0},
	{Do: doReport, A: 1, B: uint8(idle)}, {Do: doDeliver, A: 0},
}

// underWayElsewhere is the same with the second order; the other drone falls silent for good.
var underWayElsewhere = append([]action{{Do: doFail, A: 1, B: dead}, {Do: doPlan, A: 0, B: 2}}, underWay[1:6]...)

// commanded is a mission with the first order, whose drone has said nothing of it.
var commanded = []action{
	{Do: doPlan, A: 0, B: 1}, {Do: doDeliver, A: 0}, {Do: doDeliver, A: 0}, {Do: doTick},
}

// onStandby is a mission without orders, whose drone has said so.
var onStandby = []action{
	{Do: doStandby, A: 0}, {Do: doDeliver, A: 0}, {Do: doDeliver, A: 0},
	{Do: doTick}, {Do: doReport, A: 0, B: uint8(await)}, {Do: doDeliver, A: 0},
	{Do: doReport, A: 1, B: uint8(idle)}, {Do: doDeliver, A: 0},
}

// onItsWayHome is a mission with the first order, whose last stop is served.
var onItsWayHome = []action{
	{Do: doPlan, A: 0, B: 1}, {Do: doDeliver, A: 0}, {Do: doDeliver, A: 0},
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doDeliver, A: 0}, {Do: doTick},
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doDeliver, A: 0},
}

// underWayWithTwo is the same with both orders, and no other drone.
var underWayWithTwo = []action{
	{Do: doPlan, A: 0, B: 3}, {Do: doDeliver, A: 0}, {Do: doDeliver, A: 0},
	{Do: doTick}, {Do: doReport, A: 0, B: uint8(goOn)}, {Do: doDeliver, A: 0},
}

// failedUnheard is a mission that serves its stops and fails because the drone's next
// report, of maintenance, is the first to arrive. The other drone is heard of.
var failedUnheard = []action{
	{Do: doPlan, A: 0, B: 1}, {Do: doDeliver, A: 0}, // the decision
	{Do: doDeliver, A: 0}, // the command
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doTick},
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doTick},
	{Do: doReport, A: 0, B: uint8(maintenance)}, {Do: doDeliver, A: 2},
	{Do: doReport, A: 1, B: uint8(idle)}, {Do: doDeliver, A: 3},
}

// pickedUpUnheard is a mission that its drone knows of, and whose pickup is not yet heard
// of.
var pickedUpUnheard = []action{
	{Do: doPlan, A: 0, B: 1}, {Do: doDeliver, A: 0}, // the decision
	{Do: doDeliver, A: 0}, // the command
	{Do: doReport, A: 0, B: uint8(goOn)}, {Do: doDeliver, A: 0}, {Do: doTick},
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doTick},
}

// failedAboard is a mission that is known to have picked its parcel up, and that fails
// before the report of the delivery arrives. The other drone is heard of.
var failedAboard = []action{
	{Do: doPlan, A: 0, B: 1}, {Do: doDeliver, A: 0}, // the decision
	{Do: doDeliver, A: 0}, // the command
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doDeliver, A: 0}, {Do: doTick},
	{Do: doReport, A: 0, B: uint8(fly)}, {Do: doTick},
	{Do: doReport, A: 0, B: uint8(maintenance)}, {Do: doDeliver, A: 1},
	{Do: doReport, A: 1, B: uint8(idle)}, {Do: doDeliver, A: 2},
}
