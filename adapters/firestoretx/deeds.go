package firestoretx

import (
	"cmp"
	"context"
	"errors"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
)

// Deeds are what a person did in a period, each kind in no particular order.
type Deeds struct {
	Events      []domain.Event
	Places      []domain.PlaceChange
	Maintenance []domain.MaintenanceRecord
	Discards    []domain.Discard
	Replays     []domain.Replay
	LockBreaks  []domain.LockBreak
	AlertAcks   []domain.AlertAck
	KeysMade    []domain.APIKey
	KeysRevoked []domain.APIKey
	Malformed   []error // documents that cannot be decoded and are left out
}

// DeedsOf reads what a person did from one time until another; what anybody did if the name is empty.
//
// Cost: 9 RPCs; a read for each event and change of a place of the period, and for each of the
// person's other records, or of the period's. For what anybody did in a sharded fleet 1 RPC more.
func (s *Store) DeedsOf(ctx context.Context, name string, from, to time.Time) (d Deeds, err error) {
	p := period{s, name, from, to, &d.Malformed}
	err = errors.Join(
		dated(ctx, p, &d.Events, Events, "by", "time", eventCodec, func(e domain.Event) time.Time { return e.Time }),
		dated(ctx, p, &d.Places, PlaceChanges, "changedBy", "changedAt", placeChangeCodec, func(c domain.PlaceChange) time.Time { return c.ChangedAt }),
		every(ctx, p, &d.Maintenance, Maintenance, "by", "at", maintenanceCodec, func(m domain.MaintenanceRecord) time.Time { return m.At }),
		every(ctx, p, &d.Discards, Discards, "discardedBy", "discardedAt", discardCodec, func(x domain.Discard) time.Time { return x.DiscardedAt }),
		every(ctx, p, &d.Replays, Replays, "replayedBy", "replayedAt", replayCodec, func(r domain.Replay) time.Time { return r.ReplayedAt }),
		every(ctx, p, &d.LockBreaks, LockBreaks, "brokenBy", "brokenAt", lockBreakCodec, func(b domain.LockBreak) time.Time { return b.BrokenAt }),
		every(ctx, p, &d.AlertAcks, AlertAcks, "by", "at", alertAckCodec, func(a domain.AlertAck) time.Time { return a.At }),
		every(ctx, p, &d.KeysMade, Keys, "createdBy", "createdAt", keyCodec, func(k domain.APIKey) time.Time { return k.CreatedAt }),
		every(ctx, p, &d.KeysRevoked, Keys, "revokedBy", "revokedAt", keyCodec, func(k domain.APIKey) time.Time { return k.RevokedAt }),
	)
	return d, wrap(err, "deeds of %s", cmp.Or(name, "anybody"))
}

// period is a person's time from one moment until another, or everybody's.
type period struct {
	store     *Store
	name      string // "" for everybody
	from, to  time.Time
	malformed *[]error
}

// documents are the person's in a collection. Everybody's are all but those events that nobody caused.
func (p period) documents(collection, who string) firestore.Query {
	switch {
	case p.name != "":
		return p.store.where(collection, who, p.name)
	case collection == Events:
		return p.store.where(Events, "cause", string(domain.CauseOperator))
	}
	return p.store.client.Collection(collection).Query
}

// during narrows documents to the period.
func (p period) during(q firestore.Query, when string) firestore.Query {
	return q.Where(when, ">=", p.from).Where(when, "<", p.to)
}

// dated reads documents of a collection by an index of who and when. For the operators' events a sharded fleet
// has an index that begins with the shard instead; an operator's command does not know which it is.
func dated[T any](ctx context.Context, p period, to *[]T, collection, who, when string, c codec[T], at func(T) time.Time) error {
	q := p.during(p.documents(collection, who), when).OrderBy(when, firestore.Desc)
	err := within(ctx, p, to, q, c, at)
	if status.Code(err) != codes.FailedPrecondition {
		return err
	}
	return within(ctx, p, to, inShards(q, Shards)[0], c, at)
}

// every reads all documents of the person in a collection, or everybody's of the period, and keeps
// those of the period.
func every[T any](ctx context.Context, p period, to *[]T, collection, who, when string, c codec[T], at func(T) time.Time) error {
	q := p.documents(collection, who)
	if p.name == "" {
		q = p.during(q, when)
	}
	return within(ctx, p, to, q, c, at)
}

func within[T any](ctx context.Context, p period, to *[]T, q firestore.Query, c codec[T], at func(T) time.Time) error {
	return each(q.Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		v, err := c.decode(doc)
		switch when := at(v); {
		case err != nil:
			*p.malformed = append(*p.malformed, err)
		case !when.Before(p.from) && when.Before(p.to):
			*to = append(*to, v)
		}
		return nil
	})
}
