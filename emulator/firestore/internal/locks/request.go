package locks

import (
	"slices"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Change is what a commit does to one document. Before and After are nil where
// the document does not exist, and the same where the commit changes nothing.
type Change struct {
	Name          string
	Before, After *firestorepb.Document
}

// request is one wish for locks, granted all or nothing.
type request struct {
	owner     *Owner
	names     []string
	exclusive bool
	scan      Range // a query's range, asked for alone
	// prepare computes what the commit would do to the newest documents. It is
	// called under the table's mutex, more than once while the request waits.
	prepare func() []Change
	held    *HeldRange // what a granted range request holds

	waiting  bool
	blocked  []*request // requests queued behind this one
	deadline time.Time
	done     chan error // receives the outcome once, buffered

	patience  *time.Timer // courtesy wait for a hot name, see courtesy.go
	courteous bool        // still willing to let holders of a hot name finish
	polite    bool        // waits out of courtesy alone
	began     time.Time   // when the courtesy wait began, real time
}

// settle gives the request its outcome.
func (r *request) settle(err error) {
	if r.patience != nil {
		r.patience.Stop()
		r.patience = nil
	}
	r.waiting = false
	r.done <- err
}

// touchesAny says whether one of the changes lies in the range.
func touchesAny(scan Range, changes []Change) bool {
	return slices.ContainsFunc(changes, scan.Touches)
}

// byAge sorts requests oldest owner first.
func byAge(a, b *request) int {
	switch {
	case a.owner.olderThan(b.owner):
		return -1
	case b.owner.olderThan(a.owner):
		return 1
	}
	return 0
}
