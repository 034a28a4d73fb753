package pubsubio

import (
	"sync"
	"time"
)

// inWork counts the messages that a worker holds unsettled.
type inWork struct {
	mu       sync.Mutex
	messages int
	quiet    *time.Timer // runs while nothing is held; nil until somebody waits for that
	settling time.Duration
}

func (w *inWork) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages++
	if w.quiet != nil {
		w.quiet.Stop()
	}
}

func (w *inWork) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages--
	if w.messages == 0 && w.quiet != nil {
		w.quiet.Reset(w.settling)
	}
}

// whenQuiet calls f once no message has been held for the time that settling takes.
func (w *inWork) whenQuiet(settling time.Duration, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settling, w.quiet = settling, time.AfterFunc(settling, f)
	if w.messages > 0 {
		w.quiet.Stop()
	}
}
