package faultsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// strangerPrefix begins the ids of made-up drones, and of decisions about them.
const strangerPrefix = "STRANGER-"

// topSpeedKmh is the drones' top speed that the product is told by default.
const topSpeedKmh = 200

// drift is by how much the time of a forged report may be off: two clock errors back, or as far
// ahead as reports may be, and a little more.
func drift(random *rand.Rand) time.Duration {
	return time.Duration((16*random.Float64() - 10) * float64(time.Second))
}

// impostors publish reports that no drone of the fleet has made.
type impostors struct {
	mu     sync.Mutex
	random *rand.Rand
	astray map[domain.MissionID]bool // missions with a report from a stop where their drone is not
	// foreign are the ids of the reports that were sent by another than their drone.
	foreign []string
}

func newImpostors(seed uint64) *impostors {
	return &impostors{random: rand.New(rand.NewPCG(seed, 0x696d706f7374)), astray: map[domain.MissionID]bool{}}
}

// forgeReports publishes, once for each drone or mission that there is, reports that boast of stops,
// jump, or come from another sender, and reports of strangers. It also has a cycle's decision give
// a stranger an order. F-SND-01, F-SND-03, F-REG-09
func (sim *simulation) forgeReports(ctx context.Context) error {
	drones, err := sim.store.Drones(ctx, "", firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("forge reports: read the drones: %w", err)
	}
	missions, err := sim.store.Missions(ctx, domain.MissionActive, firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("forge reports: read the missions: %w", err)
	}
	orders, err := sim.store.Orders(ctx, "", firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("forge reports: read the orders: %w", err)
	}
	active := make(map[domain.MissionID]domain.Mission, len(missions))
	for _, m := range missions {
		active[m.ID] = m
	}
	sim.impostors.mu.Lock()
	defer sim.impostors.mu.Unlock()
	for _, d := range drones {
		if !d.Unregistered {
			sim.impersonate(ctx, d, active[d.CurrentMissionID])
		}
	}
	sim.forgeStrangers(ctx, drones, active, orders)
	return sim.decideForStrangers(ctx, drones, orders)
}

// impersonate publishes reports in the name of a drone, which flies the mission m if that has an id.
// They name the mission, so that none of them says that the drone has left it, except for those of
// another sender.
func (sim *simulation) impersonate(ctx context.Context, d domain.Drone, m domain.Mission) {
	p, at, last := sim.impostors, d.Position, d.LastUpdate
	if d.Track != nil { // the last report jumped
		at, last = d.Track.Position, d.Track.At
	}
	report := domain.Telemetry{
		DroneID: d.ID, Timestamp: sim.clock.Now().Add(drift(p.random)), Position: at, Battery: max(d.Battery, 30), Status: domain.DroneMoving,
		MissionID: m.ID, MissionRevision: m.RouteRevision, SupportsAmendments: d.SupportsAmendments, SupportsStandby: d.SupportsStandby,
	}
	boast, jump, foreign := report, report, report
	jump.Position.Lat, jump.Position.Lon = -at.Lat, at.Lon+90
	foreign.MissionID, foreign.MissionRevision, foreign.Status = "", 0, domain.DroneIdle
	if m.ID != "" && !m.Standby() {
		all := len(m.Route)
		boast.Timestamp, boast.CompletedStops = sim.clock.Now(), &all
		sim.publishReport(ctx, boast, d.ID)
		// A drone that was silent may be believed to be there, and its own reports are then not
		// believed for as long. Each report from nearby may move it a little farther: one is enough.
		reach := 2 * topSpeedKmh / 3.6 * sim.clock.Since(last).Seconds()
		if end := lastDelivery(m); !p.astray[m.ID] && end.DistanceMetres(at) > 5000+reach {
			p.astray[m.ID] = true
			stray := boast
			stray.Position = end
			sim.publishReport(ctx, stray, d.ID)
		}
		foreign = boast
	}
	switch p.random.IntN(4) {
	case 0:
		sim.publishReport(ctx, jump, d.ID)
	case 1:
		sim.publishReport(ctx, foreign, strangerPrefix+"0")
	}
}

// lastDelivery is where a mission with orders puts its last parcel down.
func lastDelivery(m domain.Mission) (at domain.Position) {
	for _, stop := range m.Route {
		if stop.Type == domain.WaypointHospitalDelivery {
			at = stop.Position
		}
	}
	return at
}

// forgeStrangers publishes reports of two drones that do not exist: one is idle at a depot, the
// other claims the delivery of a CRITICAL order, or of any if none is CRITICAL.
func (sim *simulation) forgeStrangers(ctx context.Context, drones []domain.Drone, active map[domain.MissionID]domain.Mission, orders []domain.Order) {
	p := sim.impostors
	idle := domain.Telemetry{
		DroneID: domain.DroneID(fmt.Sprint(strangerPrefix, p.random.IntN(5))), Timestamp: sim.clock.Now(), Position: sim.depots[0].Position, Battery: 95,
		Status: domain.DroneIdle, SupportsAmendments: true, SupportsStandby: true,
	}
	sim.publishReport(ctx, idle, idle.DroneID)
	var victim domain.Mission
	for _, o := range orders {
		if m, flown := active[o.AssignedMissionID]; flown && (victim.ID == "" || o.Priority == domain.PriorityCritical) {
			victim = m
		}
	}
	if victim.ID == "" {
		return
	}
	all := len(victim.Route)
	claims := idle
	claims.DroneID += "-CLAIMS"
	claims.MissionID, claims.MissionRevision, claims.CompletedStops = victim.ID, victim.RouteRevision, &all
	claims.Position, claims.Status = lastDelivery(victim), domain.DroneDelivering
	sim.publishReport(ctx, claims, claims.DroneID)
}

// publishReport publishes a forged report as sender. It may be too far in the future.
func (sim *simulation) publishReport(ctx context.Context, t domain.Telemetry, sender domain.DroneID) {
	t.Timestamp = t.Timestamp.UTC().Truncate(time.Microsecond)
	data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
	if err != nil {
		return // cannot happen: every field can be encoded
	}
	attrs[wire.AttrSender], attrs[poisonAttr] = string(sender), "yes"
	sim.count(faultForgedReports, 1)
	sim.hospitals.answers.Go(func() {
		id := sim.hospitals.publish(ctx, pubsubio.TopicTelemetry, data, attrs, invariant.Message{
			Topic: pubsubio.TopicTelemetry, DroneID: t.DroneID, Timestamp: t.Timestamp,
		})
		if id != "" && sender != t.DroneID {
			sim.impostors.mu.Lock()
			defer sim.impostors.mu.Unlock()
			sim.impostors.foreign = append(sim.impostors.foreign, id)
		}
	})
}

// decideForStrangers publishes a decision that gives a waiting order to a stranger. Only the
// stranger is wrong about it.
func (sim *simulation) decideForStrangers(ctx context.Context, drones []domain.Drone, orders []domain.Order) error {
	fences, err := sim.store.Fences(ctx)
	if err != nil {
		return fmt.Errorf("decide for strangers: read the fences: %w", err)
	}
	depot := sim.depots[0].ID
	for _, d := range drones {
		for _, o := range orders {
			if d.Unregistered && d.Status == domain.DroneIdle && o.Status == domain.OrderPending && o.Waits() && o.Pickup != nil && fences[depot] != "" {
				decision := directFlight(d, o)
				decision.ID, decision.CycleID = domain.DecisionID(strangerPrefix+uuid.NewString()), "stranger"
				decision.DepotID, decision.Fence, decision.SnapshotTime = depot, fences[depot], sim.clock.Now()
				sim.hospitals.answers.Go(func() { sim.publishAmendment(ctx, decision) })
				return nil
			}
		}
	}
	return nil
}

// checkSenders lists the reports of other senders that were not dead-lettered, if senders are
// required. reasons are those of the dead letters, by message.
func (sim *simulation) checkSenders(reasons map[string]string) (found []string) {
	for _, id := range sim.impostors.foreign {
		if reason := reasons[id]; sim.cfg.RequireSender && reason != "SENDER_MISMATCH" {
			found = append(found, fmt.Sprintf("F-SND-01 report %s was sent by another than its drone, and is no dead letter for that: %q", id, reason))
		}
	}
	return found
}
