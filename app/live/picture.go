package live

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

// keepEnded is how long orders and missions that are over are shown.
const keepEnded = time.Hour

// picture is the state that viewers see, and what it is derived from. It is not safe for
// concurrent use.
type picture struct {
	book   *book
	state  State
	recent map[domain.CycleID]bool // the cycles that the listener has
	ledger ledger
	waits  domain.Waits
	alerts map[string]time.Time               // by id: since when
	acks   map[string]*entity.Acknowledgement // by the alert's id
}

func newPicture() picture {
	return picture{
		book: newBook(),
		state: State{
			Drones: map[domain.DroneID]domain.Drone{}, Orders: map[domain.OrderID]domain.Order{}, Missions: map[domain.MissionID]domain.Mission{},
			Cycles: map[domain.CycleID]domain.Cycle{}, Depots: map[domain.DepotID]domain.Depot{}, Warehouses: map[domain.WarehouseID]domain.Warehouse{},
			Arrivals: map[domain.OrderID]planner.Arrival{}, PickedUpAgain: map[domain.OrderID]time.Time{},
		},
		recent: map[domain.CycleID]bool{}, ledger: ledger{},
		alerts: map[string]time.Time{}, acks: map[string]*entity.Acknowledgement{},
	}
}

// putDepots shows depots, and removes those that gone names.
func (p *picture) putDepots(now []domain.Depot, gone func(id string, seen bool) bool) {
	seen := map[domain.DepotID]bool{}
	for _, d := range now {
		seen[d.ID] = true
		p.state.Depots[d.ID] = d
		p.book.put(&Version{Key: Key{KindDepot, string(d.ID)}, form: entity.OfDepot(d), depot: d.ID, at: here(d.Position)})
	}
	for id := range p.state.Depots {
		if gone(string(id), seen[id]) {
			delete(p.state.Depots, id)
			p.book.remove(Key{KindDepot, string(id)}, time.Now())
		}
	}
	p.recountWaits()
}

// putWarehouses shows warehouses, and removes those that gone names.
func (p *picture) putWarehouses(now []domain.Warehouse, gone func(id string, seen bool) bool) {
	seen := map[domain.WarehouseID]bool{}
	for _, w := range now {
		seen[w.ID] = true
		p.state.Warehouses[w.ID] = w
		p.book.put(&Version{Key: Key{KindWarehouse, string(w.ID)}, form: entity.OfWarehouse(w), at: here(w.Position)})
	}
	for id := range p.state.Warehouses {
		if gone(string(id), seen[id]) {
			delete(p.state.Warehouses, id)
			p.book.remove(Key{KindWarehouse, string(id)}, time.Now())
		}
	}
}

// putRefusals shows orders that were refused on their way, and removes those that gone names.
func (p *picture) putRefusals(now []domain.Refusal, gone func(id string, seen bool) bool) {
	seen := map[string]bool{}
	for _, r := range now {
		if r.OrderID == "" { // it stands for many, or could not be read
			continue
		}
		seen[string(r.ID)] = true
		p.book.put(&Version{Key: Key{KindRefusal, string(r.ID)}, form: entity.OfRefusal(r), requester: r.RequesterID})
	}
	for k, e := range p.book.entries {
		if k.Kind == KindRefusal && e.version != nil && gone(k.ID, seen[k.ID]) {
			p.book.remove(k, time.Now())
		}
	}
}

func here(p domain.Position) func() []domain.Position {
	return func() []domain.Position { return []domain.Position{p} }
}

// putOrder shows an order, unless a later state of it is shown.
func (p *picture) putOrder(o domain.Order) {
	if known, is := p.state.Orders[o.ID]; is && known.Revision > o.Revision {
		return
	}
	p.state.Orders[o.ID] = o
	if !o.Waits() {
		delete(p.state.Arrivals, o.ID)
	}
	p.showOrder(o)
}

func (p *picture) showOrder(o domain.Order) {
	at := []domain.Position{o.Delivery}
	if o.Pickup != nil {
		at = append(at, *o.Pickup)
	}
	soonest := p.state.Arrivals[o.ID]
	p.book.put(&Version{
		Key: Key{KindOrder, string(o.ID)}, form: entity.OfLiveOrder(o, p.waits.Of(o), soonest.DroneID, soonest.At),
		depot: p.state.Drones[o.AssignedDroneID].HomeDepotID, plans: o.PlanningDepotID, requester: o.RequesterID, at: func() []domain.Position { return at },
	})
}

// putMission shows a mission, unless a later state of it is shown.
func (p *picture) putMission(m domain.Mission) {
	if known, is := p.state.Missions[m.ID]; is && known.Revision > m.Revision {
		return
	}
	p.state.Missions[m.ID] = m
	p.showMission(m)
}

func (p *picture) showMission(m domain.Mission) {
	d := p.state.Drones[m.DroneID]
	p.book.put(&Version{
		Key: Key{KindMission, string(m.ID)}, form: entity.OfLiveMission(m, d), depot: d.HomeDepotID,
		at: func() []domain.Position {
			at := make([]domain.Position, len(m.Route))
			for i, w := range m.Route {
				at[i] = w.Position
			}
			return at
		},
	})
}

// putDrone shows a drone, unless a later state of it is shown.
func (p *picture) putDrone(d domain.Drone) {
	known, is := p.state.Drones[d.ID]
	if is && (known.Revision > d.Revision || known.LastUpdate.After(d.LastUpdate)) {
		return
	}
	if is && reflect.DeepEqual(known, d) {
		return
	}
	p.state.Drones[d.ID] = d
	if m := p.book.positions[d.ID]; m != nil && !m.position.MeasuredAt.After(d.LastUpdate) {
		p.book.dropMove(d.ID)
	}
	v := &Version{Key: Key{KindDrone, string(d.ID)}, form: entity.OfLiveDrone(d), depot: d.HomeDepotID}
	if d.Heard() {
		v.at = here(d.Position)
	}
	p.book.put(v)
	if m, flies := p.state.Missions[d.CurrentMissionID]; flies && (known.CurrentMissionID != m.ID || known.MissionAcked != d.MissionAcked) {
		p.showMission(m) // its drone has confirmed it
	}
}

// moveDrone shows a drone. If it has only moved, its position is all that is shown anew.
func (p *picture) moveDrone(d domain.Drone) {
	was, is := p.state.Drones[d.ID]
	if !is || !d.LastUpdate.After(was.LastUpdate) {
		p.putDrone(d)
		return
	}
	was.Position, was.Battery, was.SpeedKmh, was.Motion, was.LastUpdate, was.SeenAt = d.Position, d.Battery, d.SpeedKmh, d.Motion, d.LastUpdate, d.SeenAt
	was.DueAt, was.Track, was.FlightSeconds = d.DueAt, d.Track, d.FlightSeconds
	if !reflect.DeepEqual(was, d) {
		p.putDrone(d)
		return
	}
	p.state.Drones[d.ID] = d
	p.book.moveTo(&Position{Drone: d.ID, At: d.Position, Battery: d.Battery, Status: d.ReportedStatus, MeasuredAt: d.LastUpdate, foretold: true})
}

// putCycles shows cycles. If whole, the listener has no others than these; it has those of the depots
// that are its own.
func (p *picture) putCycles(now []domain.Cycle, gone []string, whole bool, own func(domain.DepotID) bool) {
	if whole {
		maps.DeleteFunc(p.recent, func(id domain.CycleID, _ bool) bool { return own(p.state.Cycles[id].DepotID) })
	}
	for _, c := range now {
		p.recent[c.ID] = true
		p.state.Cycles[c.ID] = c
		p.showCycle(c)
	}
	for _, id := range gone {
		delete(p.recent, domain.CycleID(id))
	}
	p.dropCycles()
	p.recountWaits()
}

// putDecisions shows what came of the decisions of cycles.
func (p *picture) putDecisions(now []domain.LedgerEntry) {
	changed := map[domain.CycleID]bool{}
	for _, d := range now {
		if p.ledger.add(d) {
			changed[d.CycleID] = true
		}
	}
	for id := range changed {
		if c, is := p.state.Cycles[id]; is {
			p.showCycle(c)
		}
	}
}

// showCycle shows a cycle.
func (p *picture) showCycle(c domain.Cycle) {
	p.book.put(&Version{
		Key: Key{KindCycle, string(c.ID)}, form: entity.OfJudgedCycle(c, maps.Values(p.ledger[c.ID])),
		depot: c.DepotID, depots: c.DepotIDs,
	})
}

// dropCycles keeps the latest cycles and the last one of each depot, so that a stuck depot still
// shows one.
func (p *picture) dropCycles() {
	last := map[domain.DepotID]domain.Cycle{}
	for _, c := range p.state.Cycles {
		if c.StartedAt.After(last[c.DepotID].StartedAt) {
			last[c.DepotID] = c
		}
	}
	for id, c := range p.state.Cycles {
		if _, is := p.state.Depots[c.DepotID]; p.recent[id] || is && last[c.DepotID].ID == id {
			continue
		}
		delete(p.state.Cycles, id)
		p.book.remove(Key{KindCycle, string(id)}, time.Now())
	}
}

// recountWaits shows the orders that wait for another reason than before.
func (p *picture) recountWaits() {
	latest := map[domain.DepotID]domain.Cycle{}
	for _, c := range p.state.Cycles {
		complete := c.Outcome == domain.CyclePublished || c.Outcome == domain.CycleEmpty
		if complete && !c.StartedAt.Before(latest[c.DepotID].StartedAt) {
			latest[c.DepotID] = c
		}
	}
	before := p.waits
	p.waits = domain.WaitsOf(slices.Collect(maps.Keys(p.state.Depots)), latest)
	for _, o := range p.state.Orders {
		if o.Waits() && !slices.EqualFunc(before.Of(o), p.waits.Of(o), sameReason) {
			p.showOrder(o)
		}
	}
}

// sameReason reports whether two waits give the same reason, whichever cycle found it. Otherwise
// each cycle would send every waiting order to every viewer again.
func sameReason(a, b domain.Wait) bool {
	return a.DepotID == b.DepotID && a.Reason == b.Reason && a.Obstacles == b.Obstacles
}

// putLocks shows the locks that are held, and removes those that are not.
func (p *picture) putLocks(locks []lock.RawInfo, known []string) {
	held := map[string]bool{}
	for _, l := range entity.OfLocks(locks, slices.Collect(maps.Keys(p.state.Depots)), known) {
		held[l.KeyHash] = true
		p.book.put(&Version{Key: Key{KindLock, l.KeyHash}, form: l, depot: l.DepotID})
	}
	for k, e := range p.book.entries {
		if k.Kind == KindLock && e.version != nil && !held[k.ID] {
			p.book.remove(k, time.Now())
		}
	}
}

// putAcks notes acknowledgements. One that is no longer among the latest still counts.
func (p *picture) putAcks(now []domain.AlertAck, whole bool) {
	if whole {
		clear(p.acks)
	}
	for _, a := range now {
		p.acks[a.ID] = entity.OfAcknowledgement(a)
	}
}

// move shows where a drone is, if the report is newer than what is shown. The first report
// of an unknown drone changes its state, so an event tells of it.
func (p *picture) move(t domain.Telemetry) {
	d, known := p.state.Drones[t.DroneID]
	m := p.book.positions[t.DroneID]
	if known && t.Timestamp.After(d.LastUpdate) && (m == nil || t.Timestamp.After(m.position.MeasuredAt)) {
		p.book.moveTo(&Position{Drone: t.DroneID, At: t.Position, Battery: t.Battery, Status: t.Status, MeasuredAt: t.Timestamp})
	}
}

// drop removes a drone, order, mission or cycle.
func (p *picture) drop(k Key) {
	delete(p.state.Drones, domain.DroneID(ifKind(k, KindDrone)))
	delete(p.state.Orders, domain.OrderID(ifKind(k, KindOrder)))
	delete(p.state.Arrivals, domain.OrderID(ifKind(k, KindOrder)))
	delete(p.state.Missions, domain.MissionID(ifKind(k, KindMission)))
	delete(p.state.Cycles, domain.CycleID(ifKind(k, KindCycle)))
	delete(p.recent, domain.CycleID(ifKind(k, KindCycle)))
	p.book.remove(k, time.Now())
}

func ifKind(k Key, kind Kind) string {
	if k.Kind == kind {
		return k.ID
	}
	return ""
}

// dropEnded drops what has been over for long.
func (p *picture) dropEnded(now time.Time) {
	for id, o := range p.state.Orders {
		if o.Status.Final() && now.Sub(latest(o.DeliveredAt, o.CreatedAt)) > keepEnded {
			p.drop(Key{KindOrder, string(id)})
		}
	}
	for id, m := range p.state.Missions {
		if m.Status != domain.MissionActive && now.Sub(latest(m.EndTime, m.StartTime)) > keepEnded {
			p.drop(Key{KindMission, string(id)})
		}
	}
	for id, at := range p.state.PickedUpAgain {
		if now.Sub(at) > keepEnded {
			delete(p.state.PickedUpAgain, id)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// showAlerts shows the alerts that begin or change, and removes those that are over.
func (p *picture) showAlerts(now time.Time, patience time.Duration) {
	current := map[string]bool{}
	for _, a := range Alerts(&p.state, now, patience) {
		id := a.ID()
		current[id] = true
		if a.Since.IsZero() {
			if a.Since = p.alerts[id]; a.Since.IsZero() {
				a.Since = now
			}
		}
		p.alerts[id] = a.Since
		form := p.alertForm(a)
		k := Key{KindAlert, id}
		if e := p.book.entries[k]; e != nil && e.version != nil && e.version.alert == form {
			continue
		}
		about := p.shown(a.About)
		p.book.put(&Version{Key: k, form: form, alert: form, depot: about.depot, plans: about.plans})
	}
	for id := range p.alerts {
		if !current[id] {
			delete(p.alerts, id)
			p.book.remove(Key{KindAlert, id}, time.Now())
		}
	}
}

// alertForm is the JSON form of an alert, with who has taken note of it.
func (p *picture) alertForm(a Alert) entity.Alert {
	id := a.ID()
	return entity.Alert{
		ID: id, Kind: string(a.Kind), Entity: entity.Reference{Kind: string(a.About.Kind), ID: a.About.ID}, Since: a.Since.UTC(), Text: a.Text,
		Rank: a.Rank, Urgent: a.Urgent(), Cause: a.Cause, Acknowledged: p.acks[id],
	}
}

// shown is the version of an entity that is shown; a zero one for none.
func (p *picture) shown(k Key) *Version {
	if e := p.book.entries[k]; e != nil && e.version != nil {
		return e.version
	}
	return &Version{}
}
