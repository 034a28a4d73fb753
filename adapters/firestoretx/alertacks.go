package firestoretx

import (
	"context"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// AcknowledgeAlert records that somebody has taken note of an alert, and returns the
// record. If one exists, it returns that and a *policy.Rejection.
//
// Cost: 3 RPCs, 1 read, 1 write.
func (s *Store) AcknowledgeAlert(ctx context.Context, ack domain.AlertAck) (now domain.AlertAck, err error) {
	err = s.transact(ctx, nil, func(t *txn) error {
		ref := s.doc(AlertAcks, ack.ID)
		snaps, err := t.get(ref)
		if err != nil {
			return err
		}
		var known *domain.AlertAck
		if snaps[0].Exists() {
			a, err := alertAckCodec.decode(snaps[0])
			if err != nil {
				return err
			}
			known = &a
		}
		if now, err = policy.AcknowledgeAlert(known, ack, t.now); err != nil {
			return err
		}
		doc := alertAckCodec.encode(now)
		doc[expireAt] = t.now.Add(s.retention)
		return t.Create(ref, doc)
	})
	return now, wrap(err, "acknowledgement")
}
