package plannersim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

func run(t *testing.T, s plannersim.Scenario, strategy solver.Strategy) plannersim.Result {
	t.Helper()
	return runWith(t, s, planner.Config{Options: solver.Options{Iterations: 50, Workers: 1, Strategy: strategy}})
}

func runWith(t *testing.T, s plannersim.Scenario, cfg planner.Config) plannersim.Result {
	t.Helper()
	cfg.Params = solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell}
	cfg.Refused = func(_ solver.Problem, fault error) { t.Error(fault) }
	r, err := plannersim.Run(t.Context(), s, func() *planner.Planner { return planner.New(cfg, time.Now) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// In every world the planner delivers more CRITICAL orders in time than either
// baseline, with a busy fleet, an overloaded one and one hit by bursts. At most
// one HIGH order in twenty is late.
func TestPlanner_LeadsOnCriticalOrders(t *testing.T) {
	longtest.Only(t, "plans nine days")
	t.Parallel()
	for name, s := range map[string]plannersim.Scenario{
		"busy":       {PerMinute: 4, Seed: 1},
		"overloaded": {PerMinute: 8, Seed: 1, Duration: 80 * time.Minute},
		"bursts":     {PerMinute: 4, Seed: 1, Burst: 3},
	} {
		t.Run(name, func(t *testing.T) {
			ours := run(t, s, solver.SISR).Priorities
			for baseline, strategy := range map[string]solver.Strategy{"greedy": solver.Greedy, "nearest": solver.NearestFirst} {
				theirs := run(t, s, strategy).Priorities
				if us, them := ours[domain.PriorityCritical], theirs[domain.PriorityCritical]; us.OnTime <= them.OnTime || us.Created != them.Created {
					t.Errorf("%+v, %s %+v", us, baseline, them)
				}
			}
			if high := ours[domain.PriorityHigh]; high.Late > high.Created/20 {
				t.Errorf("HIGH: %+v", high)
			}
		})
	}
}

// F-OPT-04: an overloaded fleet delivers every order once the load ends.
func TestPlanner_DeliversEveryOrderAfterOverload(t *testing.T) {
	longtest.Only(t, "plans seven hours")
	t.Parallel()
	s := plannersim.Scenario{PerMinute: 8, Drones: 20, Duration: 7 * time.Hour, Quiet: 6 * time.Hour, Seed: 5}
	for p, class := range run(t, s, solver.SISR).Priorities {
		if class.Delivered != class.Created {
			t.Errorf("%s: %+v", domain.Priority(p), class)
		}
	}
}

// In a city with short distances all CRITICAL orders are in time, even at twice
// the load that the fleet could carry with one order per flight.
func TestPlanner_ServesAllCriticalOrdersInACity(t *testing.T) {
	longtest.Only(t, "plans two days of a city")
	t.Parallel()
	for seed := uint64(1); seed <= 2; seed++ {
		r := run(t, plannersim.Scenario{World: plannersim.City, PerMinute: 6, Seed: seed}, solver.SISR)
		if c := r.Priorities[domain.PriorityCritical]; c.Late > 0 {
			t.Errorf("seed %d: %+v", seed, c)
		}
	}
}

// F-OPT-07: with a third of the drones waiting at hospitals, looking ahead brings
// more CRITICAL orders in time than the search alone.
func TestPlanner_LeadsWithDronesAwayFromTheDepot(t *testing.T) {
	longtest.Only(t, "plans eight hours")
	t.Parallel()
	ours, alone := 0, 0
	for seed := range uint64(2) {
		s := plannersim.Scenario{PerMinute: 4, Seed: seed, Away: 1.0 / 3}
		ours += run(t, s, solver.SISR).Priorities[domain.PriorityCritical].OnTime
		alone += runWith(t, s, planner.Config{Options: solver.Options{Iterations: 50, Workers: 1}, Immediate: true}).Priorities[domain.PriorityCritical].OnTime
	}
	if ours <= alone {
		t.Errorf("%d CRITICAL orders in time, %d without looking ahead", ours, alone)
	}
}

func TestRun_IsDeterministic(t *testing.T) {
	longtest.Only(t, "plans 40 minutes twice")
	t.Parallel()
	s := plannersim.Scenario{Duration: 40 * time.Minute, PerMinute: 6, Burst: 2, Seed: 3, Away: 0.3}
	a, b := run(t, s, solver.SISR), run(t, s, solver.SISR)
	a.Slowest, b.Slowest = 0, 0
	a.Scenario, b.Scenario = plannersim.Scenario{}, plannersim.Scenario{}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("one seed gave two results:\n%s", diff)
	}
}

func TestRun_NamesEveryBadSetting(t *testing.T) {
	for name, s := range map[string]plannersim.Scenario{
		"interval": {Interval: time.Millisecond},
		"minute":   {PerMinute: -1},
		"burst":    {Burst: 10},
		"away":     {Away: 1.5},
		"shock":    {Shocks: []plannersim.Shock{{Orders: 5}}},
		"slots":    {Slots: -1},
		"failures": {Failures: plannersim.Failures{PerHour: -1}},
	} {
		if _, err := plannersim.Run[*planner.Planner](t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name the %s", err, name)
		}
	}
}

func TestScenario_ShocksAddUrgentOrdersOfOneHospital(t *testing.T) {
	calm := plannersim.Scenario{Duration: time.Hour, Seed: 4}
	shaken := calm
	shaken.Shocks = []plannersim.Shock{{At: 20 * time.Minute, Lasts: 5 * time.Minute, Orders: 25}}
	_, before, err := calm.Day()
	if err != nil {
		t.Fatal(err)
	}
	_, after, err := shaken.Day()
	if err != nil {
		t.Fatal(err)
	}
	hospitals, more := map[string]bool{}, 0
	for _, o := range after {
		if strings.HasPrefix(string(o.ID), "SHOCK") {
			more++
			hospitals[o.RequesterID] = true
			if o.Priority == domain.PriorityStandard {
				t.Errorf("order %s is STANDARD", o.ID)
			}
		}
	}
	if len(after) != len(before)+more || more < 10 || more > 50 || len(hospitals) != 1 {
		t.Errorf("%d orders became %d, %d of the shock, of hospitals %v", len(before), len(after), more, hospitals)
	}
}

// A drone that fails loses no order: each is delivered, pending or held. Those that wait
// at the end are those whose parcels are aboard failed drones.
func TestRun_HoldsWhatIsAboardFailedDrones(t *testing.T) {
	longtest.Only(t, "plans two and a half hours")
	s := plannersim.Scenario{Duration: 150 * time.Minute, Quiet: 90 * time.Minute, Drones: 30, PerMinute: 3, Seed: 2, Failures: plannersim.Failures{PerHour: 12, Lasts: time.Hour}}
	r := run(t, s, solver.Greedy)
	created := 0
	for _, c := range r.Priorities {
		created += c.Created
	}
	if r.Held == 0 || created-r.Delivered != r.Held {
		t.Errorf("%d orders, %d delivered, %d held", created, r.Delivered, r.Held)
	}
	s.Failures = plannersim.Failures{}
	if calm := run(t, s, solver.Greedy); calm.Held != 0 || calm.Delivered <= r.Delivered {
		t.Errorf("without failures %d delivered, %d held; with failures %d delivered", calm.Delivered, calm.Held, r.Delivered)
	}
}

// F-POS-01, F-POS-02: where a day's cycles read documents that leave most reports unwritten, each order is
// delivered all the same, and no more of them late.
func TestRun_ServesOrdersByForetoldPositions(t *testing.T) {
	t.Parallel()
	day := plannersim.Scenario{Duration: 40 * time.Minute, Quiet: 30 * time.Minute, Drones: 10, PerMinute: 1, Amend: true, Standby: true, Seed: 1}
	all := run(t, day, solver.SISR)
	day.Foretelling = policy.DefaultForetelling()
	foretold := run(t, day, solver.SISR)
	if all.Written != 1 || foretold.Written > 0.5 {
		t.Errorf("%.2f and %.2f of the reports are written", all.Written, foretold.Written)
	}
	for p, was := range all.Priorities {
		if is := foretold.Priorities[p]; is.Delivered != is.Created || is.Created != was.Created || is.Late > was.Late {
			t.Errorf("priority %d: %+v, with every report %+v", p, is, was)
		}
	}
	day.Foretelling.Heartbeat = time.Minute
	if _, err := plannersim.Run(t.Context(), day, func() *planner.Planner { return nil }); err == nil {
		t.Error("a heartbeat with which drones look silent is not refused")
	}
}
