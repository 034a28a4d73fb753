package learning

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Store is what a Learner needs of the store.
type Store interface {
	LearnedIn(ctx context.Context, scope domain.LearningScope) (l domain.Learned, malformed []error, err error)
	// MissionsEnded and OrdersCreated list at most limit entities of an area after a time, and not
	// after another, the earliest first.
	MissionsEnded(ctx context.Context, scope domain.LearningScope, after, until time.Time, limit int) ([]domain.Mission, error)
	OrdersCreated(ctx context.Context, scope domain.LearningScope, after, until time.Time, limit int) ([]domain.Order, error)
	// SaveLearned replaces what was learned in an area. It returns false if another process has done
	// so meanwhile.
	SaveLearned(ctx context.Context, scope domain.LearningScope, before, after domain.Learned) (saved bool, err error)
}

const (
	// Every is how often a Learner looks for what is new.
	Every = 5 * time.Minute
	// countAfter is how long after its end a mission is counted: late reports may still
	// correct its times.
	countAfter = 2 * time.Minute
	// maxLookBack is how far back the first look goes.
	maxLookBack = 7 * 24 * time.Hour
	// maxAhead is how far the end of the last look may be ahead of the store's time: clocks never
	// differ by more.
	maxAhead = 24 * time.Hour
	// page bounds what one look reads of each kind. If there is more, the next cycle looks again.
	page = 400
)

// Learner learns in one area from a store, and estimates. It is not safe for concurrent use.
type Learner struct {
	store      Store
	assumed    Assumed
	confidence float64

	looked    time.Time
	estimates Estimates
}

// NewLearner returns a learner that has not looked yet.
func NewLearner(store Store, assumed Assumed, confidence float64) *Learner {
	return &Learner{store: store, assumed: assumed, confidence: confidence}
}

// Look counts what is new in an area, if it is time to, and returns the estimates. now is the store's
// time.
// With an error it returns the earlier estimates. If documents are malformed, the error names
// them, the estimates come from the others, and nothing is counted.
//
// Cost: every five minutes 6 RPCs, 4 reads and one for each new mission and new order, and a write.
func (l *Learner) Look(ctx context.Context, scope domain.LearningScope, now time.Time) (Estimates, error) {
	if since := now.Sub(l.looked); !l.looked.IsZero() && since >= 0 && since < Every {
		return l.estimates, nil
	}
	l.looked = now
	before, malformed, err := l.store.LearnedIn(ctx, scope)
	if err != nil {
		return l.estimates, errors.Join(append(malformed, err)...)
	}
	if len(malformed) > 0 {
		l.estimates = Estimate(before, l.assumed, l.confidence)
		return l.estimates, errors.Join(malformed...)
	}
	learned, more, err := l.addPage(ctx, scope, before, now.Add(-countAfter))
	if err != nil {
		return l.estimates, err
	}
	if more {
		l.looked = time.Time{}
	}
	l.estimates = Estimate(learned, l.assumed, l.confidence)
	return l.estimates, nil
}

// addPage adds one page of what is new until a time to what was learned before. It returns the
// result, and whether there may be more.
func (l *Learner) addPage(ctx context.Context, scope domain.LearningScope, before domain.Learned, until time.Time) (_ domain.Learned, more bool, _ error) {
	missions, err := l.store.MissionsEnded(ctx, scope, lookFrom(before.Travel.Until, until), until, page)
	if err != nil {
		return before, false, err
	}
	orders, err := l.store.OrdersCreated(ctx, scope, lookFrom(before.Demand.Until, until), until, page)
	if err != nil {
		return before, false, err
	}
	more = len(missions) == page || len(orders) == page
	after := before
	if inFuture(after.Travel.Until, until) {
		after.Travel.Until = until
	}
	if len(missions) > 0 {
		after = AddMissions(after, withoutCutTime(missions, func(m domain.Mission) time.Time { return m.EndTime }), l.assumed)
		noteEstimates(&after, Estimate(after, l.assumed, l.confidence))
	}
	after.Demand.Until = lookFrom(after.Demand.Until, until) // what came before was not observed
	if len(orders) == page {                                 // there may be more
		orders = withoutCutTime(orders, func(o domain.Order) time.Time { return o.CreatedAt })
		until = orders[len(orders)-1].CreatedAt
	}
	after.Demand = AddOrders(after.Demand, countedIn(scope, orders), until)
	saved, err := l.store.SaveLearned(ctx, scope, before, after)
	if err == nil && !saved {
		after, _, err = l.store.LearnedIn(ctx, scope)
	}
	return after, more, err
}

// countedIn are the orders that an area counts. An order that was handed over later than countAfter
// may have been counted by the area that planned it before.
func countedIn(scope domain.LearningScope, orders []domain.Order) []domain.Order {
	return slices.DeleteFunc(orders, func(o domain.Order) bool {
		return len(scope.Depots) > 0 && len(o.HandedOverBy) > 0 && o.PlanningSince.Sub(o.CreatedAt) >= countAfter
	})
}

// lookFrom is the time to look from: where the last look ended. If a wrong document says that it
// ended in the future, looking must not stop until then.
func lookFrom(until, now time.Time) time.Time {
	if earliest := now.Add(-maxLookBack); until.Before(earliest) {
		return earliest
	}
	if inFuture(until, now) {
		return now
	}
	return until
}

func inFuture(until, now time.Time) bool { return until.Sub(now) > maxAhead }

// withoutCutTime is a page without its last entities, if more of the same time may follow.
func withoutCutTime[T any](list []T, at func(T) time.Time) []T {
	n := len(list)
	if n < page {
		return list
	}
	last := at(list[n-1])
	for n > 0 && at(list[n-1]).Equal(last) {
		n--
	}
	if n == 0 {
		return list // more than a page at one time: the rest of them is lost
	}
	return list[:n]
}

// noteEstimates notes the estimates beside the sums, for people to read.
func noteEstimates(l *domain.Learned, e Estimates) {
	l.Travel.SpeedKmh, l.Travel.PickupSeconds, l.Travel.DeliverySeconds = e.SpeedKmh, e.Pickup.Seconds(), e.Deliver.Seconds()
	for id, d := range l.Drones {
		d.SpeedKmh = e.SpeedOf(id)
		l.Drones[id] = d
	}
}
