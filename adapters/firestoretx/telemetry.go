package firestoretx

import (
	"context"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// TelemetryApplier commits reports of many drones together. It remembers what
// its last commit of each drone left, so that the next report of a drone that
// moved or changed its status costs no read: one commit, guarded by the
// document's version. Whatever touches a mission or an order, or fails that
// guard, goes through a transaction.
//
// An applier is not safe for concurrent use. Give each shard of drones its own,
// so that a process never conflicts with itself.
type TelemetryApplier struct {
	store  *Store
	known  map[domain.DroneID]known
	server serverTime
}

// known is a drone's binding as of one version of its document.
type known struct {
	binding policy.Binding
	version time.Time
	used    time.Time
}

// serverTime is what an answer told of the server's clock: between earliest and
// latest when the local clock showed local.
type serverTime struct{ earliest, latest, local time.Time }

// trustFor is how long, by the local clock, what an answer told of the server's
// time may judge a report without asking. The local clock may be set meanwhile.
const trustFor = 10 * time.Second

// atLeast is the earliest that the server's clock may show when the local one
// shows now.
func (s serverTime) atLeast(now time.Time) time.Time {
	if passed := now.Sub(s.local); 0 <= passed && passed <= trustFor {
		return s.earliest.Add(passed)
	}
	return s.earliest
}

// atMost is the latest that the server's clock may show when the local one shows
// now; false if the last answer is too long ago to tell.
func (s serverTime) atMost(now time.Time) (time.Time, bool) {
	passed := atMostBetween(s.local, now)
	return s.latest.Add(passed), 0 <= passed && passed <= trustFor
}

// atMostBetween is the longest that it may be between two moments of the local
// clock. Where it has a monotonic reading, that one stands still while the
// machine sleeps, and only the wall clock tells.
func atMostBetween(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// heard takes note of a time that the server gave in an answer to what began
// when the local clock showed began.
func (a *TelemetryApplier) heard(server, began time.Time) {
	now := a.store.now()
	if server.IsZero() || server.Before(a.server.earliest) {
		return
	}
	a.server = serverTime{earliest: server, latest: server.Add(max(0, atMostBetween(began, now))), local: now}
}

// later is the local time now, or the server's as far as the applier knows it if
// that is ahead.
func (a *TelemetryApplier) later(now time.Time) time.Time {
	if server := a.server.earliest.Add(max(0, now.Sub(a.server.local))); server.After(now) {
		return server
	}
	return now
}

// tooFarAhead reports whether the report is certainly too far ahead of the
// server when the local clock shows now.
func (a *TelemetryApplier) tooFarAhead(t domain.Telemetry, now time.Time) bool {
	server, known := a.server.atMost(now)
	return known && a.store.drone.CheckTime(t, server) != nil
}

// doubtful reports whether only the server can tell if the report is too far
// ahead of it. The local clock alone refuses none, since what was refused is not
// sent again, and accepts none, since all that its drone reports until then
// would be stale.
func (a *TelemetryApplier) doubtful(t domain.Telemetry, now time.Time) bool {
	return a.store.drone.CheckTime(t, a.server.atLeast(now)) != nil && !a.tooFarAhead(t, now)
}

// forgetAfter is how long an applier remembers a drone that says nothing.
const forgetAfter = 10 * time.Minute

// NewTelemetryApplier returns an applier that knows nothing yet.
func (s *Store) NewTelemetryApplier() *TelemetryApplier {
	return &TelemetryApplier{store: s, known: map[domain.DroneID]known{}}
}

// Urgent reports whether t changes more than its drone's whereabouts (a status,
// a binding, a stop), as far as this applier knows, and so should not wait for
// others to share its commit.
func (a *TelemetryApplier) Urgent(t domain.Telemetry) bool {
	k, ok := a.known[t.DroneID]
	if !ok {
		return true
	}
	now := a.store.now()
	_, change, err := a.store.drone.ApplyTelemetry(k.binding, t, a.later(now))
	return err == nil && !change.OnlyDrone() && !a.tooFarAhead(t, now)
}

// Apply folds reports, in the order of their timestamps, into their drones. It
// answers one error per report, in the order of reports: nil when its effect
// is committed, a *policy.Rejection when it changes nothing, or the failure
// that kept it from committing; a failure of one drone's document does not
// touch the others. A report is too far ahead by the server's clock, whatever the
// local one shows.
//
// Cost: 1 RPC, and a write per drone and event, when nothing but drones changed;
// otherwise a transaction of 3 RPCs, or 5 when a bound drone's mission must be
// read. A report that may be too far ahead asks the server in such a transaction,
// at most every ten seconds while nothing else does.
func (a *TelemetryApplier) Apply(ctx context.Context, reports []domain.Telemetry) []error {
	errs := make([]error, len(reports))
	reports = slices.Clone(reports)
	for i := range reports {
		// As Firestore will keep it; otherwise a redelivery would look newer.
		reports[i].Timestamp = reports[i].Timestamp.Truncate(time.Microsecond)
	}
	byDrone := map[domain.DroneID][]int{}
	for i, t := range reports {
		byDrone[t.DroneID] = append(byDrone[t.DroneID], i)
	}
	for _, list := range byDrone {
		slices.SortStableFunc(list, func(i, j int) int { return reports[i].Timestamp.Compare(reports[j].Timestamp) })
	}
	b := &telemetryBatch{applier: a, reports: reports, byDrone: byDrone, errs: errs}

	alone, rest := b.fold(slices.Sorted(maps.Keys(byDrone)))
	if len(alone) > 0 && !b.commitAlone(ctx, alone) {
		rest = append(rest, alone.drones()...)
	}
	b.commit(ctx, rest)
	return errs
}

// telemetryBatch is one call of Apply.
type telemetryBatch struct {
	applier *TelemetryApplier
	reports []domain.Telemetry
	byDrone map[domain.DroneID][]int // indices of reports, oldest first
	errs    []error
}

// soloChanges are changes of drones that touch no mission and no order.
type soloChanges []soloChange

type soloChange struct {
	before known
	after  policy.Binding
	events []domain.Event
}

func (m soloChanges) drones() []domain.DroneID {
	ids := make([]domain.DroneID, len(m))
	for i := range m {
		ids[i] = m[i].before.binding.Drone.ID
	}
	return ids
}

// fold tries the reports of each drone on what is known of it. It returns the
// drones that change alone and those that need a transaction. Drones whose
// reports are all rejected need nothing: what is known is never newer than
// what is stored, so stale stays stale, and a report that is too far ahead is so
// by the latest that the server's clock may show.
func (b *telemetryBatch) fold(drones []domain.DroneID) (soloChanges, []domain.DroneID) {
	var alone soloChanges
	var rest []domain.DroneID
	a := b.applier
	now := a.store.now() // one for all that is judged by it
	for _, id := range drones {
		k, ok := a.known[id]
		if !ok || slices.ContainsFunc(b.byDrone[id], func(i int) bool { return a.doubtful(b.reports[i], now) }) {
			rest = append(rest, id)
			continue
		}
		after, change := b.apply(id, k.binding, a.server.atLeast(now), a.later(now))
		switch {
		case change.Empty():
		case change.WithinDrone() && !becomesIdle(k.binding.Drone, after.Drone):
			alone = append(alone, soloChange{before: k, after: after, events: change.Events})
		default:
			rest = append(rest, id)
		}
	}
	return alone, rest
}

// becomesIdle reports whether the moment of the change decides which decisions
// about the drone still hold. That moment must be the server's, which only a
// transaction learns.
func becomesIdle(before, after domain.Drone) bool { return !before.IdleSince.Equal(after.IdleSince) }

// apply folds one drone's reports into its binding and notes each one's fate,
// as it will be if the change commits. server is the server's time, by which a
// report is too far ahead; the change takes place at now.
func (b *telemetryBatch) apply(id domain.DroneID, binding policy.Binding, server, now time.Time) (policy.Binding, policy.Change) {
	drone := b.applier.store.drone
	var all policy.Change
	for _, i := range b.byDrone[id] {
		if b.errs[i] = drone.CheckTime(b.reports[i], server); b.errs[i] != nil {
			continue
		}
		next, change, err := drone.ApplyTelemetry(binding, b.reports[i], now)
		b.errs[i] = err
		if err == nil {
			binding, all = next, all.Merge(change)
		}
	}
	return binding, all
}

// fail gives all reports of the drones the same error, whatever the policy said
// of them, except those that are rejected anyway. Not so is the second delivery
// of a message, which is stale only beside the first: its ack would settle the
// message, whose effect was not committed.
func (b *telemetryBatch) fail(drones []domain.DroneID, err error) {
	for _, id := range drones {
		delete(b.applier.known, id)
		accepted := false // an earlier report, which is not committed
		for _, i := range b.byDrone[id] {
			reason, rejected := policy.ReasonOf(b.errs[i])
			if !rejected || accepted && reason == policy.ReasonStaleTelemetry {
				b.errs[i] = wrap(err, "telemetry of drone %s", id)
			}
			accepted = accepted || !rejected
		}
	}
}

// commitAlone writes drones and their events in one commit, each drone guarded
// by the version it rests on. It answers false when some version has moved on
// and nothing was written.
func (b *telemetryBatch) commitAlone(ctx context.Context, alone soloChanges) bool {
	a := b.applier
	//lint:ignore SA1019 the only atomic write with preconditions that needs no transaction
	batch := a.store.client.Batch()
	for _, m := range alone {
		ref := a.store.doc(Drones, string(m.after.Drone.ID))
		batch.Update(ref, droneCodec.updates(m.before.binding.Drone, m.after.Drone), firestore.LastUpdateTime(m.before.version))
	}
	for _, m := range alone {
		for _, e := range m.events {
			batch.Create(a.store.client.Collection(Events).NewDoc(), a.store.encodeEvent(e))
		}
	}
	began := a.store.now()
	results, err := batch.Commit(ctx)
	if err != nil {
		st, _ := statusOf(err)
		outdated := st.Code() == codes.FailedPrecondition || st.Code() == codes.NotFound
		if outdated {
			a.store.conflicted(ctx)
		}
		if outdated || !Retryable(err) {
			return false
		}
		b.fail(alone.drones(), err)
		return true
	}
	now := a.store.now()
	for i, m := range alone {
		a.heard(results[i].UpdateTime, began)
		a.known[m.after.Drone.ID] = known{binding: m.after, version: results[i].UpdateTime, used: now}
	}
	return true
}

// commit applies the reports of drones in one transaction, and in ever smaller
// ones if the server refuses it, so that one bad drone stands alone.
func (b *telemetryBatch) commit(ctx context.Context, drones []domain.DroneID) {
	if len(drones) == 0 {
		return
	}
	a := b.applier
	after := map[domain.DroneID]policy.Binding{}
	var malformed map[domain.DroneID]error
	var resp firestore.CommitResponse
	var read time.Time
	began := a.store.now()
	err := a.store.transact(ctx, &resp, func(t *txn) error {
		clear(after)
		defer func() { read = t.read }()
		malformed = map[domain.DroneID]error{}
		if err := t.readDrones(drones...); err != nil {
			return err
		}
		var missions []domain.MissionID
		for _, id := range drones {
			if d := t.drones[id]; d.Bound() {
				missions = append(missions, d.CurrentMissionID)
			}
		}
		if err := t.readMissions(missions...); err != nil {
			return err
		}
		for _, id := range drones {
			if err := t.drones[id].err; err != nil {
				malformed[id] = err
				continue
			}
			next, change := b.apply(id, t.binding(id), t.read, t.now)
			if err := t.write(change); err != nil {
				return err
			}
			if change.Drone != nil {
				after[id] = next
			}
		}
		return nil
	})
	if err != nil {
		if len(drones) > 1 && !Retryable(err) && ctx.Err() == nil {
			half := len(drones) / 2
			b.commit(ctx, drones[:half])
			b.commit(ctx, drones[half:])
			return
		}
		b.fail(drones, err)
		return
	}
	a.heard(read, began)
	a.heard(resp.CommitTime(), began)
	now := a.store.now()
	for id, binding := range after {
		a.known[id] = known{binding: binding, version: resp.CommitTime(), used: now}
	}
	for id, err := range malformed {
		b.fail([]domain.DroneID{id}, err)
	}
}

// Forget drops drones that have been silent for long; call it now and then.
func (a *TelemetryApplier) Forget() {
	now := a.store.now()
	maps.DeleteFunc(a.known, func(_ domain.DroneID, k known) bool { return now.Sub(k.used) > forgetAfter })
}
