package firestoretx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Records of what operators do to messages, locks and alerts.

// maxDiscardedPayload bounds the bytes kept of a payload. Even with all the attributes that a
// message may have, the document stays below Firestore's 1 MiB.
const maxDiscardedPayload = 512 << 10

// RecordDiscard records that an operator discards a message, with the time and as much of
// the payload as fits. The first record of a message is kept.
//
// Cost: 2 RPCs, 2 writes.
func (s *Store) RecordDiscard(ctx context.Context, d domain.Discard) error {
	sum := sha256.Sum256(d.Payload)
	d.Bytes, d.PayloadHash, d.DiscardedAt = len(d.Payload), hex.EncodeToString(sum[:]), s.now()
	if n := maxDiscardedPayload; len(d.Payload) > n {
		for n > maxDiscardedPayload-utf8.UTFMax && !utf8.RuneStart(d.Payload[n]) {
			n--
		}
		d.Payload = d.Payload[:n]
	}
	doc := discardCodec.encode(d)
	doc[expireAt] = s.expiry(Discards, d.DiscardedAt)
	_, err := s.doc(Discards, string(d.ID)).Create(ctx, doc)
	if status.Code(err) == codes.AlreadyExists {
		err = nil
	}
	if err == nil {
		err = s.decideRefusal(ctx, d.Topic, d.MessageID, domain.RefusalDiscarded, d.DiscardedBy, d.DiscardedAt)
	}
	return wrap(err, "discard %s", d.ID)
}

// Discards lists the messages that operators discarded, in no particular order.
func (s *Store) Discards(ctx context.Context) ([]domain.Discard, error) {
	list, err := collect(s.client.Collection(Discards).Documents(ctx), discardCodec.decode)
	return list, wrap(err, "discards")
}

// RecordReplay stores, at this moment, that a refused message was published again. The
// new ids of earlier replays of the same message are kept.
//
// Cost: 2 RPCs, 2 writes.
func (s *Store) RecordReplay(ctx context.Context, r domain.Replay) error {
	r.ReplayedAt = s.now()
	doc := replayCodec.encode(r)
	again := make([]any, len(r.NewMessageIDs))
	for i, id := range r.NewMessageIDs {
		again[i] = id
	}
	doc["newMessageIds"] = firestore.ArrayUnion(again...)
	doc[expireAt] = s.expiry(Replays, r.ReplayedAt)
	_, err := s.doc(Replays, string(r.ID)).Set(ctx, doc, firestore.MergeAll)
	if err == nil {
		err = s.decideRefusal(ctx, r.Topic, r.MessageID, domain.RefusalReplayed, r.ReplayedBy, r.ReplayedAt)
	}
	return wrap(err, "replay %s", r.ID)
}

// RecordRefusal records that a message was refused for good. The first record of a
// message is kept.
//
// Cost: 1 RPC, 1 write.
func (s *Store) RecordRefusal(ctx context.Context, r domain.Refusal) error {
	doc := refusalCodec.encode(r)
	doc[expireAt] = s.expiry(Refusals, r.RefusedAt)
	_, err := s.doc(Refusals, string(r.ID)).Create(ctx, doc)
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return wrap(err, "refusal %s", r.ID)
}

// CountRefusals adds r.Count to the record of all State Managers that counts such
// refusals of that minute.
//
// Cost: 1 RPC, 1 write.
func (s *Store) CountRefusals(ctx context.Context, r domain.Refusal) error {
	doc := refusalCodec.encode(r)
	doc[refusalCount] = firestore.Increment(r.Count)
	doc[expireAt] = s.expiry(Refusals, r.RefusedAt)
	_, err := s.doc(Refusals, string(r.ID)).Set(ctx, doc, firestore.MergeAll)
	return wrap(err, "refusals %s", r.ID)
}

// maxRefusalsRead bounds the refusals that are read of one order.
const maxRefusalsRead = 20

// RefusalOf is the latest record of an order that was refused on its way; the error wraps
// ErrNotFound if there is none. It finds no refusals that were only counted.
//
// Cost: 1 RPC; a read per refusal, at most maxRefusalsRead.
func (s *Store) RefusalOf(ctx context.Context, id domain.OrderID) (latest domain.Refusal, err error) {
	list, err := collect(s.where(Refusals, "orderId", string(id)).Limit(maxRefusalsRead).Documents(ctx), refusalCodec.decode)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	for _, r := range list {
		if !r.RefusedAt.Before(latest.RefusedAt) {
			latest = r
		}
	}
	return latest, wrap(err, "refusal of order %s", id)
}

// decideRefusal records what became of a refused message. A message without a record, for example
// from an earlier version, gets none.
func (s *Store) decideRefusal(ctx context.Context, topic, messageID string, outcome domain.RefusalOutcome, by string, at time.Time) error {
	changed := refusalCodec.updates(domain.Refusal{}, domain.Refusal{Outcome: outcome, DecidedBy: by, DecidedAt: at})
	_, err := s.doc(Refusals, string(domain.RefusalIDFor(topic, messageID))).Update(ctx, changed)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return wrap(err, "outcome of the refusal")
}

// LetterRecords reads what is recorded of messages with this id that were replayed or
// discarded, on any of the topics.
//
// Cost: 2 RPCs, 2 reads for each topic.
func (s *Store) LetterRecords(ctx context.Context, topics []string, messageID string) (replays []domain.Replay, discards []domain.Discard, err error) {
	var replayIDs []domain.ReplayID
	var discardIDs []domain.DiscardID
	for _, topic := range topics {
		replayIDs = append(replayIDs, domain.ReplayIDFor(topic, messageID))
		discardIDs = append(discardIDs, domain.DiscardIDFor(topic, messageID))
	}
	replays, err = many(ctx, s, Replays, replayIDs, replayCodec.decode)
	if err != nil {
		return nil, nil, err
	}
	discards, err = many(ctx, s, Discards, discardIDs, discardCodec.decode)
	return replays, discards, err
}

// RecordLockBreak stores that an operator breaks a lock at this moment. The record never expires.
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
		doc[expireAt] = s.expiry(AlertAcks, t.now)
		return t.Create(ref, doc)
	})
	return now, wrap(err, "acknowledgement")
}
