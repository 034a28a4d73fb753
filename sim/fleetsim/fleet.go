package fleetsim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// FleetConfig says how a fleet flies and reports.
type FleetConfig struct {
	Topic  string      // of telemetry; default "telemetry"
	Format wire.Format // default Protobuf
	Hz     float64     // reports per drone and second of the clock, (0, 100]; default 1
	// ClockError is the largest error of a drone's clock, either way; each
	// drone's is constant and chosen by Seed. Default 0.
	ClockError time.Duration
	// Pace is how fast drones fly, as a share of CruiseKmh, which plans assume; default 1.
	Pace float64
	// Weigh is the weight, in kilograms, of the parcel of an order: a drone learns it when it
	// picks the parcel up. Nil if parcels weigh nothing.
	Weigh func(domain.OrderID) float64
	Seed  uint64
}

// WithDefaults fills what was left out.
func (c FleetConfig) WithDefaults() FleetConfig {
	if c.Topic == "" {
		c.Topic = "telemetry"
	}
	if c.Format == "" {
		c.Format = wire.Protobuf
	}
	if c.Hz == 0 {
		c.Hz = 1
	}
	return c
}

// Validate names every setting that is out of range.
func (c FleetConfig) Validate() error {
	var errs []error
	if !(c.Hz > 0 && c.Hz <= 100) {
		errs = append(errs, fmt.Errorf("hz is %v; give more than 0 and at most 100", c.Hz))
	}
	if !(c.Pace >= 0 && c.Pace <= 2) {
		errs = append(errs, fmt.Errorf("pace is %v; give more than 0 and at most 2", c.Pace))
	}
	if c.ClockError < 0 {
		errs = append(errs, fmt.Errorf("clock error is %v; give 0 or more", c.ClockError))
	}
	if _, err := wire.ParseFormat(string(c.Format)); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tick is how often the fleet checks which reports are due. All drones share one
// loop, so a drone costs nothing between its reports.
const tick = 20 * time.Millisecond

// Fleet runs simulated drones. Its methods are safe for concurrent use.
type Fleet struct {
	cfg    FleetConfig
	clock  clockwork.Clock
	sender *sender

	mu      sync.Mutex
	members []member
	slots   *Slots
	byID    map[domain.DroneID]int
	obeyed  int64
	ignored int64
	crashes int64
	begun   map[domain.MissionID]bool // by commands
	again   int64
}

// member is a drone, the time it was computed for, and the error of its own clock.
type member struct {
	drone       Drone
	at          time.Time
	clockOffset time.Duration
}

// FleetStats counts what the fleet has done.
type FleetStats struct {
	Telemetry       PublishStats
	CommandsObeyed  int64
	CommandsIgnored int64 // expired, repeated, or the drone was deaf; others' are not counted
	BegunAgain      int64 // missions that a command made a drone begin a second time
	Crashes         int64
	Charging        SlotStats
}

// NewFleet makes the drones of the world report through p and adds confirmed
// reports to c.
func NewFleet(w *World, cfg FleetConfig, clock clockwork.Clock, p Publisher, c *Confirmations) (*Fleet, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	homes := make(map[domain.DepotID]domain.Position, len(w.Depots))
	for _, d := range w.Depots {
		homes[d.ID] = d.Position
	}
	f := &Fleet{
		cfg: cfg, clock: clock, sender: newSender(p, c, clock),
		byID: make(map[domain.DroneID]int, len(w.Drones)),
	}
	f.slots = NewSlots(w.Depots)
	f.begun = map[domain.MissionID]bool{}
	random := randomFor(cfg.Seed, streamClocks)
	now := clock.Now()
	for i, d := range w.Drones {
		home, ok := homes[d.HomeDepotID]
		if !ok {
			return nil, fmt.Errorf("fleet: drone %s has no home depot %q in this world", d.ID, d.HomeDepotID)
		}
		f.byID[d.ID] = i
		f.members = append(f.members, member{
			drone:       NewDrone(d, home).Weighing(cfg.Weigh).WithPace(cfg.Pace).WithSlot(!f.slots.Limited()),
			at:          now,
			clockOffset: time.Duration((2*random.Float64() - 1) * float64(cfg.ClockError)),
		})
	}
	return f, nil
}

// Run reports until ctx ends, then waits for outstanding answers. It may be
// called once.
func (f *Fleet) Run(ctx context.Context) {
	f.sender.start(ctx)
	defer f.sender.stop()
	ticker := f.clock.NewTicker(tick)
	defer ticker.Stop()
	begin := f.clock.Now()
	reports := int64(0) // that were due since begin, sent or not
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
			now := f.clock.Now()
			reports = f.reportDue(ctx, reports, f.dueBy(now.Sub(begin)), now)
		}
	}
}

// dueBy is how many reports are due when elapsed has passed since the start: the
// drones take turns, spread evenly over each period.
func (f *Fleet) dueBy(elapsed time.Duration) int64 {
	return int64(elapsed.Seconds() * f.cfg.Hz * float64(len(f.members)))
}

// reportDue sends the reports numbered from up to due and returns due. After the
// loop was held up, each drone reports at most once.
func (f *Fleet) reportDue(ctx context.Context, from, due int64, now time.Time) int64 {
	size := int64(len(f.members))
	for n := max(from, due-size); n < due; n++ {
		if t, stop, ok := f.report(int(n%size), now); ok {
			f.publish(ctx, t, stop)
		}
	}
	return due
}

func (f *Fleet) report(i int, now time.Time) (t domain.Telemetry, stop *invariant.StopReport, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.advance(i, now)
	if m.drone.Silent() {
		return domain.Telemetry{}, nil, false
	}
	m.drone, t = m.drone.Report(now.Add(m.clockOffset))
	return t, m.drone.atStop(), true
}

// advance moves the drone's time to now. The lock must be held.
func (f *Fleet) advance(i int, now time.Time) *member {
	m := &f.members[i]
	dt := now.Sub(m.at)
	m.after(now)
	f.slots.Allot(i, dt, membersAt{f, now})
	return m
}

// membersAt are the fleet's drones and the present.
type membersAt struct {
	*Fleet
	now time.Time
}

func (a membersAt) Charger(i int) *Drone { return &a.members[i].drone }
func (a membersAt) CatchUp(i int)        { a.members[i].after(a.now) }

// after moves the member's time to now.
func (m *member) after(now time.Time) {
	if dt := now.Sub(m.at); dt > 0 {
		m.drone = m.drone.After(dt)
		m.at = now
	}
}

func (f *Fleet) publish(ctx context.Context, t domain.Telemetry, stop *invariant.StopReport) {
	data, attrs, err := wire.EncodeTelemetry(t, f.cfg.Format)
	if err != nil {
		f.sender.failed.Add(1)
		return
	}
	attrs[wire.AttrSender] = string(t.DroneID)
	f.sender.send(ctx, data, attrs, string(t.DroneID), invariant.Message{
		Topic: f.cfg.Topic, DroneID: t.DroneID, Timestamp: t.Timestamp, Where: &t.Position, Stop: stop,
	})
}

// Deliver gives a command to the drone it is for and reports whether the drone
// obeyed.
func (f *Fleet) Deliver(c domain.Command) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, ours := f.byID[c.Mission.DroneID]
	if !ours {
		return false
	}
	now := f.clock.Now()
	m := f.advance(i, now)
	obeyed, before := false, m.drone.mission
	if m.drone, obeyed = m.drone.Obey(c, now.Add(m.clockOffset)); obeyed {
		f.obeyed++
		if begun := m.drone.mission; begun != "" && begun != before {
			if f.begun[begun] {
				f.again++
			}
			f.begun[begun] = true
		}
	} else {
		f.ignored++
	}
	return obeyed
}

// Restart makes a drone forget everything; see Drone.Restart. It may begin the mission that it
// was on again.
func (f *Fleet) Restart(id domain.DroneID) {
	f.change(id, func(d Drone) Drone {
		delete(f.begun, d.mission)
		return d.Restart()
	})
}

// Resume tells a drone its mission; see Drone.Resume.
func (f *Fleet) Resume(id domain.DroneID, m *domain.Mission, completed int) {
	f.change(id, func(d Drone) Drone { return d.Resume(m, completed) })
}

func (f *Fleet) change(id domain.DroneID, change func(Drone) Drone) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ours := f.byID[id]; ours {
		m := f.advance(i, f.clock.Now())
		m.drone = change(m.drone)
	}
}

// Recover ends what is left of a drone's faults.
func (f *Fleet) Recover(id domain.DroneID) { f.change(id, Drone.Recovered) }

// Blow puts all drones into a wind, from now on.
func (f *Fleet) Blow(w Wind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for i := range f.members {
		m := f.advance(i, now)
		m.drone = m.drone.In(w)
	}
}

// Busiest is the drone with the most parcels aboard, and how many, among those that report and
// fly a mission; the id is empty if there is none.
func (f *Fleet) Busiest() (id domain.DroneID, parcels int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for i := range f.members {
		d := f.advance(i, now).drone
		if flies := d.mission != "" && d.speed() > 0 && !d.Silent(); flies && (id == "" || len(d.aboard) > parcels) {
			id, parcels = d.id, len(d.aboard)
		}
	}
	return id, parcels
}

// Inject gives a drone a fault now.
func (f *Fleet) Inject(id domain.DroneID, fault Fault) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, ok := f.byID[id]
	if !ok {
		return fmt.Errorf("inject fault: no drone %q in this fleet", id)
	}
	m := f.advance(i, f.clock.Now())
	m.drone = m.drone.WithFault(fault)
	return nil
}

// Stats returns the counts so far.
func (f *Fleet) Stats() FleetStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return FleetStats{Telemetry: f.sender.stats(), CommandsObeyed: f.obeyed, CommandsIgnored: f.ignored, BegunAgain: f.again, Crashes: f.crashes, Charging: f.slots.Stats()}
}

// Flying counts the drones that are on a flight.
func (f *Fleet) Flying() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	for i := range f.members {
		if d := f.advance(i, now).drone; d.next < len(d.route) {
			n++
		}
	}
	return n
}
