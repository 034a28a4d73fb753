package firestoretx

import (
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// droneReports are the reports of one drone in a batch, oldest first.
type droneReports struct {
	id      domain.DroneID
	reports []report
}

// report is one report and its outcome so far.
type report struct {
	domain.Telemetry
	place int // in the batch
	err   error
	// past says that the report names another mission than the one that holds its
	// drone: perhaps one that is over, about which it may prove something.
	past bool
}

// groupByDrone sorts a batch by drone and timestamp. Timestamps are cut to what
// Firestore keeps; otherwise a redelivery would look newer.
func groupByDrone(batch []domain.Telemetry) []*droneReports {
	byID := map[domain.DroneID]*droneReports{}
	var drones []*droneReports
	for i, t := range batch {
		t.Timestamp = t.Timestamp.Truncate(time.Microsecond)
		d := byID[t.DroneID]
		if d == nil {
			d = &droneReports{id: t.DroneID}
			byID[t.DroneID], drones = d, append(drones, d)
		}
		d.reports = append(d.reports, report{Telemetry: t, place: i})
	}
	slices.SortFunc(drones, func(a, b *droneReports) int { return strings.Compare(string(a.id), string(b.id)) })
	for _, d := range drones {
		slices.SortStableFunc(d.reports, func(a, b report) int { return a.Timestamp.Compare(b.Timestamp) })
	}
	return drones
}

// outcomes lists the error of each of n reports in the order of their batch.
func outcomes(drones []*droneReports, n int) []error {
	errs := make([]error, n)
	for _, d := range drones {
		for _, r := range d.reports {
			errs[r.place] = r.err
		}
	}
	return errs
}

// fold applies the reports to the drone's binding and notes each one's outcome,
// which holds if the change commits. server is the server's time, by which a
// report is too far ahead; the change takes place at now.
func (d *droneReports) fold(p policy.DronePolicy, binding policy.Binding, server, now time.Time) (policy.Binding, policy.Change) {
	var all policy.Change
	for i := range d.reports {
		r := &d.reports[i]
		if r.err = p.CheckTime(r.Telemetry, server); r.err != nil {
			continue
		}
		r.past = r.MissionID != "" && r.MissionID != binding.Drone.CurrentMissionID
		next, change, err := p.ApplyTelemetry(binding, r.Telemetry, now)
		r.err = err
		if err == nil {
			binding, all = next, all.Merge(change)
		}
	}
	return binding, all
}

// doubtRefusals takes back refusals for a revision, or a number of stops, that the fold
// knew nothing of, and reports whether there were any: decisions do not update the cache.
func (d *droneReports) doubtRefusals() (doubted bool) {
	for i := range d.reports {
		r := &d.reports[i]
		if reason, _ := policy.ReasonOf(r.err); reason == policy.ReasonUnknownRevision || reason == policy.ReasonTooManyStops {
			r.err, doubted = nil, true
		}
	}
	return doubted
}

// fail gives every report that the fold did not reject the error that kept the
// change from committing. A report that is stale only beside an accepted one of
// the batch fails too: acked, it would settle a message, perhaps the second
// delivery of that one, whose effect was not committed. So does a stale one that may
// prove something about a mission of which the fold knew nothing.
func (d *droneReports) fail(err error) {
	err = wrap(err, "telemetry of drone %s", d.id)
	accepted := false // an earlier report, which is not committed
	for i := range d.reports {
		r := &d.reports[i]
		reason, rejected := policy.ReasonOf(r.err)
		if !rejected || (accepted || r.past) && reason == policy.ReasonStaleTelemetry {
			r.err = err
		}
		accepted = accepted || !rejected
	}
}
