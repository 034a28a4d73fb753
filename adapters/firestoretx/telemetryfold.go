package firestoretx

import (
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// verdict is a report and its outcome.
type verdict struct {
	domain.Telemetry
	index   int           // of the report in its batch
	err     error         // nil: it is applied, once the change commits
	refused policy.Reason // if err is a rejection
	// past: the report names a mission other than the drone's current one. It may prove
	// stops of a mission that has ended.
	past bool
}

func (v verdict) stale() bool { return v.refused == policy.ReasonStaleTelemetry }

// droneReports are the reports of one drone in a batch, oldest first.
type droneReports struct {
	id       domain.DroneID
	verdicts []verdict
}

// folded is a drone's binding after its reports.
type folded struct {
	droneReports              // their verdicts hold if the change commits
	read         domain.Drone // if the change was folded into a document that was read
	after        policy.Binding
	change       policy.Change
}

// gather sorts a batch by drone and timestamp. It cuts timestamps to Firestore's precision;
// otherwise a redelivery would look newer.
func gather(batch []domain.Telemetry) []droneReports {
	byID := map[domain.DroneID]int{}
	var drones []droneReports
	for i, t := range batch {
		t.Timestamp = t.Timestamp.Truncate(time.Microsecond)
		at, known := byID[t.DroneID]
		if !known {
			at = len(drones)
			byID[t.DroneID], drones = at, append(drones, droneReports{id: t.DroneID})
		}
		drones[at].verdicts = append(drones[at].verdicts, verdict{Telemetry: t, index: i})
	}
	slices.SortFunc(drones, func(a, b droneReports) int { return strings.Compare(string(a.id), string(b.id)) })
	for _, d := range drones {
		slices.SortStableFunc(d.verdicts, func(a, b verdict) int { return a.Timestamp.Compare(b.Timestamp) })
	}
	return drones
}

// foldCached folds the reports of each drone into its cached binding. It returns the verdicts on
// drones whose documents stay, the changes that need no read, and the drones that must be read. The
// cache is ahead of the store at most by reports that are not due. One that is stale beside them
// may not be stale to another process, to which it is as good as any. The server's clock may at
// most be ahead of the time that judges reports.
func (a *TelemetryApplier) foldCached(drones []droneReports) (answered []verdict, changes []folded, unread []droneReports) {
	now := a.store.now() // one for all that is judged by it
	for _, d := range drones {
		k, ok := a.known[d.id]
		if !ok || k.mustRead || a.anyDoubtful(d, now) {
			if ok {
				k.mustRead = false
			}
			unread = append(unread, d)
			continue
		}
		f := d.fold(a.store.drone, k.binding, a.server.atLeast(now), a.server.later(now))
		switch {
		case slices.ContainsFunc(f.verdicts, a.mayBeAccepted):
			unread = append(unread, d) // without the verdicts in doubt
		case f.change.Empty():
			answered = append(answered, f.verdicts...)
		case !a.due(k, f, now):
			k.binding, k.used = f.after, now
			k.binding.Drone.DueAt = k.written.DueAt
			answered = append(answered, f.verdicts...)
		case needsNoRead(&k.binding.Drone, &f.after.Drone, f.change):
			changes = append(changes, f)
		default:
			unread = append(unread, f.droneReports)
		}
	}
	return answered, changes, unread
}

// due reports whether a drone's reports must be written. One that names another mission than the
// cache has is: only the document tells whether a decision came between. So are all of a drone of
// which another process gets reports too.
func (a *TelemetryApplier) due(k *cachedBinding, f folded, now time.Time) bool {
	if now.Before(k.shared) || !f.change.OnlyWhereabouts() || !f.change.WithinDrone() || slices.ContainsFunc(f.verdicts, func(v verdict) bool { return v.past }) {
		return true
	}
	return a.store.drone.PositionDue(&k.written, &k.binding.Drone, &f.after.Drone, f.after.Mission, now)
}

// fold applies the reports to the drone's binding. server, the server's time, decides whether a
// report is too far ahead; the change takes place at now.
func (d droneReports) fold(p policy.DronePolicy, binding policy.Binding, server, now time.Time) folded {
	f := folded{droneReports: droneReports{id: d.id, verdicts: slices.Clone(d.verdicts)}, after: binding}
	for i := range f.verdicts {
		v := &f.verdicts[i]
		v.past = v.MissionID != "" && v.MissionID != f.after.Drone.CurrentMissionID
		if v.err = p.CheckTime(v.Telemetry, server); v.err == nil {
			var change policy.Change
			f.after, change, v.err = p.ApplyTelemetry(f.after, v.Telemetry, now)
			f.change = f.change.Merge(change)
		}
		v.refused, _ = policy.ReasonOf(v.err)
	}
	if f.change.Drone != nil {
		drone := p.Dated(f.after.Drone, f.after.Mission)
		f.after.Drone, f.change.Drone = drone, &drone
	}
	return f
}

// failed are the verdicts when err kept the change from committing. Rejections stay, with two
// exceptions. A report that is stale only because of an accepted one fails too: it may be a second
// delivery of that one, and its ack would lose both. A stale report that may prove stops of another
// mission fails as well.
func (d droneReports) failed(err error) droneReports {
	err = wrap(err, "telemetry of drone %s", d.id)
	d.verdicts = slices.Clone(d.verdicts)
	accepted := false // an earlier report, which is not committed
	for i, v := range d.verdicts {
		if v.refused == "" || (accepted || v.past) && v.stale() {
			d.verdicts[i].err, d.verdicts[i].refused = err, ""
		}
		accepted = accepted || v.refused == ""
	}
	return d
}

// refused are the verdicts when every report is rejected.
func (d droneReports) refused(err error) droneReports {
	d.verdicts = slices.Clone(d.verdicts)
	for i := range d.verdicts {
		d.verdicts[i].err = err
		d.verdicts[i].refused, _ = policy.ReasonOf(err)
	}
	return d
}

// answers lists the errors of n reports in the order of their batch.
func answers(verdicts []verdict, n int) []error {
	errs := make([]error, n)
	for _, v := range verdicts {
		errs[v.index] = v.err
	}
	return errs
}

// mayBeAccepted reports whether the store may accept a report that the cache refuses. Decisions do
// not update the cache, so it may lack the drone's mission or that mission's latest revision.
func (a *TelemetryApplier) mayBeAccepted(v verdict) bool {
	return v.refused == policy.ReasonUnknownRevision || v.refused == policy.ReasonTooManyStops ||
		v.past && v.stale() && !a.ended.holdsNot(v.Telemetry)
}

// needsNoRead reports whether the drone's version is guard enough for a change. The change must not
// touch a mission or an order. It must not alter how long the drone has been idle either: decisions
// depend on that, and only a transaction learns the server's time.
func needsNoRead(before, after *domain.Drone, c policy.Change) bool {
	return c.WithinDrone() && before.IdleSince.Equal(after.IdleSince)
}

// tooFarAhead reports whether the report is certainly too far ahead of the server when
// the local clock shows now.
func (a *TelemetryApplier) tooFarAhead(t domain.Telemetry, now time.Time) bool {
	server, known := a.server.atMost(now)
	return known && a.store.drone.CheckTime(t, server) != nil
}

// anyDoubtful reports whether only the server can tell if one of the reports is too far ahead of
// it. The local clock alone refuses no report, because the drone does not repeat it. It accepts
// none either, because all later reports until then would be stale.
func (a *TelemetryApplier) anyDoubtful(d droneReports, now time.Time) bool {
	return slices.ContainsFunc(d.verdicts, func(v verdict) bool {
		return a.store.drone.CheckTime(v.Telemetry, a.server.atLeast(now)) != nil && !a.tooFarAhead(v.Telemetry, now)
	})
}
