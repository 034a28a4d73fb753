package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// snapshot answers GET /api/v1/optimizer/snapshot?depot= with what a solve cycle
// of the depot would see now, as an OptimizationSnapshot in protobuf's JSON
// form. depot may be left out when there is only one.
//
// It takes no lock, so it carries no fence: decisions made from it compete with
// those of the fleet's own cycles, and the first to commit wins. A decision
// should repeat session_id as cycle_id and read_time as snapshot_time.
//
// Cost: 7 RPCs; a read per depot, idle drone, pending order and warehouse.
func (a *API) snapshot(ctx context.Context, r *http.Request) (any, error) {
	q, err := parameters(r, "depot")
	if err != nil {
		return nil, err
	}
	depot, err := a.depotOf(ctx, q)
	if err != nil {
		return nil, err
	}
	offered := policy.DefaultMissionAssignmentPolicy()
	snap, err := a.store.Snapshot(ctx, firestoretx.SnapshotRequest{
		Depot: depot, MinBattery: offered.MinBattery, MaxSilence: offered.MaxSilence,
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
