package pubsubio

import (
	"testing"
)

// F-FLOW-01: what is let in at a time takes a small part of a process's memory,
// whatever the messages weigh and however many streams carry them.
func TestWorker_FlowControlBoundsWhatIsHeld(t *testing.T) {
	l := newLine(t)
	store, _ := l.store()
	l.work(store, Config{})
	allowed := func(topic string) (streams int, messages, bytes int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		opened := l.opened[Subscription(topic)]
		for _, r := range opened {
			messages, bytes = messages+r.GetMaxOutstandingMessages(), bytes+r.GetMaxOutstandingBytes()
		}
		return len(opened), messages, bytes
	}
	for _, tt := range []struct {
		topic    string
		streams  int
		messages int64
	}{
		{TopicTelemetry, 2, 40_000},
		{TopicOrders, 1, 1000},
		{TopicDecisions, 1, 1000},
	} {
		eventually(t, tt.topic+" is pulled", func() bool { streams, _, _ := allowed(tt.topic); return streams >= tt.streams })
		if _, messages, bytes := allowed(tt.topic); messages != tt.messages || bytes != 64<<20 {
			t.Errorf("%s: %d messages and %d MiB let in at a time, want %d and 64", tt.topic, messages, bytes>>20, tt.messages)
		}
	}
}
