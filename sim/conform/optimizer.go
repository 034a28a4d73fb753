package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/api"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// The drones of the examination of an optimizer.
const (
	droneBare     domain.DroneID = "EXAM-BARE"     // without a cold box
	droneSmall    domain.DroneID = "EXAM-SMALL"    // carries 1 kg
	droneOld      domain.DroneID = "EXAM-OLD"      // supports neither amendments nor standby
	droneLow      domain.DroneID = "EXAM-LOW"      // has 24 % charge
	droneGrounded domain.DroneID = "EXAM-GROUNDED" // by an operator
	droneStranger domain.DroneID = "EXAM-STRANGER" // that nobody registered
)

// goodDrones is how many drones can do everything: more than there are orders.
const goodDrones = 10

// The orders of the examination of an optimizer that need care.
const (
	orderCold      domain.OrderID = "EXAM-COLD"      // needs a cold box
	orderHeavy     domain.OrderID = "EXAM-HEAVY"     // too heavy for EXAM-SMALL, and for two at once
	orderHeavyToo  domain.OrderID = "EXAM-HEAVY-2"   // likewise
	orderPinned    domain.OrderID = "EXAM-PINNED"    // to EXAM-BARE
	orderForbidden domain.OrderID = "EXAM-FORBIDDEN" // for the first good drone
	orderPickup    domain.OrderID = "EXAM-PICKUP"    // is at a position of its own
	orderHeld      domain.OrderID = "EXAM-HELD"      // by an operator
)

func goodDrone(n int) domain.DroneID { return domain.DroneID(fmt.Sprintf("EXAM-%03d", n+1)) }

// optimizerWorld are the reference places with the drones of the examination.
func optimizerWorld() (*fleetsim.World, error) {
	w, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: goodDrones + 6, IDPrefix: "EXAM"})
	if err != nil {
		return nil, err
	}
	for i := range w.Drones {
		d := &w.Drones[i]
		d.Position, d.Battery, d.SupportsAmendments, d.SupportsStandby = w.Depots[0].Position, 95, true, true
		if i < goodDrones {
			continue
		}
		switch d.ID = []domain.DroneID{droneBare, droneSmall, droneOld, droneLow, droneGrounded, droneStranger}[i-goodDrones]; d.ID {
		case droneBare:
			d.ColdBox = nil
		case droneSmall:
			d.PayloadCapacityKg = 1
		case droneOld:
			d.SupportsAmendments, d.SupportsStandby = false, false
		case droneLow: // away from the depot, where it would charge
			d.Position, d.Battery = w.Warehouses[1].Position, 24
		}
	}
	return w, nil
}

// optimizerOrders are the orders of the examination.
func optimizerOrders(w *fleetsim.World) (orders []domain.OrderRequest) {
	add := func(id domain.OrderID, product string, kg float64) {
		orders = append(orders, domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: product, WeightKg: kg, RequesterID: "EXAMINER", Delivery: w.Hospitals[6+len(orders)%4].Position,
		}})
	}
	add("EXAM-A", "BLOOD", 1)
	add("EXAM-B", "MEDICINE", 0.5)
	add("EXAM-C", "VACCINE", 2)
	add(orderCold, "BLOOD", 1)
	add(orderHeavy, "MEDICINE", 4.5)
	add(orderHeavyToo, "MEDICINE", 4.5)
	add(orderPinned, "MEDICINE", 1)
	add(orderForbidden, "MEDICINE", 1)
	add(orderPickup, "", 1)
	add(orderHeld, "MEDICINE", 1)
	orders[3].ColdChain = true
	at := w.Hospitals[7].Position
	orders[8].Pickup, orders[8].Delivery = &at, w.Hospitals[6].Position
	return orders
}

// OptimizerExam is a fleet that waits for an optimizer.
type OptimizerExam struct {
	*practice
	world    *fleetsim.World
	servable []domain.OrderID
	late     bool // the late orders have come
	judged   int  // entries of the ledger
}

// StartOptimizer starts the fleet. Its drones are idle and its orders wait when it returns.
func StartOptimizer(ctx context.Context, cfg FleetConfig) (*OptimizerExam, error) {
	world, err := optimizerWorld()
	if err != nil {
		return nil, err
	}
	p, err := startPractice(ctx, cfg, world, map[domain.DroneID]bool{droneStranger: true}, pubsubio.TopicDecisions)
	if err != nil {
		return nil, err
	}
	x := &OptimizerExam{practice: p, world: world}
	if err := x.prepare(ctx); err != nil {
		_ = p.Close() // the first error is the one to return
		return nil, err
	}
	return x, nil
}

func (x *OptimizerExam) prepare(ctx context.Context) error {
	var idle []domain.DroneID
	for _, d := range x.world.Drones {
		if d.ID != droneStranger {
			idle = append(idle, d.ID)
		}
	}
	var orders []domain.OrderID
	for _, o := range optimizerOrders(x.world) {
		if err := x.order(ctx, o); err != nil {
			return err
		}
		orders = append(orders, o.ID)
	}
	if err := x.ready(ctx, idle, orders); err != nil {
		return err
	}
	x.servable = slices.DeleteFunc(orders, func(id domain.OrderID) bool { return id == orderHeld })
	if _, err := x.commands.HoldOrder(ctx, orderHeld, reason); err != nil {
		return err
	}
	if _, err := x.commands.PinOrder(ctx, orderPinned, droneBare, reason); err != nil {
		return err
	}
	if _, err := x.commands.ForbidDrone(ctx, orderForbidden, goodDrone(0), reason); err != nil {
		return err
	}
	_, err := x.commands.GroundDrone(ctx, droneGrounded, reason)
	return err
}

// orderLate orders two more parcels while drones fly, which missions under way may take.
func (x *OptimizerExam) orderLate(ctx context.Context) error {
	x.late = true
	for i, id := range []domain.OrderID{"EXAM-LATE-1", "EXAM-LATE-2"} {
		if err := x.order(ctx, domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "MEDICINE", WeightKg: 0.5, RequesterID: "EXAMINER", Delivery: x.world.Hospitals[7+i].Position,
		}}); err != nil {
			return err
		}
		x.servable = append(x.servable, id)
	}
	return nil
}

// raceReasons are refusals that a correct optimizer meets now and then, when the fleet changes
// between its snapshot and its decision. They break a rule only if they are many.
var raceReasons = []string{"DRONE_CHANGED", "ORDER_CHANGED", "DRONE_NOT_IDLE", "ORDER_NOT_PENDING", "REVISION_CHANGED", "STOP_COMMITTED", "MISSION_NOT_ACTIVE"}

// manyRaces is one in so many decisions.
const manyRaces = 10

// settleTime bounds how long the State Manager may take to judge what was published, in the
// machine's time.
const settleTime = 10 * time.Second

// Examine has the optimizer play until it returns, every order has a mission, or limit of the
// machine's time is over. A second examination judges only what comes after the first.
func (x *OptimizerExam) Examine(ctx context.Context, limit time.Duration, play func(context.Context) error) (Summary, error) {
	b, began := newBook(api.TheRules().Optimizers, x.cfg.Progress), x.cfg.Clock.Now()
	x.mu.Lock()
	first := len(x.seen)
	x.mu.Unlock()
	playing, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- play(playing) }()
	served := -1
	_, err := wait(ctx, limit, func() (bool, error) {
		n, left, err := notPending(ctx, x.manager.Store, x.servable)
		if n != served && err == nil {
			served = n
			b.progress(fmt.Sprintf("%d of %d orders have a mission", n, len(x.servable)))
		}
		select {
		case err := <-over:
			over <- err
			return true, err
		default:
		}
		if err == nil && len(left) == 0 && !x.late {
			return false, x.orderLate(ctx)
		}
		return n == len(x.servable) && len(left) == 0, err
	})
	stop()
	played := <-over
	if err == nil {
		err = played
	}
	ended := ""
	switch {
	case ctx.Err() != nil:
		ended = "interrupted"
	case err != nil:
		return Summary{}, err
	}
	judging, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*settleTime)
	defer cancel()
	if err := x.judge(judging, b, first, ended != ""); err != nil {
		return Summary{}, err
	}
	return b.summary("optimizer", ended, x.cfg.Clock.Now().Sub(began)), nil
}

// judge reads what the optimizer published, and the answers.
func (x *OptimizerExam) judge(ctx context.Context, b *book, first int, interrupted bool) error {
	x.readDecisions(ctx, b, first)
	ledger, err := x.manager.Store.LedgerInCommitOrder(ctx)
	if err != nil {
		return err
	}
	entries := ledger[x.judged:]
	x.judged = len(ledger)
	refused := map[string]int{}
	for _, e := range entries {
		refused[e.Reason]++ // "" for those applied
	}
	for _, e := range entries {
		race := slices.Contains(raceReasons, e.Reason)
		if overtaken(e, ledger) || race && refused[e.Reason]*manyRaces <= len(entries) {
			continue
		}
		judgeEntry(b, e)
	}
	if x.cfg.AllowUnfenced {
		b.tested["O-03"] = false
		b.skip("this fleet takes decisions without a fence", "O-03")
	}
	if !b.tested["O-12"] {
		b.skip("no decision amended a mission", "O-12")
	}
	if !b.tested["O-13"] {
		b.skip("no decision was without orders", "O-13")
	}
	_, left, err := notPending(ctx, x.manager.Store, x.servable)
	if err == nil && !interrupted {
		b.test("O-15")
		for _, id := range left {
			b.broke("O-15", "order %s has no mission", id)
		}
	}
	return err
}

// overtaken reports whether a decision lost only to one of another snapshot that was applied after its
// own, for the same drone or by a later cycle. A correct optimizer cannot know of that.
func overtaken(e domain.LedgerEntry, ledger []domain.LedgerEntry) bool {
	return slices.ContainsFunc(ledger, func(other domain.LedgerEntry) bool {
		if other.Outcome != domain.OutcomeApplied || !other.AppliedAt.After(e.SnapshotTime) || other.SnapshotTime.Equal(e.SnapshotTime) {
			return false
		}
		return e.Reason == "DRONE_NOT_IDLE" && other.DroneID == e.DroneID || e.Reason == "STALE_FENCE" && other.Fence > e.Fence
	})
}

// readDecisions judges the messages themselves, and waits until the ledger has their answers.
func (x *OptimizerExam) readDecisions(ctx context.Context, b *book, first int) {
	content := map[domain.DecisionID]string{}
	read := first
	look := func() (waiting int) {
		for _, m := range x.messages(read) {
			read++
			b.test("O-01", "O-02", "O-03", "O-04", "O-05", "O-06", "O-07", "O-08", "O-09", "O-10", "O-11", "O-14")
			d, err := wire.DecodeDecision(m.data, m.attrs)
			if err != nil {
				b.broke("O-01", "a decision is refused: %v", err)
				continue
			}
			if d.ID == "" {
				d.ID = domain.DecisionID(m.id)
			}
			if before, known := content[d.ID]; known && before != d.PayloadHash {
				b.broke("O-02", "decision %s is published again with other content", d.ID)
			} else {
				content[d.ID] = d.PayloadHash
			}
			if m.key != string(d.DroneID) {
				b.broke("O-14", "decision %s has the ordering key %q, not %q", d.ID, m.key, d.DroneID)
			}
			if d.Amends() {
				b.test("O-12")
			}
			if d.Standby() {
				b.test("O-13")
			}
		}
		for id := range content {
			if _, err := x.manager.Store.LedgerEntry(ctx, id); err != nil {
				waiting++
			}
		}
		return waiting
	}
	quiet := 0
	_, _ = wait(ctx, settleTime, func() (bool, error) { // what is not judged by then has no answer
		before := read
		if waiting := look(); waiting > 0 || read > before {
			quiet = 0
		} else {
			quiet++
		}
		return quiet >= 5, nil
	})
}

// judgeEntry judges one answer of the ledger.
func judgeEntry(b *book, e domain.LedgerEntry) {
	for _, rule := range b.rules {
		if slices.Contains(rule.Refusals, e.Reason) {
			b.broke(rule.ID, "decision %s for drone %s is rejected as %s: %s", e.ID, e.DroneID, e.Reason, strings.TrimSpace(e.Detail))
		}
	}
}
