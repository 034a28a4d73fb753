package faultsim

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	fspb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// variant is the product with one mistake.
type variant struct {
	name    string
	caught  string // the invariant, or the requirement, that must report it
	mistake func(*story)
}

// reads changes what the product reads of a collection while it does op; an empty
// op means always. A document for which change returns true seems missing.
func reads(op, collection string, change func(d document) (hide bool)) func(*story) {
	return func(s *story) {
		s.faults.read = func(d document) bool {
			return (op == "" || s.op == op) && d.collection == collection && change(d)
		}
	}
}

// field changes one field of what the product reads; nil deletes it.
func field(op, collection, name string, value *fspb.Value) func(*story) {
	return reads(op, collection, func(d document) bool {
		if value == nil {
			delete(d.fields, name)
		} else {
			d.fields[name] = value
		}
		return false
	})
}

// loses removes writes from commits while the product does op.
func loses(op string, lost func(*fspb.Write) bool) func(*story) {
	return writes(op, func(all []*fspb.Write) []*fspb.Write { return without(all, lost) })
}

func writes(op string, change func([]*fspb.Write) []*fspb.Write) func(*story) {
	return func(s *story) {
		s.faults.write = func(all []*fspb.Write) []*fspb.Write {
			if op != "" && s.op != op {
				return all
			}
			return change(all)
		}
	}
}

func each(change func(*fspb.Write)) func([]*fspb.Write) []*fspb.Write {
	return func(all []*fspb.Write) []*fspb.Write {
		for _, w := range all {
			change(w)
		}
		return all
	}
}

// both makes two mistakes.
func both(a, b func(*story)) func(*story) { return func(s *story) { a(s); b(s) } }

// overwrites turns creates of a collection into overwrites.
func overwrites(op, collection string) func(*story) {
	return writes(op, each(func(w *fspb.Write) {
		if written(w).collection == collection {
			w.CurrentDocument = nil
		}
	}))
}

// anyPlanner has cycles read orders whatever depot plans them.
func anyPlanner(s *story) {
	const planner = "planningDepotId"
	s.faults.query = func(q *fspb.StructuredQuery) {
		all := q.GetWhere().GetCompositeFilter()
		if all != nil {
			all.Filters = slices.DeleteFunc(all.Filters, func(f *fspb.StructuredQuery_Filter) bool {
				return f.GetFieldFilter().GetField().GetFieldPath() == planner
			})
		}
	}
	s.faults.listed = func(d document) { delete(d.fields, planner) }
}

func isEvent(w *fspb.Write) bool { return written(w).collection == "events" }

// state changes a field of an entity's document and of its events.
func state(w *fspb.Write, collection, name string, value *fspb.Value) {
	d := written(w)
	switch {
	case d.collection == collection && d.fields[name] != nil:
		set(w, name, value)
	case about(w, collection):
		if m := d.fields["state"].GetMapValue(); m != nil {
			m.Fields[name] = value
		}
	}
}

var variants = []variant{
	{"the ledger is not read", "I7", both(
		reads("decision", "decisions", func(document) bool { return true }), overwrites("decision", "decisions"))},
	{"fences are not compared", "I5", reads("decision", "control", func(document) bool { return true })},
	{"a higher fence is not stored", "I5", loses("decision", func(w *fspb.Write) bool { return written(w).collection == "control" })},
	{"a fence that the lock never handed out is applied", "F-DEC-02", field("decision", "fence_counters", "fence", textValue("999999999999999"))}, // F-DEC-07
	{"an order is assigned whatever its status", "I1", field("decision", "orders", "status", textValue("PENDING"))},
	{"a drone is assigned whatever it does", "I1", reads("decision", "drones", func(d document) bool {
		d.fields["status"] = textValue("IDLE")
		delete(d.fields, "currentMissionId")
		return false
	})},
	{"a held order is assigned", "I2", field("decision", "orders", "held", flagValue(false))},
	{"a drone that was away is assigned (DRONE_CHANGED unchecked)", "F-DEC-02", field("decision", "drones", "idleSince", nil)},
	{"an order that changed is assigned (ORDER_CHANGED unchecked)", "F-DEC-02", field("decision", "orders", "pendingSince", nil)},
	{"the mission is made, its orders in a transaction that never comes", "I7",
		loses("decision", func(w *fspb.Write) bool { return about(w, "orders") })},
	{"the drone is bound in a transaction that never comes", "I7",
		loses("decision", func(w *fspb.Write) bool { return about(w, "drones") })},
	{"the mission is not written", "I6",
		loses("decision", func(w *fspb.Write) bool { return about(w, "missions") })},
	{"the ledger is not written", "I6",
		loses("decision", func(w *fspb.Write) bool { return written(w).collection == "decisions" })},

	{"equal timestamps are applied", "F-TEL-02", reads("telemetry", "drones", func(d document) bool {
		d.earlier("lastUpdate", time.Microsecond)
		return false
	})},
	{"older timestamps are applied", "I4", field("telemetry", "drones", "lastUpdate", nil)},
	{"IDLE frees an unacked drone", "F-TEL-06", field("telemetry", "drones", "freeAfter", nil)},
	{"stops are reached in any order", "I3", reads("telemetry", "missions", func(d document) bool {
		if d.id == string(domain.MissionIDFor("B1")) {
			d.fields["reachedStops"] = wholeValue(1)
		}
		return false
	})},
	{"a failed mission keeps its orders", "I3", loses("telemetry", func(w *fspb.Write) bool {
		d := written(w)
		return d.text("to") == "PENDING" || d.collection == "orders" && d.text("status") == "PENDING"
	})},
	{"a parcel aboard does not come back", "I3", loses("telemetry", func(w *fspb.Write) bool {
		d := written(w)
		return d.id == "O4" && d.text("status") == "PENDING" || d.text("orderId") == "O4" && d.text("to") == "PENDING"
	})},
	{"a parcel aboard is offered to other drones", "I2", writes("telemetry", each(func(w *fspb.Write) {
		state(w, "orders", "held", flagValue(false))
	}))},
	{"failed attempts are not counted", "I2", writes("telemetry", each(func(w *fspb.Write) {
		state(w, "orders", "attempts", wholeValue(0))
	}))},
	{"a silent drone's orders stay with it", "I3", loses("sweep", func(w *fspb.Write) bool { return about(w, "orders") })},

	{"late evidence is acked and not stored", "I10", loses("late", func(*fspb.Write) bool { return true })},
	{"an order that a late report proves delivered is offered again", "I10", loses("late", func(w *fspb.Write) bool { return about(w, "orders") })},

	{"events are missing", "I8", loses("telemetry", isEvent)},
	{"events are written twice", "I8", writes("", func(all []*fspb.Write) []*fspb.Write {
		for _, w := range slices.Clone(all) {
			if isEvent(w) {
				twin := &fspb.Write{Operation: &fspb.Write_Update{Update: &fspb.Document{
					Name: w.GetUpdate().GetName() + "-again", Fields: w.GetUpdate().GetFields(),
				}}}
				all = append(all, twin)
			}
		}
		return all
	})},
	{"events are written, the documents are not", "I8", loses("order", func(w *fspb.Write) bool { return !isEvent(w) })},

	{"a redelivered order starts over", "I8", both(
		reads("order", "orders", func(d document) bool { return d.id == "O1" }), overwrites("order", "orders"))},
	{"a cancelled order comes alive", "I9", both(
		reads("order", "orders", func(d document) bool { return d.id == "O9" }), overwrites("order", "orders"))},
	{"a cancelled order stays in its mission", "F-ORD-03", loses("order", func(w *fspb.Write) bool {
		return about(w, "missions") || about(w, "drones")
	})},
	{"an order is acked and not stored", "I3", loses("order", func(*fspb.Write) bool { return true })},
	{"a changed order is acked and not stored", "I9", loses("change", func(*fspb.Write) bool { return true })},
	{"a cycle reads the orders of every area", "F-ARE-04", anyPlanner},
	{"no cycle reads an order that no depot plans", "F-ARE-04", both(
		writes("order", each(func(w *fspb.Write) { state(w, "orders", "planningDepotId", textValue("")) })),
		func(s *story) { s.faults.countNothing = true })},
	{"an order that another area plans by now is handed over", "I2", field("hand-over", "orders", "planningDepotId", textValue("WEST"))},
	{"an order is handed over back", "I2", field("hand-over", "orders", "handedOverBy", nil)},
	{"an order is handed over whatever its status", "I2", field("hand-over", "orders", "status", textValue("PENDING"))},
	{"an order with its parcel aboard is handed over", "F-ARE-05", field("hand-over", "orders", "held", flagValue(false))},
	{"fences of hand-overs are not compared", "F-ARE-05", reads("hand-over", "control", func(document) bool { return true })},
	{"a hand-over leaves no event", "I8", loses("hand-over", isEvent)},

	{"an older order overwrites a newer one", "I9", field("change", "orders", "contentPublishedAt", nil)},
}

// The product as it is passes; each broken variant is caught by the rule that
// exists to catch it.
func TestChecker_CatchesBrokenVariants(t *testing.T) {
	needsEmbedded(t)
	t.Run("the product as it is", func(t *testing.T) {
		s := newStory(t, func(*story) {})
		s.play()
		for _, f := range s.findings() {
			t.Error(f)
		}
	})
	for _, v := range variants[:longtest.Size(t, "broken variants", 6, len(variants))] {
		t.Run(v.name, func(t *testing.T) {
			s := newStory(t, v.mistake)
			s.play()
			found := s.findings()
			if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, v.caught+" ") }) {
				t.Errorf("%s did not report it; found: %s", v.caught, strings.Join(found, "\n"))
			}
		})
	}
}

// worlds is how many simulations a mistake may survive by luck. At least one run in
// three catches the mistakes below, so 24 misses in a row have a probability of
// about one in ten thousand.
const worlds = 24

// moreFences makes the product believe that locks have handed out more fences than
// they have.
func moreFences(d document) bool {
	if n, err := lock.ParseFence(d.text("fence")); err == nil && d.collection == firestorelock.DefaultFenceCollection {
		d.fields["fence"] = textValue(strconv.FormatInt(n+1_000_000, 10))
	}
	return false
}

// Mistakes that do harm only when the network fails are caught by the simulation,
// which always has poison, an outage of Firestore and lost answers.
func TestSimulation_CatchesBrokenVariants(t *testing.T) {
	needsEmbedded(t)
	longtest.Only(t, "each takes a whole simulation")
	for _, v := range []struct {
		name, caught string
		interceptors func() []grpc.DialOption
	}{
		{"a message is acked before its commit succeeded", "F-ACK-01", (&faultInjector{believeFailures: true}).dialOptions},
		{"of a report delivered twice one is acked though the commit failed", "F-ACK-01", func() []grpc.DialOption {
			return (&redeliveryAcker{seen: map[string]bool{}}).dialOptions()
		}},
		{"fences that no lock handed out are applied", "F-DEC-07", (&faultInjector{read: moreFences}).dialOptions},
		{"dead letters are dropped", "I9", (&faultInjector{dropDeadLetters: true}).dialOptions},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			// What a fault hits depends on how goroutines interleave, so one
			// world may miss the mistake; several in a row do not.
			for world := range uint64(worlds) {
				r, err := Run(t.Context(), Config{
					Seed: *seed + world, Duration: *duration, Log: logger(t), Interceptors: v.interceptors(),
					Manager: func(c *manager.Config) { c.Foretelling = policy.Foretelling{} }, // the check of acks is strict then
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.reports(v.caught) {
					t.Logf("caught in world %d", world+1)
					return
				}
			}
			t.Errorf("%s did not report it in %d worlds", v.caught, worlds)
		})
	}
}
