package firestoretx

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// guardedChange is a change of one drone that needs no read: the drone's fields
// and events, valid for one version of its document.
type guardedChange struct {
	reports *droneReports
	before  *cachedBinding
	after   policy.Binding
	events  []domain.Event
}

// commitGuarded writes changes in one commit without a read, each guarded by the
// version that it rests on. It answers false if nothing was written because some
// version has moved on, or because the server refused one of the changes.
func (a *TelemetryApplier) commitGuarded(ctx context.Context, changes []guardedChange) bool {
	if len(changes) == 0 {
		return true
	}
	//lint:ignore SA1019 the only atomic write with preconditions that needs no transaction
	batch := a.store.client.Batch()
	for _, c := range changes {
		ref := a.store.doc(Drones, string(c.reports.id))
		batch.Update(ref, droneCodec.updates(c.before.binding.Drone, c.after.Drone), firestore.LastUpdateTime(c.before.version))
	}
	for _, c := range changes {
		for _, e := range c.events {
			batch.Create(a.store.client.Collection(Events).NewDoc(), a.store.encodeEvent(e))
		}
	}
	began := a.store.now()
	results, err := batch.Commit(ctx)
	if err != nil {
		return a.guardFailed(ctx, changes, err)
	}
	now := a.store.now()
	for i, c := range changes {
		a.server.heard(results[i].UpdateTime, began)
		a.known.put(c.after, results[i].UpdateTime, now)
	}
	return true
}

// guardFailed answers whether the failure of a guarded commit is final for this
// attempt; if not, a transaction may succeed.
func (a *TelemetryApplier) guardFailed(ctx context.Context, changes []guardedChange, err error) bool {
	st, _ := statusOf(err)
	outdated := st.Code() == codes.FailedPrecondition || st.Code() == codes.NotFound
	if outdated {
		a.store.conflicted(ctx)
	}
	if outdated || !Retryable(err) {
		return false
	}
	for _, c := range changes {
		a.fail(c.reports, err)
	}
	return true
}

// readAndCommit applies the reports of drones in one transaction, and in ever
// smaller ones if the server refuses it, so that one bad drone fails alone.
func (a *TelemetryApplier) readAndCommit(ctx context.Context, drones []*droneReports) {
	if len(drones) == 0 {
		return
	}
	err := a.transact(ctx, drones)
	switch {
	case err == nil:
	case len(drones) > 1 && !Retryable(err) && ctx.Err() == nil:
		half := len(drones) / 2
		a.readAndCommit(ctx, drones[:half])
		a.readAndCommit(ctx, drones[half:])
	default:
		for _, d := range drones {
			a.fail(d, err)
		}
	}
}

// transact reads drones with their missions and orders, folds their reports and
// commits. A drone whose document is malformed fails alone.
func (a *TelemetryApplier) transact(ctx context.Context, drones []*droneReports) error {
	var resp firestore.CommitResponse
	var read time.Time
	var after []policy.Binding
	var malformed map[*droneReports]error
	began := a.store.now()
	err := a.store.transact(ctx, &resp, func(t *txn) error {
		after, malformed = nil, map[*droneReports]error{}
		if err := t.readBindings(drones); err != nil {
			return err
		}
		read = t.read
		for _, d := range drones {
			if err := t.drones[d.id].err; err != nil {
				malformed[d] = err
				continue
			}
			next, change := d.fold(a.store.drone, t.binding(d.id), t.read, t.now)
			if err := t.write(change); err != nil {
				return err
			}
			if change.Drone != nil {
				after = append(after, next)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.server.heard(read, began)
	a.server.heard(resp.CommitTime(), began)
	now := a.store.now()
	for _, b := range after {
		a.known.put(b, resp.CommitTime(), now)
	}
	for d, err := range malformed {
		a.fail(d, err)
	}
	return nil
}

// readBindings reads drones and the missions and orders of those that are bound.
func (t *txn) readBindings(drones []*droneReports) error {
	ids := make([]domain.DroneID, len(drones))
	for i, d := range drones {
		ids[i] = d.id
	}
	if err := t.readDrones(ids...); err != nil {
		return err
	}
	var missions []domain.MissionID
	for _, id := range ids {
		if d := t.drones[id]; d.Bound() {
			missions = append(missions, d.CurrentMissionID)
		}
	}
	return t.readMissions(missions...)
}

// fail makes a drone's reports fail and forgets what was cached of the drone.
func (a *TelemetryApplier) fail(d *droneReports, err error) {
	delete(a.known, d.id)
	d.fail(err)
}
