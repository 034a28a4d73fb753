package firestoretx

import (
	"context"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// RecordReplay stores, at this moment, that a refused message was published again. The
// new ids of earlier replays of the same message are kept.
//
// Cost: 1 RPC, 1 write.
func (s *Store) RecordReplay(ctx context.Context, r domain.Replay) error {
	r.ReplayedAt = s.now()
	doc := replayCodec.encode(r)
	again := make([]any, len(r.NewMessageIDs))
	for i, id := range r.NewMessageIDs {
		again[i] = id
	}
	doc["newMessageIds"] = firestore.ArrayUnion(again...)
	doc[expireAt] = r.ReplayedAt.Add(s.retention)
	_, err := s.doc(Replays, string(r.ID)).Set(ctx, doc, firestore.MergeAll)
	return wrap(err, "replay %s", r.ID)
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
