package webhooks

import (
	"cmp"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// queue is what a target knows of the deliveries that wait, in the order of their ids. It is not
// safe for concurrent use.
type queue struct {
	waiting []waiting
	sending map[string]bool // ids
}

// waiting is a delivery as it is stored, and when it may be sent.
type waiting struct {
	domain.WebhookDelivery
	due time.Time
}

func byID(d waiting, id string) int { return cmp.Compare(d.ID, id) }

// add adds a delivery unless it is there.
func (q *queue) add(d domain.WebhookDelivery) {
	if i, known := slices.BinarySearchFunc(q.waiting, d.ID, byID); !known {
		q.waiting = slices.Insert(q.waiting, i, waiting{d, d.NextAttemptAt})
	}
}

// remove drops a delivery that no longer waits.
func (q *queue) remove(id string) {
	delete(q.sending, id)
	if i, known := slices.BinarySearchFunc(q.waiting, id, byID); known {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// again has a delivery wait for its next attempt.
func (q *queue) again(d domain.WebhookDelivery) {
	delete(q.sending, d.ID)
	if i, known := slices.BinarySearchFunc(q.waiting, d.ID, byID); known {
		q.waiting[i] = waiting{d, d.NextAttemptAt}
	}
}

// next takes the first delivery that may be sent: none before it is of the same order, and its time
// has come. Without one it returns when to ask again; zero if only a change can help.
func (q *queue) next(now time.Time) (take domain.WebhookDelivery, found bool, at time.Time) {
	earlier := map[domain.OrderID]bool{}
	for _, d := range q.waiting {
		if earlier[d.OrderID] {
			continue
		}
		earlier[d.OrderID] = true
		switch {
		case q.sending[d.ID]:
		case !d.due.After(now):
			q.sending[d.ID] = true
			return d.WebhookDelivery, true, time.Time{}
		case at.IsZero() || d.due.Before(at):
			at = d.due
		}
	}
	return domain.WebhookDelivery{}, false, at
}

// retryNow makes every delivery due.
func (q *queue) retryNow() {
	for i := range q.waiting {
		q.waiting[i].due = time.Time{}
	}
}

// oldest is when the first delivery's event was committed; zero if none waits.
func (q *queue) oldest() time.Time {
	if len(q.waiting) == 0 {
		return time.Time{}
	}
	return q.waiting[0].CommittedAt
}
