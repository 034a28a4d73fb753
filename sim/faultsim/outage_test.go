package faultsim

import (
	"cmp"
	"slices"
	"testing"
	"time"

	fspb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/app/manager"
	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-DEC-07: forged decisions are refused for their fence, whatever it is, and the real
// ones go on being applied.
func TestSimulation_RefusesForgedDecisions(t *testing.T) {
	needsEmbedded(t)
	var plan []plannedFault
	for at := 5 * time.Second; at < 40*time.Second; at += 2 * time.Second {
		plan = append(plan, plannedFault{at: at, what: faultForgedDecisions})
	}
	for _, pace := range paces {
		r, err := Run(t.Context(), Config{Seed: *seed, Speed: float64(pace), Duration: pace.of(3 * time.Second), Plan: plan, Log: logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("x%g: %d forged; %d real ones applied; rejected %v", pace, r.Faults[faultForgedDecisions], r.Applied, r.Rejected)
		for _, f := range r.findings() {
			t.Error(f)
		}
		if r.Applied > 0 && r.Rejected[string(policy.ReasonFenceUnknown)] > 0 && r.Rejected[string(policy.ReasonFenceMissing)] > 0 {
			return
		}
	}
	t.Errorf("in none of %d runs was a real decision applied, and forged ones refused as FENCE_UNKNOWN and FENCE_MISSING", len(paces))
}

// F-SND-01, F-SND-03, F-REG-09: forged reports, of strangers and of drones that boast, jump or speak
// for others, break no rule. Each rule that refuses them, once removed, is missed in some world.
func TestSimulation_RefusesForgedReports(t *testing.T) {
	needsEmbedded(t)
	longtest.Only(t, "each variant takes a whole simulation")
	for _, v := range []struct {
		name, caught string
		broken       func(*manager.Config)
	}{
		{"the product as it is", "", nil},
		{"drones are believed whatever they claim", "F-SND-03", func(c *manager.Config) { c.Limits.TopSpeedKmh = 1e9 }},
		{"nobody asks who sent a report", "F-SND-01", func(c *manager.Config) { c.Worker.RequireSender = false }},
		{"strangers are given missions", "I12", func(c *manager.Config) { c.PlanUnregistered = true }},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			var plan []plannedFault
			for at := 5 * time.Second; at < 100*time.Second; at += 4 * time.Second {
				plan = append(plan, plannedFault{at: at, what: faultForgedReports})
			}
			tried := paces
			if v.caught == "" {
				// What breaks a rule fails at once, and a busy machine does not even settle the backlog of
				// a fast world.
				tried = paces[2:]
			}
			for i, pace := range tried {
				cfg := Config{Seed: *seed + uint64(i), Speed: float64(pace), Duration: pace.of(3 * time.Second), RequireSender: true, Manager: v.broken, Plan: plan, Log: logger(t)}
				r, err := Run(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("x%g: %d forged, orders %v, rejected %v, dead letters %v", pace, r.Faults[faultForgedReports], r.Orders, r.Rejected, r.DeadLetters)
				if v.caught == "" {
					report(t, cfg, r)
				}
				met := r.Rejected[string(policy.ReasonDroneUnregistered)] > 0 && r.DeadLetters[string(policy.ReasonSenderMismatch)] > 0
				if v.caught == "" && met || v.caught != "" && r.reports(v.caught) {
					return
				}
			}
			t.Errorf("in none of %d runs: %s", len(tried), cmp.Or(v.caught, "DRONE_UNREGISTERED and SENDER_MISMATCH"))
		})
	}
}

// pace is how many simulated seconds pass in a second.
type pace float64

// paces are tried in turn until what a test is about has happened: on a machine that is
// busy with other work a fast world sees little but timeouts.
var paces = []pace{40, 20, 10, 5, 2}

// of is the machine time of a run that takes d at the usual pace.
func (p pace) of(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(paces[0]/p))
}

// F-DEC-01, F-ACK-01: a process that stands still for longer than its leases, while
// others do its work, and then goes on does nothing twice. A product that does not
// look up what others have done meanwhile is caught.
func TestSimulation_SurvivesFrozenProcesses(t *testing.T) {
	needsEmbedded(t)
	longtest.Only(t, "takes a whole simulation")
	var plan []plannedFault
	for i := range 8 {
		at := time.Duration(15*i+8) * time.Second
		plan = append(plan, plannedFault{at: at, lasts: shortestFreeze, what: faultFreezeManager, target: i})
		if i%3 == 0 {
			plan = append(plan, plannedFault{at: at, lasts: shortestFreeze, what: faultFreezeOptimizer, target: i})
		}
	}
	forgetful := faultInjector{
		read: func(d document) bool { return d.collection == "decisions" },
		write: func(all []*fspb.Write) []*fspb.Write {
			for _, w := range all {
				if written(w).collection == "decisions" {
					w.CurrentDocument = nil
				}
			}
			return all
		},
	}
	for _, row := range []struct {
		name   string
		faults faultInjector
		runs   []pace // each in a world of its own
		caught string
	}{
		{"nothing is done twice", faultInjector{}, paces, ""},
		{"a ledger that is not read does it twice", forgetful, slices.Repeat(paces[:1], worlds), "I7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for world, pace := range row.runs {
				r, err := Run(t.Context(), Config{
					Seed: *seed + uint64(world), Managers: 3, Plan: plan, Speed: float64(pace), Duration: pace.of(*duration), Log: logger(t),
					Interceptors: row.faults.dialOptions(),
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("x%g: orders %v, %d applied, rejected %v, faults %v", pace, r.Orders, r.Applied, r.Rejected, r.Faults)
				if row.caught != "" {
					if r.reports(row.caught) {
						return
					}
					continue
				}
				for _, f := range r.findings() {
					t.Error(f)
				}
				if r.Applied > 0 && r.Faults[faultFreezeManager] > 0 && r.Faults[faultFreezeOptimizer] > 0 {
					return
				}
			}
			if row.caught != "" {
				t.Fatalf("%s did not report it in %d worlds", row.caught, len(row.runs))
			}
			t.Errorf("in none of %d runs was a decision applied while managers and optimizers froze", len(row.runs))
		})
	}
}

// F-ACK-01, F-FLOW-01: an outage of Firestore of three minutes, longer than any
// lease, loses nothing, dead-letters nothing and does not fill memory. A nacked
// message is redelivered: a product that acks instead loses it.
func TestSimulation_SurvivesAnOutageOfMinutes(t *testing.T) {
	needsEmbedded(t)
	longtest.Only(t, "takes a whole simulation")
	outage := plannedFault{
		at: 10 * time.Second, lasts: 3 * time.Minute, what: faultFirestoreOutage,
		rule: &fsfault.Rule{Owner: productOwner, Do: fsfault.Fail(codes.Unavailable)},
	}
	for _, row := range []struct {
		name   string
		faults faultInjector
		caught string
	}{
		{"nothing is lost", faultInjector{}, ""},
		{"a nack sent as an ack loses messages", faultInjector{ackNacks: true}, "I9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Config{
				Seed: *seed, Duration: 5 * time.Second, Plan: []plannedFault{outage}, Log: logger(t), Interceptors: row.faults.dialOptions(),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("orders %v, %d refused calls, dead letters %v, %d MiB", r.Orders, r.Faults[faultFirestoreOutage], r.DeadLetters, r.MaxHeap>>20)
			if row.caught != "" {
				if !r.reports(row.caught) {
					t.Errorf("%s did not report it; found %v", row.caught, r.findings())
				}
				return
			}
			for _, f := range r.findings() {
				t.Error(f)
			}
			if r.Faults[faultFirestoreOutage] == 0 {
				t.Error("there was no outage")
			}
			if r.MaxHeap > maxHeap {
				t.Errorf("the heap grew to %d MiB", r.MaxHeap>>20)
			}
		})
	}
}
