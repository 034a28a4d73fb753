package firestoretx

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
)

// The documents with what was learned. The id of an area's is the prefix and the depot that names the
// area. Earlier versions kept what the whole fleet has learned in the others, one for each drone.
const (
	learnedArea   = "area-"
	learnedTravel = "travel"
	learnedDemand = "demand"
	learnedDrone  = "drone-"
)

// areaLearned is what was learned in an area, as its document has it.
type areaLearned struct {
	travel domain.Travel
	demand domain.Demand
	drones []droneLearned
}

type droneLearned struct {
	id domain.DroneID
	domain.DroneTravel
}

var areaLearnedCodec = codec[areaLearned]{
	nested("travel", travelCodec, func(l *areaLearned) *domain.Travel { return &l.travel }),
	nested("demand", demandCodec, func(l *areaLearned) *domain.Demand { return &l.demand }),
	structs("drones", codec[droneLearned]{
		reference("droneId", func(d *droneLearned) *domain.DroneID { return &d.id }),
		nested("flight", legSumsCodec, func(d *droneLearned) *domain.LegSums { return &d.Flight }),
		real("speedKmh", func(d *droneLearned) *float64 { return &d.SpeedKmh }),
	}, func(l *areaLearned) *[]droneLearned { return &l.drones }),
}

func encodeAreaLearned(l domain.Learned) map[string]any {
	stored := areaLearned{travel: l.Travel, demand: l.Demand}
	for _, id := range slices.Sorted(maps.Keys(l.Drones)) {
		stored.drones = append(stored.drones, droneLearned{id, l.Drones[id]})
	}
	return areaLearnedCodec.encode(stored)
}

func decodeAreaLearned(snap *firestore.DocumentSnapshot) (domain.Learned, error) {
	stored, err := areaLearnedCodec.decode(snap)
	l := domain.Learned{Travel: stored.travel, Demand: stored.demand, Drones: map[domain.DroneID]domain.DroneTravel{}}
	for _, d := range stored.drones {
		l.Drones[d.id] = d.DroneTravel
	}
	return l, err
}

// maxLearnedDeletes bounds the documents that one transaction deletes.
const maxLearnedDeletes = 450

// Learned reads what was learned in all areas. A malformed document counts as absent and is listed.
//
// Cost: 1 RPC, a read for each area.
func (s *Store) Learned(ctx context.Context) (l domain.Learned, malformed []error, err error) {
	var areas domain.Learned
	learned := false
	earlier, malformed, err := s.earlierLearned(ctx, func(snap *firestore.DocumentSnapshot) error {
		area, err := decodeAreaLearned(snap)
		switch {
		case err != nil:
			return err
		case learned:
			area = areas.Plus(area)
		}
		areas, learned = area, true
		return nil
	})
	if learned {
		return areas, malformed, err
	}
	return earlier, malformed, err
}

// earlierLearned reads what earlier versions learned, and calls area with the documents of areas.
func (s *Store) earlierLearned(ctx context.Context, area func(*firestore.DocumentSnapshot) error) (l domain.Learned, malformed []error, err error) {
	l.Drones = map[domain.DroneID]domain.DroneTravel{}
	err = each(s.client.Collection(Learned).Documents(ctx), func(snap *firestore.DocumentSnapshot) error {
		var err error
		switch id, isDrone := strings.CutPrefix(snap.Ref.ID, learnedDrone); {
		case strings.HasPrefix(id, learnedArea):
			err = area(snap)
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

// LearnedIn reads what was learned in an area. An area that has not learned yet begins with what
// earlier versions learned: the only area with everything, one of several with how the fleet flies.
// A malformed document counts as absent and is listed.
//
// Cost: 1 RPC and a read; 2 RPCs the first time.
func (s *Store) LearnedIn(ctx context.Context, scope domain.LearningScope) (l domain.Learned, malformed []error, err error) {
	snaps, err := s.client.GetAll(ctx, []*firestore.DocumentRef{s.learnedDoc(scope)})
	if err != nil {
		return l, nil, wrap(err, "what was learned")
	}
	if snaps[0].Exists() {
		if l, err = decodeAreaLearned(snaps[0]); err != nil {
			return domain.Learned{}, []error{err}, nil
		}
		return l, nil, nil
	}
	if len(scope.Depots) == 0 {
		return s.earlierLearned(ctx, func(*firestore.DocumentSnapshot) error { return nil })
	}
	if snaps, err = s.client.GetAll(ctx, s.earlierDocs()); err != nil {
		return l, nil, wrap(err, "what was learned")
	}
	travel, malformedTravel := decodeIfAny(snaps[0], travelCodec)
	demand, malformedDemand := decodeIfAny(snaps[1], demandCodec)
	for _, err := range []error{malformedTravel, malformedDemand} {
		if err != nil {
			malformed = append(malformed, err)
		}
	}
	// Where orders come from is another matter in each area.
	return domain.Learned{Travel: travel, Demand: domain.Demand{Until: demand.Until}}, malformed, nil
}

func decodeIfAny[T any](snap *firestore.DocumentSnapshot, c codec[T]) (v T, _ error) {
	if !snap.Exists() {
		return v, nil
	}
	return c.decode(snap)
}

func (s *Store) learnedDoc(scope domain.LearningScope) *firestore.DocumentRef {
	return s.doc(Learned, learnedArea+string(scope.Area))
}

// earlierDocs are the documents with the times up to which earlier versions learned.
func (s *Store) earlierDocs() []*firestore.DocumentRef {
	return []*firestore.DocumentRef{s.doc(Learned, learnedTravel), s.doc(Learned, learnedDemand)}
}

// MissionsEnded lists the first limit missions of an area's drones that ended after one time and by
// another. Malformed ones are left out.
//
// Cost: 1 RPC, a read for each.
func (s *Store) MissionsEnded(ctx context.Context, scope domain.LearningScope, after, until time.Time, limit int) ([]domain.Mission, error) {
	return inSpan(ctx, s, Missions, "endTime", homeOfMission, scope, after, until, limit, missionCodec.decode)
}

// OrdersCreated lists the first limit orders that an area plans and that were created after one
// time and by another. Malformed ones are left out.
//
// Cost: 1 RPC, a read for each.
func (s *Store) OrdersCreated(ctx context.Context, scope domain.LearningScope, after, until time.Time, limit int) ([]domain.Order, error) {
	return inSpan(ctx, s, Orders, "createdAt", "planningDepotId", scope, after, until, limit, orderCodec.decode)
}

func inSpan[T any](ctx context.Context, s *Store, collection, field, depot string, scope domain.LearningScope, after, until time.Time, limit int, decode func(*firestore.DocumentSnapshot) (T, error)) (list []T, err error) {
	q := s.client.Collection(collection).Where(field, ">", after).Where(field, "<=", until).OrderBy(field, firestore.Asc).Limit(limit)
	if len(scope.Depots) > 0 {
		q = q.Where(depot, "in", scope.Depots)
	}
	list, _, err = decodeAll(q.Documents(ctx), decode)
	if status.Code(err) == codes.FailedPrecondition { // the only area of a fleet with sharded orders
		list, _, err = decodeAll(inShards(q, Shards)[0].Documents(ctx), decode)
	}
	return list, wrap(err, "%s", collection)
}

// SaveLearned replaces what was learned in an area. If the store no longer has before, it returns
// false.
//
// Cost: 3 RPCs, 3 reads, 1 write.
func (s *Store) SaveLearned(ctx context.Context, scope domain.LearningScope, before, after domain.Learned) (saved bool, err error) {
	err = s.transact(ctx, nil, func(t *txn) error {
		saved = false
		snaps, err := t.get(append(s.earlierDocs(), s.learnedDoc(scope))...)
		if err != nil {
			return err
		}
		have := [2]any{snaps[0].Data()["until"], snaps[1].Data()["until"]}
		if doc := snaps[2]; doc.Exists() {
			travel, _ := doc.Data()["travel"].(map[string]any)
			demand, _ := doc.Data()["demand"].(map[string]any)
			have = [2]any{travel["until"], demand["until"]}
		}
		for i, until := range []time.Time{before.Travel.Until, before.Demand.Until} {
			if at, _ := have[i].(time.Time); !at.Equal(until) { // absent: never
				return nil
			}
		}
		saved = true
		return t.Set(s.learnedDoc(scope), encodeAreaLearned(after))
	})
	return saved && err == nil, wrap(err, "save what was learned")
}

// ForgetLearned forgets everything that was learned. Only missions that end, and orders that come,
// after the given time count from now on.
func (s *Store) ForgetLearned(ctx context.Context, from time.Time) error {
	docs, err := s.client.Collection(Learned).Select().Documents(ctx).GetAll()
	if err != nil {
		return wrap(err, "what was learned")
	}
	// First the times from which every area begins anew, so that none learns from before.
	err = s.transact(ctx, nil, func(t *txn) error {
		if err := t.Set(s.doc(Learned, learnedTravel), travelCodec.encode(domain.Travel{Until: from})); err != nil {
			return err
		}
		return t.Set(s.doc(Learned, learnedDemand), demandCodec.encode(domain.Demand{Until: from}))
	})
	if err != nil {
		return wrap(err, "forget what was learned")
	}
	docs = slices.DeleteFunc(docs, func(doc *firestore.DocumentSnapshot) bool {
		return doc.Ref.ID == learnedTravel || doc.Ref.ID == learnedDemand
	})
	for some := range slices.Chunk(docs, maxLearnedDeletes) {
		err := s.transact(ctx, nil, func(t *txn) error {
			for _, doc := range some {
				if err := t.Delete(doc.Ref); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return wrap(err, "forget what was learned")
		}
	}
	return nil
}
