package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// The order table says what every event does to an order O1 in every state. A
// cell says what changes, "." for nothing:
//
//	→S            the order's status becomes S
//	held, offered it waits for an operator, no longer waits
//	+1            its attempts rise by one; "anew" says they start over
//	late, timely  it is past its deadline, no longer is
//	urgent, due   it has another priority, another deadline than its request
//	changed       its content is the message's
//	pinned, forbidden  a drone is
//	a reason      the answer is a rejection; "noted" if an event records it
//
// The rows and the column of another requester prove F-SND-02.
const orderGrid = `
event                          | none          | PENDING                  | PENDING held             | PENDING late             | SOLVING                  | ASSIGNED                 | ASSIGNED third           | IN_DELIVERY              | DELIVERED                | CANCELLED                | tombstone         | tombstone of another
the same request               | →PENDING      | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | DUPLICATE_ORDER          | ALREADY_CANCELLED | →PENDING changed
other content                  | →PENDING      | changed                  | changed                  | changed timely           | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ALREADY_CANCELLED | →PENDING changed
another deadline               | →PENDING      | changed                  | changed                  | changed timely           | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ORDER_CONFLICT noted     | ALREADY_CANCELLED | →PENDING changed
a cancellation                 | →CANCELLED    | →CANCELLED               | →CANCELLED offered       | →CANCELLED               | →CANCELLED               | →CANCELLED               | →CANCELLED               | CANCEL_TOO_LATE noted    | ALREADY_DELIVERED noted  | ALREADY_CANCELLED        | ALREADY_CANCELLED | .
another requester cancels it   | →CANCELLED    | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | .                 | ALREADY_CANCELLED
another requester orders it    | →PENDING      | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | REQUESTER_MISMATCH noted | →PENDING changed  | ALREADY_CANCELLED
an operator cancels it         | NOT_FOUND     | →CANCELLED               | →CANCELLED offered       | →CANCELLED               | →CANCELLED               | →CANCELLED               | →CANCELLED               | CANCEL_TOO_LATE noted    | ALREADY_DELIVERED noted  | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator holds it           | NOT_FOUND     | held                     | ALREADY_HELD             | held                     | NOT_PENDING              | NOT_PENDING              | NOT_PENDING              | NOT_PENDING              | NOT_PENDING              | NOT_PENDING              | NOT_PENDING       | NOT_PENDING
an operator releases it        | NOT_FOUND     | NOT_HELD                 | offered anew             | NOT_HELD                 | NOT_HELD                 | NOT_HELD                 | NOT_HELD                 | NOT_HELD                 | NOT_HELD                 | NOT_HELD                 | NOT_HELD          | NOT_HELD
an operator makes it CRITICAL  | NOT_FOUND     | urgent                   | urgent                   | urgent                   | urgent                   | urgent                   | urgent                   | urgent                   | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator makes it STANDARD  | NOT_FOUND     | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator gives it an hour   | NOT_FOUND     | due                      | due                      | timely due               | due                      | due                      | due                      | due                      | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator gives it no time   | NOT_FOUND     | DEADLINE_PASSED          | DEADLINE_PASSED          | DEADLINE_PASSED          | DEADLINE_PASSED          | DEADLINE_PASSED          | DEADLINE_PASSED          | DEADLINE_PASSED          | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator pins it to D1      | NOT_FOUND     | pinned                   | pinned                   | pinned                   | pinned                   | pinned                   | pinned                   | pinned                   | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator pins it to D9      | NOT_FOUND     | pinned                   | pinned                   | pinned                   | pinned                   | ORDER_IN_MISSION         | ORDER_IN_MISSION         | ORDER_IN_MISSION         | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator forbids D1         | NOT_FOUND     | forbidden                | forbidden                | forbidden                | forbidden                | ORDER_IN_MISSION         | ORDER_IN_MISSION         | ORDER_IN_MISSION         | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator forbids D9         | NOT_FOUND     | forbidden                | forbidden                | forbidden                | forbidden                | forbidden                | forbidden                | forbidden                | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
an operator unpins it          | NOT_FOUND     | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | UNCHANGED                | ALREADY_DELIVERED        | ALREADY_CANCELLED        | ALREADY_CANCELLED | ALREADY_CANCELLED
its deadline passes            | .             | late                     | late                     | .                        | late                     | late                     | late                     | late                     | .                        | .                        | .                 | .
a decision names it            | ORDER_UNKNOWN | →ASSIGNED                | ORDER_HELD               | →ASSIGNED                | ORDER_NOT_PENDING        | ORDER_NOT_PENDING        | ORDER_NOT_PENDING        | ORDER_NOT_PENDING        | ORDER_NOT_PENDING        | ORDER_NOT_PENDING        | ORDER_NOT_PENDING | ORDER_NOT_PENDING
its drone reaches the pickup   | .             | .                        | .                        | .                        | .                        | →IN_DELIVERY             | →IN_DELIVERY             | .                        | .                        | .                        | .                 | .
its drone reaches the delivery | .             | .                        | .                        | .                        | .                        | .                        | .                        | →DELIVERED               | .                        | .                        | .                 | .
its drone aborts               | .             | .                        | .                        | .                        | .                        | →PENDING +1              | →PENDING held +1         | →PENDING held            | .                        | .                        | .                 | .
its drone is lost              | .             | .                        | .                        | .                        | .                        | →PENDING +1              | →PENDING held +1         | →PENDING held            | .                        | .                        | .                 | .
its drone is faulty            | .             | .                        | .                        | .                        | .                        | →PENDING +1              | →PENDING held +1         | →PENDING held            | .                        | .                        | .                 | .
`

// orderStates puts O1 into the world and, if it is under way, the acked mission M-X that
// drone D1 flies for it with O2 also aboard.
var orderStates = map[string]func(w *world){
	"none":         func(*world) {},
	"PENDING":      order(func(*domain.Order) {}),
	"PENDING held": order(func(o *domain.Order) { o.Held, o.Attempts = true, 3 }),
	"PENDING late": order(func(o *domain.Order) { o.Late, o.Deadline = true, at(-1) }),
	"SOLVING":      order(func(o *domain.Order) { o.Status = domain.OrderSolving }),
	"ASSIGNED":     underWay(func(*domain.Mission, *domain.Order) {}),
	"ASSIGNED third": underWay(func(_ *domain.Mission, o *domain.Order) {
		o.Attempts = 2
	}),
	"IN_DELIVERY": underWay(func(m *domain.Mission, o *domain.Order) {
		m.ReachedStops, o.Status = 3, domain.OrderInDelivery
	}),
	"DELIVERED": underWay(func(m *domain.Mission, o *domain.Order) {
		m.ReachedStops, o.Status, o.DeliveredAt = 4, domain.OrderDelivered, at(-1)
	}),
	"CANCELLED":            order(func(o *domain.Order) { o.Status = domain.OrderCancelled }),
	"tombstone":            tombstone("ward 4"),
	"tombstone of another": tombstone("another ward"),
}

// tombstone is a cancellation that came before its order.
func tombstone(requester string) func(*world) {
	return func(w *world) {
		o := domain.Order{ID: "O1", Status: domain.OrderCancelled, Revision: 1}
		o.RequesterID = requester
		w.with(o)
	}
}

func order(change func(*domain.Order)) func(*world) {
	return func(w *world) {
		o := openOrder("O1", 0)
		change(&o)
		w.with(o)
	}
}

func underWay(change func(*domain.Mission, *domain.Order)) func(*world) {
	return func(w *world) {
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		d := plan("X", "D1", "O2", "O1")
		d.Route[3], d.Route[4] = d.Route[4], d.Route[3] // O1's delivery is the third stop
		w.expectOutcome(d, applied)
		drone, m, o, o2 := w.drones["D1"], w.missions["M-X"], w.orders["O1"], w.orders["O2"]
		acked(&drone)
		drone.MissionMoved = true
		change(&m, &o)
		if m.ReachedStops > 1 {
			o2.Status = domain.OrderInDelivery
		}
		w.with(drone, m, o, o2)
	}
}

// withDrones adds the drones D1 and D9 if they are not there yet.
func (w *world) withDrones() *world {
	for _, id := range []domain.DroneID{"D1", "D9"} {
		if _, known := w.drones[id]; !known {
			w.with(readyDrone(id))
		}
	}
	return w
}

func byAnother(req domain.OrderRequest) domain.OrderRequest {
	req.RequesterID = "another ward"
	return req
}

func (w *world) pins(drone domain.DroneID) string { return answer(w.pinOrder("O1", drone)) }

// orderEvents are what can happen to O1.
var orderEvents = map[string]func(w *world) string{
	"the same request": func(w *world) string { return answer(w.request(request("O1", 0))) },
	"other content":    func(w *world) string { return answer(w.request(request("O1", 2))) },
	"another deadline": func(w *world) string {
		req := request("O1", 0)
		req.Deadline = at(7200)
		return answer(w.request(req))
	},
	"a cancellation":                func(w *world) string { return answer(w.request(cancellation("O1"))) },
	"another requester cancels it":  func(w *world) string { return answer(w.request(byAnother(cancellation("O1")))) },
	"another requester orders it":   func(w *world) string { return answer(w.request(byAnother(request("O1", 0)))) },
	"an operator cancels it":        func(w *world) string { return answer(w.operatorCancels("O1")) },
	"an operator holds it":          func(w *world) string { return answer(w.holdOrder("O1")) },
	"an operator releases it":       func(w *world) string { return answer(w.releaseOrder("O1")) },
	"an operator makes it CRITICAL": func(w *world) string { return answer(w.setPriority("O1", domain.PriorityCritical)) }, // F-OPR-03
	"an operator makes it STANDARD": func(w *world) string { return answer(w.setPriority("O1", domain.PriorityStandard)) },
	"an operator gives it an hour":  func(w *world) string { return answer(w.setDeadline("O1", w.now.Add(3601*time.Second))) },
	"an operator gives it no time":  func(w *world) string { return answer(w.setDeadline("O1", w.now)) },
	"an operator pins it to D1":     func(w *world) string { return w.withDrones().pins("D1") }, // F-OPR-05
	"an operator pins it to D9":     func(w *world) string { return w.withDrones().pins("D9") },
	"an operator forbids D1":        func(w *world) string { return answer(w.withDrones().forbidDrone("O1", "D1")) },
	"an operator forbids D9":        func(w *world) string { return answer(w.withDrones().forbidDrone("O1", "D9")) },
	"an operator unpins it":         func(w *world) string { return answer(w.unpinOrder("O1")) },
	"its deadline passes": func(w *world) string {
		w.clock(3541)
		w.commit(w.sweepOrder(w.orders["O1"], w.now))
		return ""
	},
	"a decision names it": func(w *world) string {
		w.with(readyDrone("D9"))
		if got := w.decide(plan("Y", "D9", "O1")); got != applied {
			return got
		}
		return ""
	},
	"its drone reaches the pickup":   func(w *world) string { w.saysAt(10, warehouseAt, domain.DroneMoving, "M-X"); return "" },
	"its drone reaches the delivery": func(w *world) string { w.saysAt(10, hospitalsAt[0], domain.DroneMoving, "M-X"); return "" },
	"its drone aborts": func(w *world) string {
		w.says(10, domain.DroneIdle, "")
		w.says(40, domain.DroneIdle, "")
		return ""
	},
	"its drone is lost":   func(w *world) string { w.clock(121); w.sweep(); return "" },
	"its drone is faulty": func(w *world) string { w.says(10, domain.DroneMaintenance, "M-X"); return "" },
}

func answer(err error) string {
	reason, _ := ReasonOf(err)
	return string(reason)
}

func TestOrderTable(t *testing.T) {
	if err := checkOrderTable(contract()); err != nil {
		t.Error(err)
	}
}

func checkOrderTable(r rules) error {
	g, err := parseGrid(orderGrid)
	if err != nil {
		return err
	}
	var all []error
	for state, build := range orderStates {
		for event, happen := range orderEvents {
			want, ok := g.cell(event, state)
			if !ok {
				all = append(all, fmt.Errorf("no cell for %s, %s", state, event))
			}
			w := newWorld(r)
			build(w)
			before, known := w.orders["O1"]
			w.broken = nil
			notes := w.notes
			reason := happen(w)
			got := orderDifference(before, w.orders["O1"], known, reason, w.notes > notes)
			if got != want {
				all = append(all, fmt.Errorf("%s, %s: %q, want %q", state, event, got, want))
			}
			if err := w.err(); err != nil {
				all = append(all, fmt.Errorf("%s, %s: %w", state, event, err))
			}
		}
	}
	if want := len(orderStates) * len(orderEvents); len(g.cells) != want {
		all = append(all, fmt.Errorf("the table has %d cells, not %d", len(g.cells), want))
	}
	return errors.Join(all...)
}

func orderDifference(before, after domain.Order, known bool, reason string, noted bool) string {
	var parts []string
	say := func(when bool, what string) {
		if when {
			parts = append(parts, what)
		}
	}
	say(after.Status != before.Status, "→"+string(after.Status))
	say(known && after.ContentHash != before.ContentHash, "changed")
	say(after.Held && !before.Held, "held")
	say(!after.Held && before.Held, "offered")
	say(after.Attempts == before.Attempts+1, "+1")
	say(after.Attempts < before.Attempts, "anew")
	say(after.Late && !before.Late, "late")
	say(!after.Late && before.Late, "timely")
	requested := after.ContentHash != before.ContentHash
	say(known && !requested && after.Priority != before.Priority, "urgent")
	say(known && !requested && !after.Deadline.Equal(before.Deadline), "due")
	say(after.PinnedDroneID != before.PinnedDroneID, "pinned")
	say(len(after.ForbiddenDroneIDs) != len(before.ForbiddenDroneIDs), "forbidden")
	say(reason != "", reason)
	say(noted, "noted")
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, " ")
}

// TestOrderPolicy_NeedsBinding shows that a mission is requested only if an order that is
// in one is cancelled.
func TestOrderPolicy_NeedsBinding(t *testing.T) {
	p := DefaultOrderPolicy()
	for _, cancel := range []bool{false, true} {
		req := domain.OrderRequest{ID: "O1", Cancel: cancel}
		if p.NeedsBinding(nil, req) {
			t.Errorf("a mission is asked for an order that does not exist, cancel %t", cancel)
		}
		for _, s := range domain.OrderStatuses {
			want := cancel && s == domain.OrderAssigned
			if got := p.NeedsBinding(&domain.Order{ID: "O1", Status: s}, req); got != want {
				t.Errorf("%s, cancel %t: %t", s, cancel, got)
			}
		}
	}
}
