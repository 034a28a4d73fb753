package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// snapshotEndpoints show the fleet at one moment.
func (a *API) snapshotEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/optimizer/snapshot", role: viewer, summary: "Read what a solve cycle of a depot would see now.",
			parameters: []parameter{depot}, answer: writesA("application/json", wire.SnapshotSchema(), a.snapshot),
		},
		{method: get, path: "/api/v1/snapshot", role: viewer, summary: "Read the fleet as it was at a past time.", parameters: []parameter{pastTime}, answer: writes(a.past)},
		{
			method: get, path: "/api/v1/replay", role: viewer, summary: "Read how the fleet went on in a past interval, as a sequence of moments.",
			parameters: []parameter{replayFrom, replayTo, replayStep}, answer: writes(a.replay),
		},
	}
}

var depot = parameter{name: "depot", says: "Which depot; required if there are several.", example: "DEPOT-1", schema: schema{"type": "string"}, wrong: checked(domain.CheckID)}

// snapshot answers GET /api/v1/optimizer/snapshot?depot= with what a solve cycle of
// the depot would see now, as an OptimizationSnapshot in protobuf's JSON form.
// depot may be left out when there is only one.
//
// It takes no lock, so the snapshot has no fence. An optimizer that uses it must take the depot's
// lock first and send its fence, unless decisions without a fence are allowed. A decision should
// repeat session_id as cycle_id and read_time as snapshot_time.
//
// Cost: 7 RPCs; a read per depot, idle drone, pending order and warehouse.
func (a *API) snapshot(ctx context.Context, r *request) (any, error) {
	depot, err := a.depotOf(ctx, domain.DepotID(r.value("depot")))
	if err != nil {
		return nil, err
	}
	snap, err := a.store.Snapshot(ctx, firestoretx.SnapshotRequest{
		Depot: depot, Limits: a.limits,
		OnMalformed: func(err error) {
			a.log.ErrorContext(ctx, "document left out of the snapshot; correct it", slog.Any("err", err))
		},
	})
	if err != nil {
		return nil, err
	}
	snap.CycleID = domain.CycleID(a.newID())
	return wire.MarshalSnapshot(snap)
}

// depotOf is the depot that was asked for or, if none was, the only one there is. A
// depot whose document cannot be decoded may be the one that was meant.
func (a *API) depotOf(ctx context.Context, wanted domain.DepotID) (domain.DepotID, error) {
	depots, err := a.store.Depots(ctx)
	if err != nil {
		return "", err
	}
	ids := make([]domain.DepotID, len(depots.Items))
	for i, d := range depots.Items {
		ids[i] = d.ID
	}
	malformed := errors.Join(depots.Malformed...)
	if malformed != nil {
		a.log.ErrorContext(ctx, "depot left out; correct its document", slog.Any("err", malformed))
	}
	switch {
	case slices.Contains(ids, wanted):
		return wanted, nil
	case malformed != nil && (wanted != "" || len(ids) == 0):
		return "", malformed
	case len(ids) == 0:
		return "", problem(http.StatusNotFound, "the fleet has no depot; add a document to depots first")
	case wanted == "" && len(ids) == 1:
		return ids[0], nil
	case wanted == "":
		return "", badParameter("depot", "is missing; give %s", oneOf(ids))
	}
	p := badParameter("depot", "does not exist; give %s", oneOf(ids))
	p.Status, p.Title = http.StatusNotFound, http.StatusText(http.StatusNotFound)
	return "", p
}
