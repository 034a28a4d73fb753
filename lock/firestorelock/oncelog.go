package firestorelock

import (
	"log/slog"
	"sync"
)

const maxOnceLogged = 1024

// onceLog remembers which malformed documents have been reported.
type onceLog struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// first tells whether a report is new. The memory is bounded: after many
// different reports old ones may be repeated.
func (o *onceLog) first(report string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[report]; ok {
		return false
	}
	if o.seen == nil || len(o.seen) >= maxOnceLogged {
		o.seen = make(map[string]struct{})
	}
	o.seen[report] = struct{}{}
	return true
}

// noteMalformed reports a document that another program wrote wrongly, once.
func (b *Backend) noteMalformed(key string, s storedLock) {
	if s.malformed == "" {
		return
	}
	hash := b.hash(key)
	if b.logged.first(hash + s.malformed) {
		b.log.Warn("malformed lock document", slog.String("key_hash", hash), slog.String("fault", s.malformed))
	}
}
