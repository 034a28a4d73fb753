package locks

import (
	"slices"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Change is the effect of a commit on one document. Before or After is nil if the
// document does not exist then. They are equal if the commit changes nothing.
type Change struct {
	Name          string
	Before, After *firestorepb.Document
}

// request is a request for locks, granted all together.
type request struct {
	owner     *Owner
	names     []string
	exclusive bool
	scan      Range // range of a query; the request then has no names
	// prepare computes the effect of the commit on the newest documents. It is
	// called under the table's mutex, possibly several times.
	prepare func() []Change
	held    *HeldRange // the lock of a granted range request

	waiting  bool
	blocked  []*request // requests queued behind this one
	deadline time.Time
	done     chan error // buffered, receives the outcome once

	mayYield   bool        // may still let the holders of a hot name finish first, see yield.go
	yielding   bool        // waits only because it yields
	yieldTimer *time.Timer // ends the yielding
	yieldBegan time.Time   // real time
}

// settle gives the request its outcome.
func (r *request) settle(err error) {
	if r.yieldTimer != nil {
		r.yieldTimer.Stop()
		r.yieldTimer = nil
	}
	r.waiting = false
	r.done <- err
}

// touchesAny reports whether one of the changes touches the range.
func touchesAny(scan Range, changes []Change) bool {
	return slices.ContainsFunc(changes, scan.Touches)
}

// byAge orders requests, oldest owner first.
func byAge(a, b *request) int {
	switch {
	case a.owner.olderThan(b.owner):
		return -1
	case b.owner.olderThan(a.owner):
		return 1
	}
	return 0
}
