package firestoretx

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// Leave takes the heartbeat out of a member's document, so that the others need not wait until it
// counts as dead. The document stays until it expires, because queries do not find deleted ones.
//
// Cost: 1 RPC, 1 write.
func (s *Store) Leave(ctx context.Context, id domain.MemberID) error {
	_, err := s.doc(Members, string(id)).Update(ctx, []firestore.Update{
		{Path: beatAt, Value: firestore.Delete},
		{Path: shareSince, Value: firestore.ServerTimestamp},
	})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return wrap(err, "member %s", id)
}

// PollMembers asks what became of the members since an earlier poll. The query for changes always
// finds the latest one, whose answer tells the store's time.
//
// Cost: 2 RPCs, 2 reads, and one for each member that changed or fell silent. All members: 2 RPCs, a
// read each and one more. The count: 1 RPC, and a read for each 1,000 members.
func (s *Store) PollMembers(ctx context.Context, p domain.MemberPoll) (domain.MemberNews, error) {
	news, err := s.pollMembers(ctx, p)
	return news, wrap(err, "poll members")
}

func (s *Store) pollMembers(ctx context.Context, p domain.MemberPoll) (news domain.MemberNews, _ error) {
	members := s.client.Collection(Members)
	add := func(doc *firestore.DocumentSnapshot) error {
		if news.ReadTime.IsZero() {
			news.ReadTime, news.SilentUntil = doc.ReadTime, doc.ReadTime.Add(-p.Silence)
		}
		m, err := memberCodec.decode(doc)
		if err != nil {
			news.Malformed = append(news.Malformed, err)
			return nil
		}
		news.Changed = append(news.Changed, m)
		return nil
	}
	if !p.ChangedFrom.IsZero() {
		if err := each(members.Where(shareSince, ">=", p.ChangedFrom).Documents(ctx), add); err != nil {
			return news, err
		}
	}
	if news.Whole = news.ReadTime.IsZero(); news.Whole {
		if err := each(members.OrderBy(shareSince, firestore.Desc).Limit(1).Documents(ctx), add); err != nil || news.ReadTime.IsZero() {
			return news, err // there are none
		}
		return news, each(members.Where(beatAt, ">", news.SilentUntil).Documents(ctx), add)
	}
	silent := members.Where(beatAt, ">", p.SilentAfter).Where(beatAt, "<=", news.SilentUntil).Select()
	err := each(silent.Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		news.Silent = append(news.Silent, domain.MemberID(doc.Ref.ID))
		return nil
	})
	if err != nil || !p.Count {
		return news, err
	}
	n, err := count(ctx, members.Where(beatAt, ">", news.SilentUntil))
	news.Counted, news.Living = true, int(n)
	return news, err
}
