package store

import (
	"sync/atomic"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

// version is one state of a document. It is immutable except for prev, which becomes
// nil when no snapshot needs the earlier versions.
type version struct {
	time int64                 // update time
	doc  *firestorepb.Document // nil for a tombstone
	prev atomic.Pointer[version]
}

// record is a name with its versions, newest first.
type record struct {
	name   string
	newest atomic.Pointer[version]
}

// at returns the document at the given time, nil if it did not exist.
func (r *record) at(time int64) *firestorepb.Document {
	for v := r.newest.Load(); v != nil; v = v.prev.Load() {
		if v.time <= time {
			return v.doc
		}
	}
	return nil
}

// versionAt returns the time of the state that at returns, 0 if there is none.
func (r *record) versionAt(time int64) int64 {
	for v := r.newest.Load(); v != nil; v = v.prev.Load() {
		if v.time <= time {
			return v.time
		}
	}
	return 0
}

// cut drops the versions that no snapshot at or after horizon sees. It reports
// whether only a tombstone is left.
func (r *record) cut(horizon int64) (dead bool) {
	for v := r.newest.Load(); v != nil; v = v.prev.Load() {
		if v.time <= horizon {
			v.prev.Store(nil)
			return v.doc == nil && v == r.newest.Load()
		}
	}
	return false
}
