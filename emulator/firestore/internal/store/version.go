package store

import (
	"sync/atomic"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

// version is one state of a document. Immutable but for prev, which is cut off
// when no snapshot can need it any more.
type version struct {
	time int64                 // update time
	doc  *firestorepb.Document // nil for a tombstone
	prev atomic.Pointer[version]
}

// record is one name and its versions, newest first.
type record struct {
	name   string
	newest atomic.Pointer[version]
}

// at returns the document as it was at the given time, nil if it did not exist.
func (r *record) at(time int64) *firestorepb.Document {
	for v := r.newest.Load(); v != nil; v = v.prev.Load() {
		if v.time <= time {
			return v.doc
		}
	}
	return nil
}

// versionAt is the time of the state at returns.
func (r *record) versionAt(time int64) int64 {
	for v := r.newest.Load(); v != nil; v = v.prev.Load() {
		if v.time <= time {
			return v.time
		}
	}
	return 0
}

// cut drops the versions no snapshot at or after horizon can see and reports
// whether nothing but a tombstone is left.
func (r *record) cut(horizon int64) (dead bool) {
	for v := r.newest.Load(); v != nil; v = v.prev.Load() {
		if v.time <= horizon {
			v.prev.Store(nil)
			return v.doc == nil && v == r.newest.Load()
		}
	}
	return false
}
