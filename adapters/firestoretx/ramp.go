package firestoretx

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	usedFrom    = 25 * time.Hour
	usedUntil   = time.Hour
	rampedSince = 24 * time.Hour
)

// RampBegan is when the ramp of this database began, by its clock: at the first call, unless the database is
// used to its fleet: drones have made as many events yesterday. It is stored, so that all processes have the same.
//
// Cost: 1 RPC, 1 read; the first time 2 RPCs more, at most a read for each 1,000 of those events more, and 1
// write.
func (s *Store) RampBegan(ctx context.Context, usedEvents int) (time.Time, error) {
	ref := s.doc(Control, controlRamp)
	for {
		snaps, err := s.client.GetAll(ctx, []*firestore.DocumentRef{ref})
		if err != nil {
			return time.Time{}, wrap(err, "beginning of the ramp")
		}
		if began, ok := snaps[0].Data()[seenAt].(time.Time); ok {
			return began, nil
		}
		now := snaps[0].ReadTime
		began := now
		if used, err := s.used(ctx, now, usedEvents); err != nil {
			return time.Time{}, wrap(err, "beginning of the ramp")
		} else if used {
			began = now.Add(-rampedSince)
		}
		_, err = ref.Create(ctx, map[string]any{seenAt: began})
		if status.Code(err) != codes.AlreadyExists { // another process was faster
			return began, wrap(err, "beginning of the ramp")
		}
	}
}

// used reports whether drones have flown a day's work in this database.
func (s *Store) used(ctx context.Context, now time.Time, least int) (bool, error) {
	q := s.where(Events, "cause", string(domain.CauseTelemetry)).Where("time", ">=", now.Add(-usedFrom)).Where("time", "<", now.Add(-usedUntil))
	events, err := count(ctx, s.ofShards(q.OrderBy("time", firestore.Desc).Limit(least)))
	return events >= int64(least), err
}
