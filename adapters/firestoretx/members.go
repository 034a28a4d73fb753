package firestoretx

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// memberKept is how long the document of a member that was killed stays.
const memberKept = 24 * time.Hour

// Beat writes a member's heartbeat and returns its time, the server's. A share without a time is
// new now. The document is replaced: nobody else writes it.
//
// Cost: 1 RPC, 1 write.
func (s *Store) Beat(ctx context.Context, m domain.Member) (time.Time, error) {
	doc := memberCodec.encode(m)
	doc[beatAt], doc[expireAt] = firestore.ServerTimestamp, s.now().Add(memberKept)
	if m.ShareSince.IsZero() {
		doc[shareSince] = firestore.ServerTimestamp
	}
	written, err := s.doc(Members, string(m.ID)).Set(ctx, doc)
	if err != nil {
		return time.Time{}, wrap(err, "heartbeat of member %s", m.ID)
	}
	return written.UpdateTime, nil
}

// Leave removes a member, so that the others need not wait until it counts as dead.
//
// Cost: 1 RPC, 1 write.
func (s *Store) Leave(ctx context.Context, id domain.MemberID) error {
	_, err := s.doc(Members, string(id)).Delete(ctx)
	return wrap(err, "member %s", id)
}

// FollowMembers follows the members, dead ones included, for as long as their documents exist.
func (s *Store) FollowMembers(ctx context.Context, seen func(Sight[domain.Member])) error {
	return wrap(follow(ctx, s.client.Collection(Members).Query, memberCodec.decode, seen), "follow members")
}
