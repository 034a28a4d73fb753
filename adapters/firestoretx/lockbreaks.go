package firestoretx

import (
	"context"

	"github.com/dronefleet/dronefleet/domain"
)

// RecordLockBreak stores that an operator breaks a lock, at this moment. The record
// is kept for ever; there are few.
//
// Cost: 1 RPC, 1 write.
func (s *Store) RecordLockBreak(ctx context.Context, b domain.LockBreak) error {
	b.BrokenAt = s.now()
	_, err := s.client.Collection(LockBreaks).NewDoc().Create(ctx, lockBreakCodec.encode(b))
	return wrap(err, "record the break of a lock")
}

// LockBreaks lists the locks that operators broke, in no particular order.
func (s *Store) LockBreaks(ctx context.Context) ([]domain.LockBreak, error) {
	list, err := collect(s.client.Collection(LockBreaks).Documents(ctx), lockBreakCodec.decode)
	return list, wrap(err, "broken locks")
}
