package devrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// incident is something that can go wrong on purpose.
type incident struct {
	name  string
	does  string
	lasts time.Duration // simulated time; 0 if it is over at once
	begin func(context.Context, *devRun) (begun, error)
}

// begun is an incident that has begun.
type begun struct {
	what              string // went wrong
	console, terminal string // what to look at there
	end               func() // nil if it is over at once
}

const (
	optimizerDead = "optimizer-dead"
	// lostFor is far longer than a State Manager waits for a drone with a mission.
	lostFor = 10 * time.Minute
)

// gale leaves a drone that may use all but its reserve just enough to come home.
var gale = fleetsim.Wind{Slower: 0.4, Dearer: 0.2}

// incidents are those that a run offers, in the order of the menu.
var incidents = []incident{
	{"mass-casualty", "one hospital orders many CRITICAL parcels at once", 0, massCasualty},
	{"depot-closed", "the drones at one depot are grounded, for 10 minutes", 10 * time.Minute, closeDepot},
	{"drone-lost", "the drone with most parcels falls silent, for 10 minutes", lostFor, loseDrone},
	{optimizerDead, "the optimizer stops planning, for 3 minutes", 3 * time.Minute, killOptimizer},
	{"wind", "drones fly slower and use more charge, for 15 minutes", 15 * time.Minute, blow},
	{"firestore-down", "Firestore stops answering, for a minute", time.Minute, stopFirestore},
}

func incidentNames() (names []string) {
	for _, i := range incidents {
		names = append(names, i.name)
	}
	return names
}

// errNotYet is the error of an incident that may begin later.
var errNotYet = errors.New("try again in a minute")

func massCasualty(ctx context.Context, run *devRun) (begun, error) {
	n := min(60, max(12, run.cfg.Drones/4))
	to, err := run.outside.orders.Burst(ctx, n)
	return begun{
		what:     fmt.Sprintf("%s (%s) orders %d CRITICAL parcels", to.Name, to.ID, n),
		console:  "the orders with the least time left, and Why? of one without a drone",
		terminal: "statemanager orders list --status PENDING",
	}, err
}

// atDepotMetres is how close to its depot a drone counts as standing there.
const atDepotMetres = 50

// closeDepot grounds drones, because no other state of a depot keeps its drones from missions.
func closeDepot(ctx context.Context, run *devRun) (begun, error) {
	store := run.outside.store()
	depots, err := store.Depots(ctx)
	if err != nil {
		return begun{}, err
	}
	drones, err := store.Drones(ctx, "", firestoretx.Page{})
	if err != nil {
		return begun{}, err
	}
	var closed domain.DepotID
	var standing []domain.DroneID
	for _, depot := range depots.Items {
		var here []domain.DroneID
		for _, d := range drones {
			if d.HomeDepotID == depot.ID && d.Heard() && !d.Grounded && !d.Retired() && d.Position.DistanceMetres(depot.Position) <= atDepotMetres {
				here = append(here, d.ID)
			}
		}
		if len(here) > len(standing) {
			closed, standing = depot.ID, here
		}
	}
	if len(standing) == 0 {
		return begun{}, fmt.Errorf("no drone stands at its depot; %w", errNotYet)
	}
	commands, reason := operator.Commands{Store: store, By: "dronefleet dev"}, fmt.Sprintf("depot %s is closed", closed)
	each := func(ctx context.Context, do func(operator.Commands, context.Context, domain.DroneID, string) (operator.Changed[domain.Drone], error)) error {
		var g errgroup.Group
		g.SetLimit(16)
		for _, id := range standing {
			g.Go(func() error { _, err := do(commands, ctx, id, reason); return err })
		}
		return g.Wait()
	}
	open := func() error { // also at the end of the run: the next one in its directory has the same drones
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), run.cfg.DrainTimeout)
		defer stop()
		return each(ctx, operator.Commands.ReleaseDrone)
	}
	if err := each(ctx, operator.Commands.GroundDrone); err != nil {
		return begun{}, errors.Join(err, open())
	}
	return begun{
		what:     fmt.Sprintf("depot %s is closed: %d drones that stand there are grounded", closed, len(standing)),
		console:  "the grounded drones, and the orders that wait for one; release a drone if you need it",
		terminal: "statemanager audit drone " + string(standing[0]),
		end: func() {
			for err := open(); err != nil; err = open() { // while Firestore does not answer
				if !run.wait(ctx, 5*time.Second) {
					run.say("incident depot-closed: some drones stay grounded: %s", err)
					return
				}
			}
		},
	}, nil
}

func loseDrone(_ context.Context, run *devRun) (begun, error) {
	fleet := run.outside.drones
	id, parcels := fleet.Busiest()
	if id == "" {
		return begun{}, fmt.Errorf("no simulated drone flies a mission; %w", errNotYet)
	}
	return begun{
		what:     fmt.Sprintf("%s, with %d parcels aboard, sends and hears nothing", id, parcels),
		console:  "the alert CONTACT_LOST, 2 minutes after its last report, and what becomes of its orders",
		terminal: "statemanager audit drone " + string(id),
		end:      func() { fleet.Recover(id) },
	}, fleet.Inject(id, fleetsim.Fault{Silent: lostFor, Deaf: lostFor})
}

func killOptimizer(_ context.Context, run *devRun) (begun, error) {
	if run.cfg.GameDay.WithoutOptimizer {
		return begun{}, errors.New("this run has no optimizer of its own; start it without --no-optimizer")
	}
	revived := make(chan struct{})
	select {
	case run.deaths <- revived:
	default:
		return begun{}, fmt.Errorf("the optimizer does not plan yet; %w", errNotYet)
	}
	return begun{
		what:     "the optimizer no longer plans",
		console:  "the alert DEPOT_WITHOUT_CYCLES, once orders have waited for 30 s, and the gap in the cycles",
		terminal: "statemanager cycles list",
		end:      func() { close(revived) },
	}, nil
}

// plan runs the optimizer's cycles until ctx ends, except while killOptimizer has killed it.
func (run *devRun) plan(ctx context.Context) error {
	for {
		alive, kill := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- run.cycles.Run(alive) }()
		select {
		case err := <-ended:
			kill()
			return err
		case revived := <-run.deaths:
			kill()
			if err := <-ended; err != nil && !endedBy(err) {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-revived:
			}
		}
	}
}

func blow(_ context.Context, run *devRun) (begun, error) {
	run.outside.drones.Blow(gale)
	return begun{
		what:     "all simulated drones fly against the wind",
		console:  "the orders whose planned arrival moves behind their deadline, and drones with little charge",
		terminal: "statemanager missions list --status ACTIVE",
		end:      func() { run.outside.drones.Blow(fleetsim.Wind{}) },
	}, nil
}

// stopFirestore also says, at its end, what became of the messages that waited.
func stopFirestore(ctx context.Context, run *devRun) (begun, error) {
	usual := run.backlog()
	rule := run.faults.Add(fault.Rule{Do: fault.Fail(codes.Unavailable)})
	return begun{
		what:     "Firestore stops answering",
		console:  "how the page says that what it shows is old, and the alert BACKLOG_OLD",
		terminal: "statemanager deadletters list",
		end: func() {
			rule.Remove() // also at the end of the run: the summary reads the store
			restored := run.clock.Now()
			run.say("incident firestore-down: Firestore answers again; %d messages wait, %d calls failed", run.backlog(), rule.Fired())
			// A position may wait for a second by design, so some messages always wait.
			usual = max(2*usual, int(2*run.cfg.Hz*float64(run.cfg.Drones)))
			for run.backlog() > usual {
				if !run.wait(ctx, 100*time.Millisecond) {
					return
				}
			}
			run.say("incident firestore-down: all of them are settled, %s after Firestore came back", run.clock.Since(restored).Round(100*time.Millisecond))
		},
	}, nil
}
