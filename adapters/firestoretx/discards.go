package firestoretx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/domain"
)

// maxDiscardedPayload bounds the bytes kept of a payload. With all the attributes that
// a message may have, the document stays below Firestore's 1 MiB.
const maxDiscardedPayload = 512 << 10

// RecordDiscard records that an operator discards a message, with the time and as much of
// the payload as fits. The first record of a message is kept.
//
// Cost: 1 RPC, 1 write.
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
	doc[expireAt] = d.DiscardedAt.Add(s.retention)
	_, err := s.doc(Discards, string(d.ID)).Create(ctx, doc)
	if st, ok := statusOf(err); ok && st.Code() == codes.AlreadyExists {
		return nil
	}
	return wrap(err, "discard %s", d.ID)
}

// Discards lists the messages that operators discarded, in no particular order.
func (s *Store) Discards(ctx context.Context) ([]domain.Discard, error) {
	list, err := collect(s.client.Collection(Discards).Documents(ctx), discardCodec.decode)
	return list, wrap(err, "discards")
}
