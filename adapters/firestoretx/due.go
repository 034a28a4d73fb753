package firestoretx

import (
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// The sweeper finds a drone or an order by the time at which it is due and by its area, which spreads
// the times over the index. Both are absent if it has nothing to wait for. A drone's is that of its
// mission too, because every change of the mission writes the drone.
const (
	dueAt   = "dueAt"
	dueArea = "dueArea"
)

// dueFields are both fields of a kind of document. The area follows from the document and is not read.
func dueFields[T any](at func(*T) *time.Time, area func(*T) domain.DepotID) codec[T] {
	return codec[T]{
		instant(dueAt, at),
		{
			name: dueArea,
			get: func(v *T) any {
				if at(v).IsZero() {
					return nil
				}
				return string(area(v))
			},
			set: func(*T, any) error { return nil },
		},
	}
}

// dueUpdates are both fields of a document that is due at a time.
func dueUpdates(at time.Time, area domain.DepotID) []firestore.Update {
	type due struct {
		at   time.Time
		area domain.DepotID
	}
	fields := dueFields(func(d *due) *time.Time { return &d.at }, func(d *due) domain.DepotID { return d.area })
	return fields.all(due{at, area})
}
