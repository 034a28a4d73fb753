package firestoretx

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// The documents with what was learned. The id of a drone's is the prefix and the drone's id.
const (
	learnedTravel = "travel"
	learnedDemand = "demand"
	learnedDrone  = "drone-"
)

// maxLearnedDeletes bounds the documents that one transaction deletes.
const maxLearnedDeletes = 450

// Learned reads everything that was learned. A malformed document counts as absent and is listed.
//
// Cost: 1 RPC, 2 reads and one for each drone with a past.
func (s *Store) Learned(ctx context.Context) (l domain.Learned, malformed []error, err error) {
	l.Drones = map[domain.DroneID]domain.DroneTravel{}
	err = each(s.client.Collection(Learned).Documents(ctx), func(snap *firestore.DocumentSnapshot) error {
		var err error
		switch id, isDrone := strings.CutPrefix(snap.Ref.ID, learnedDrone); {
		case isDrone:
			var d domain.DroneTravel
			if d, err = droneTravelCodec.decode(snap); err == nil {
				l.Drones[domain.DroneID(id)] = d
			}
		case id == learnedTravel:
			var t domain.Travel
			if t, err = travelCodec.decode(snap); err == nil {
				l.Travel = t
			}
		case id == learnedDemand:
			var d domain.Demand
			if d, err = demandCodec.decode(snap); err == nil {
				l.Demand = d
			}
		}
		if err != nil {
			malformed = append(malformed, err)
		}
		return nil
	})
	return l, malformed, wrap(err, "what was learned")
}

// MissionsEnded lists the first limit missions that ended after one time and by another.
// Malformed ones are left out.
//
// Cost: 1 RPC, a read for each.
func (s *Store) MissionsEnded(ctx context.Context, after, until time.Time, limit int) ([]domain.Mission, error) {
	return inSpan(ctx, s, Missions, "endTime", after, until, limit, missionCodec.decode)
}

// OrdersCreated lists the first limit orders that were created after one time and by
// another. Malformed ones are left out.
//
// Cost: 1 RPC, a read for each.
func (s *Store) OrdersCreated(ctx context.Context, after, until time.Time, limit int) ([]domain.Order, error) {
	return inSpan(ctx, s, Orders, "createdAt", after, until, limit, orderCodec.decode)
}

func inSpan[T any](ctx context.Context, s *Store, collection, field string, after, until time.Time, limit int, decode func(*firestore.DocumentSnapshot) (T, error)) (list []T, err error) {
	q := s.client.Collection(collection).Where(field, ">", after).Where(field, "<=", until).OrderBy(field, firestore.Asc).Limit(limit)
	list, _, err = decodeAll(q.Documents(ctx), decode)
	return list, wrap(err, "%s", collection)
}

// SaveLearned replaces before by after. If the store no longer has before, it returns
// false.
//
// Cost: 3 RPCs, 2 reads, at most 2 writes and one for each drone that changed.
func (s *Store) SaveLearned(ctx context.Context, before, after domain.Learned) (saved bool, err error) {
	var changed []domain.DroneID
	for _, id := range slices.Sorted(maps.Keys(after.Drones)) {
		if after.Drones[id] != before.Drones[id] {
			changed = append(changed, id)
		}
	}
	err = s.transact(ctx, nil, func(t *txn) error {
		saved = false
		snaps, err := t.get(s.doc(Learned, learnedTravel), s.doc(Learned, learnedDemand))
		if err != nil {
			return err
		}
		for i, until := range []time.Time{before.Travel.Until, before.Demand.Until} {
			have, _ := snaps[i].Data()["until"].(time.Time) // absent: never
			if !have.Equal(until) {
				return nil
			}
		}
		saved = true
		if !after.Travel.Until.Equal(before.Travel.Until) {
			if err := t.Set(s.doc(Learned, learnedTravel), travelCodec.encode(after.Travel)); err != nil {
				return err
			}
		}
		if err := t.Set(s.doc(Learned, learnedDemand), demandCodec.encode(after.Demand)); err != nil {
			return err
		}
		for _, id := range changed {
			if err := t.Set(s.doc(Learned, learnedDrone+string(id)), droneTravelCodec.encode(after.Drones[id])); err != nil {
				return err
			}
		}
		return nil
	})
	return saved && err == nil, wrap(err, "save what was learned")
}

// ForgetLearned forgets everything that was learned. Only missions that end, and orders that come,
// after the given time count from now on.
func (s *Store) ForgetLearned(ctx context.Context, from time.Time) error {
	l, _, err := s.Learned(ctx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(l.Drones)), maxLearnedDeletes) {
		err := s.transact(ctx, nil, func(t *txn) error {
			for _, id := range some {
				if err := t.Delete(s.doc(Learned, learnedDrone+string(id))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return wrap(err, "forget what was learned")
		}
	}
	err = s.transact(ctx, nil, func(t *txn) error {
		if err := t.Set(s.doc(Learned, learnedTravel), travelCodec.encode(domain.Travel{Until: from})); err != nil {
			return err
		}
		return t.Set(s.doc(Learned, learnedDemand), demandCodec.encode(domain.Demand{Until: from}))
	})
	return wrap(err, "forget what was learned")
}
