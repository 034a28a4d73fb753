package domain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Wait is what the latest complete cycle of one planning area found about an order that
// waits (F-ORD-05).
type Wait struct {
	DepotID DepotID // names the area
	// CycleID and SnapshotTime are of that cycle; empty if none is on record.
	CycleID      CycleID
	SnapshotTime time.Time
	// WithoutOrders counts the area's cycles without orders, which share one record. It is 0 if
	// that cycle had orders.
	WithoutOrders int
	// Reason is the cycle's, with its detail after ": ", or one of the Wait
	// constants.
	Reason string
	// Obstacles is zero if the drones were not counted.
	Obstacles Obstacles
}

// Reasons of a Wait when a depot's latest cycle gives none.
const (
	WaitNoDepot   = "no_depot"         // there is no depot, so no cycle runs
	WaitNoCycle   = "no_cycle"         // no complete cycle of the depot is on record
	WaitNotSeen   = "not_seen_yet"     // the order became PENDING, or the area's to plan, after the snapshot of the cycle, or the cycle found no orders
	WaitPlanned   = "decision_pending" // the cycle gave it to a drone; the decision is not applied, or was rejected
	WaitNotListed = "not_listed"       // the cycle left it, with more orders than its record holds
	WaitLeftOut   = "left_out"         // no plan can use the order as it is; the detail says why
)

// hopeless are the reasons that waiting cannot cure: the order, a place or the fleet must change.
// They repeat those of the solver, which this package must not import.
var hopeless = []string{"invalid_input", "no_compatible_warehouse", "no_drone_allowed", "over_capacity", "out_of_range", WaitLeftOut}

// Hopeless reports whether waiting cannot help the order.
func (w Wait) Hopeless() bool { return slices.Contains(hopeless, w.code()) }

// code is the reason without its detail.
func (w Wait) code() string {
	code, _, _ := strings.Cut(w.Reason, ":")
	return code
}

// Waits answers why orders wait, from the latest complete cycle of each area.
type Waits struct{ depots []depotWaits }

type depotWaits struct {
	wait     Wait // without reason and obstacles
	planned  []DepotID
	complete bool // every order that the cycle left is in unserved
	quiet    bool // the cycle found no orders
	unserved map[OrderID]UnservedOrder
	leftOut  []string
}

// WaitsOf answers from the latest complete cycles, by the depot that names the area. A depot that a
// later cycle of another depot planned for belongs to that depot's area.
func WaitsOf(depots []DepotID, latest map[DepotID]Cycle) (w Waits) {
	for _, id := range depots {
		c, has := latest[id]
		if slices.ContainsFunc(depots, func(other DepotID) bool {
			of := latest[other]
			return other != id && of.PlannedFor(id) && of.StartedAt.After(c.StartedAt)
		}) {
			continue
		}
		if has {
			w.AddDepot(id, &c)
		} else {
			w.AddDepot(id, nil)
		}
	}
	return w
}

// AddDepot adds a depot that names an area. c is its latest complete cycle, nil if there is none.
func (w *Waits) AddDepot(id DepotID, c *Cycle) {
	d := depotWaits{wait: Wait{DepotID: id}, planned: []DepotID{id}}
	if c != nil {
		d.planned = append(d.planned, c.DepotIDs...)
		d.wait.CycleID, d.wait.SnapshotTime, d.wait.WithoutOrders = c.ID, c.SnapshotTime, c.WithoutOrders
		d.leftOut, d.quiet = c.LeftOut, c.Orders == 0
		d.unserved = make(map[OrderID]UnservedOrder, len(c.Unserved))
		for _, u := range c.Unserved {
			d.unserved[u.OrderID] = u
		}
		d.complete = len(c.Unserved)+c.Assigned >= c.Orders-leftOutOrders(c.LeftOut)
	}
	w.depots = append(w.depots, d)
}

// leftOutOrder begins an entry of Cycle.LeftOut about an order.
const leftOutOrder = "order "

func leftOutOrders(leftOut []string) (n int) {
	for _, what := range leftOut {
		if strings.HasPrefix(what, leftOutOrder) {
			n++
		}
	}
	return n
}

// Depots lists the depots with their cycles, without reasons.
func (w Waits) Depots() []Wait {
	list := make([]Wait, len(w.depots))
	for i, d := range w.depots {
		list[i] = d.wait
	}
	return list
}

// Of says why an order waits: one entry, of the area that plans it. It is empty for an order that
// does not wait. If no area is known to plan the order, there is an entry for each depot: those
// that planned it first, then those with more drones that can carry it, with more free drones, and
// with the latest cycle.
func (w Waits) Of(o Order) []Wait {
	if !o.Waits() {
		return nil
	}
	if len(w.depots) == 0 {
		return []Wait{{Reason: cmp.Or(o.Warning, WaitNoDepot)}}
	}
	depots := w.depots
	if i := slices.IndexFunc(depots, func(d depotWaits) bool { return slices.Contains(d.planned, o.PlanningDepotID) }); i >= 0 {
		depots = depots[i : i+1]
	}
	waits := make([]Wait, len(depots))
	for i, d := range depots {
		waits[i] = d.of(o)
	}
	slices.SortStableFunc(waits, func(a, b Wait) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()),
			cmp.Compare(b.Obstacles.able(), a.Obstacles.able()), cmp.Compare(b.Obstacles.Free, a.Obstacles.Free),
			b.SnapshotTime.Compare(a.SnapshotTime), cmp.Compare(a.DepotID, b.DepotID))
	})
	return waits
}

// rank is 0 for a depot that planned the order, else 1.
func (w Wait) rank() int {
	if w.Reason == WaitPlanned {
		return 0
	}
	return 1
}

func (d depotWaits) of(o Order) Wait {
	w := d.wait
	if u, listed := d.unserved[o.ID]; listed {
		w.Reason, w.Obstacles = u.Reason, u.Obstacles
		return w
	}
	switch detail, leftOut := d.leaves(o.ID); {
	case w.CycleID == "":
		w.Reason = cmp.Or(o.Warning, WaitNoCycle)
	case o.PendingSince.After(w.SnapshotTime), o.PlanningSince.After(w.SnapshotTime):
		w.Reason = cmp.Or(o.Warning, WaitNotSeen)
	case leftOut:
		w.Reason = WaitLeftOut + ": " + detail
	case d.quiet:
		w.Reason = WaitNotSeen
	case d.complete:
		w.Reason = WaitPlanned
	default:
		w.Reason = WaitNotListed
	}
	return w
}

// leaves is why the cycle could not plan an order at all.
func (d depotWaits) leaves(id OrderID) (detail string, leftOut bool) {
	for _, what := range d.leftOut {
		if detail, is := strings.CutPrefix(what, leftOutOrder+string(id)+": "); is {
			return detail, true
		}
	}
	return "", false
}

// String is one line for people, such as "no_drone_free; 12 free: 7 taken, 5
// reserve; 28 busy".
func (w Wait) String() string {
	if !w.Obstacles.Counted() {
		return w.Reason
	}
	return w.Reason + "; " + w.Obstacles.String()
}

// Short is String for a narrow column: the reason if waiting cannot help, else the largest obstacle
// among the free drones, such as "12 free: 7 taken", or else the reason.
func (w Wait) Short() string {
	reason := strings.ReplaceAll(w.code(), "_", " ")
	if w.Hopeless() {
		return reason
	}
	o := w.Obstacles
	if kinds := o.kinds(); len(kinds) > 0 {
		largest := slices.MaxFunc(kinds, func(a, b obstacle) int { return cmp.Compare(a.drones, b.drones) })
		return fmt.Sprintf("%d free: %s", o.Free, largest)
	}
	if o.Counted() {
		return o.String()
	}
	return reason
}
