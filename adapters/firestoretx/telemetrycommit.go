package firestoretx

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// maxParts bounds the commits into which one that failed is divided.
const maxParts = 16

// commitGuarded writes changes in one commit without a read, each guarded by the cached version of
// its drone's document. If a version has moved on or the server refuses a change, nothing is
// written, and the server does not say which one. The commit is then divided, twice for the
// largest, until only the drones at fault are outdated: these must be read (F-POS-04).
func (a *TelemetryApplier) commitGuarded(ctx context.Context, changes []folded) (verdicts []verdict, outdated []droneReports) {
	var parts [][]folded
	if len(changes) > 0 {
		parts = [][]folded{changes}
	}
	for len(parts) > 0 {
		var divided [][]folded
		for i, c := range a.commitParts(ctx, parts) {
			part := parts[i]
			switch {
			case c.err == nil:
				verdicts = append(verdicts, a.committed(part, c)...)
			case !c.moved && Retryable(c.err):
				verdicts = append(verdicts, a.failed(reportsOf(part), c.err)...)
			case len(part) == 1:
				outdated = append(outdated, part[0].droneReports)
			default:
				divided = slices.AppendSeq(divided, slices.Chunk(part, (len(part)+maxParts-1)/maxParts))
			}
		}
		parts = divided
	}
	return verdicts, outdated
}

// partCommit is what became of a guarded commit.
type partCommit struct {
	results []*firestore.WriteResult
	began   time.Time
	err     error
	moved   bool // a document is not the one that is cached
}

// commitParts commits each part on its own, at most maxParts at a time.
func (a *TelemetryApplier) commitParts(ctx context.Context, parts [][]folded) []partCommit {
	commits := make([]partCommit, len(parts))
	var group errgroup.Group
	group.SetLimit(maxParts)
	for i, part := range parts {
		batch := a.batch(part)
		commits[i].began = a.store.now()
		group.Go(func() error {
			c := &commits[i]
			c.results, c.err = batch.Commit(ctx)
			code := status.Code(c.err)
			c.moved = code == codes.FailedPrecondition || code == codes.NotFound
			return nil
		})
	}
	_ = group.Wait() // each part has an error of its own
	for _, c := range commits {
		if c.moved {
			a.store.conflicted(ctx)
		}
	}
	return commits
}

//lint:ignore SA1019 see below
func (a *TelemetryApplier) batch(changes []folded) *firestore.WriteBatch {
	//lint:ignore SA1019 the only atomic write with preconditions that needs no transaction
	batch := a.store.client.Batch()
	for _, c := range changes {
		k := a.known[c.id]
		batch.Update(a.store.doc(Drones, string(c.id)), droneCodec.updates(k.written, c.after.Drone), firestore.LastUpdateTime(k.version))
	}
	for _, c := range changes {
		for _, e := range c.change.Events {
			batch.Create(a.store.client.Collection(Events).NewDoc(), a.store.encodeEvent(e))
		}
	}
	return batch
}

// committed notes what was written, and returns the verdicts.
func (a *TelemetryApplier) committed(changes []folded, c partCommit) []verdict {
	now := a.store.now()
	for i, change := range changes {
		a.server.heard(c.results[i].UpdateTime, c.began)
		a.known.put(change.after, c.results[i].UpdateTime, now)
	}
	return verdictsOf(reportsOf(changes))
}

func reportsOf(changes []folded) []droneReports {
	drones := make([]droneReports, len(changes))
	for i, c := range changes {
		drones[i] = c.droneReports
	}
	return drones
}

// readAndCommit applies the reports of drones in one transaction. If the server refuses it, it
// retries with ever fewer drones, so that one bad drone fails alone.
func (a *TelemetryApplier) readAndCommit(ctx context.Context, drones []droneReports) []verdict {
	if len(drones) == 0 {
		return nil
	}
	judged, err := a.transact(ctx, drones)
	switch {
	case err == nil:
		return verdictsOf(judged)
	case len(drones) > 1 && !Retryable(err) && ctx.Err() == nil:
		half := len(drones) / 2
		return append(a.readAndCommit(ctx, judged[:half]), a.readAndCommit(ctx, judged[half:])...)
	}
	return a.failed(judged, err)
}

// transact reads drones with their missions and orders, folds their reports and commits. A drone
// whose document is malformed fails alone. Beside an error it returns the verdicts of the drones
// that could be read; they hold only if a commit succeeds.
func (a *TelemetryApplier) transact(ctx context.Context, drones []droneReports) ([]droneReports, error) {
	var resp firestore.CommitResponse
	var read time.Time
	var changes []folded
	var strangers int64
	judged := slices.Clone(drones)
	began := a.store.now()
	err := a.store.transact(ctx, &resp, func(t *txn) error {
		changes, strangers = nil, 0
		copy(judged, drones)
		if err := t.readBindings(drones); err != nil {
			return err
		}
		read = t.read
		for i, d := range drones {
			if malformed := t.drones[d.id].err; malformed != nil {
				delete(a.known, d.id)
				judged[i] = d.failed(malformed)
				continue
			}
			if !t.drones[d.id].exists {
				if err := a.store.checkStranger(ctx, d.id); err != nil {
					if _, refused := policy.ReasonOf(err); !refused {
						return err
					}
					judged[i] = d.refused(err)
					continue
				}
				strangers++
			}
			f := d.fold(a.store.drone, a.known.catchUp(t.binding(d.id)), t.read, t.now)
			f.read = t.drones[d.id].Drone
			if err := t.write(f.change); err != nil {
				return err
			}
			judged[i], changes = f.droneReports, append(changes, f)
		}
		return nil
	})
	if err != nil {
		return judged, err
	}
	a.server.heard(read, began)
	a.server.heard(resp.CommitTime(), began)
	a.store.strangers.add(strangers)
	now := a.store.now()
	for _, c := range changes {
		if c.change.Drone != nil {
			a.known.noteOthers(c.read, now)
			a.known.put(c.after, resp.CommitTime(), now)
		}
	}
	return judged, nil
}

// readBindings reads drones and the missions and orders of those that are bound.
func (t *txn) readBindings(drones []droneReports) error {
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

// failed has drones read next whose changes did not commit, and returns their verdicts. What reports
// said that were not due stays known.
func (a *TelemetryApplier) failed(drones []droneReports, err error) (verdicts []verdict) {
	for _, d := range drones {
		if k, known := a.known[d.id]; known {
			k.mustRead = true
		}
		verdicts = append(verdicts, d.failed(err).verdicts...)
	}
	return verdicts
}

func verdictsOf(drones []droneReports) (verdicts []verdict) {
	for _, d := range drones {
		verdicts = append(verdicts, d.verdicts...)
	}
	return verdicts
}
