package pubsubemu

import (
	"slices"
	"sync"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// topic fans published messages out to the subscriptions and snapshots that
// hold them from then on. Lock order: Server.mu, topic.mu, subscription.mu.
type topic struct {
	name    string
	holder  uint64           // id of its retained messages in the journal
	journal *journal.Journal // nil without a data directory

	mu            sync.RWMutex
	config        *pubsubpb.Topic
	deleted       bool            // for calls that found the topic before it was deleted
	subscriptions []*subscription // in order of creation
	snapshots     []*snapshot

	retainedMu sync.Mutex
	retained   []*message // by arrival, when the topic retains messages
}

// holder keeps messages: a subscription or a snapshot.
type holder interface {
	hold(msgs []*message)
	journalID() uint64
}

// share is the part of a publish that one holder gets.
type share struct {
	to   holder
	msgs []*message
}

// shares decides which holder gets which messages. The caller holds the read lock
// until the holders have them, so that a snapshot gets all messages of a publish or
// none.
func (t *topic) shares(msgs []*message, in []*pubsubpb.PubsubMessage) []share {
	out := make([]share, 0, len(t.subscriptions)+len(t.snapshots)+1)
	for _, sub := range t.subscriptions {
		matching := msgs
		if !sub.filter.Everything() {
			matching = nil
			for i, m := range in {
				if sub.filter.Matches(m.Attributes) {
					matching = append(matching, msgs[i])
				}
			}
		}
		if len(matching) > 0 {
			out = append(out, share{sub, matching})
		}
	}
	for _, snap := range t.snapshots {
		out = append(out, share{snap, msgs})
	}
	if t.config.MessageRetentionDuration != nil {
		out = append(out, share{t, msgs})
	}
	return out
}

// hold keeps messages for seeks, for as long as the topic retains them. The caller
// holds the read lock.
func (t *topic) hold(msgs []*message) {
	t.retainedMu.Lock()
	defer t.retainedMu.Unlock()
	t.retained = append(t.retained, msgs...)
	t.trim(msgs[len(msgs)-1].stored)
}

// replayable copies the messages the topic retains at now, in Clock nanoseconds.
// The caller holds the lock.
func (t *topic) replayable(now int64) []*message {
	t.retainedMu.Lock()
	defer t.retainedMu.Unlock()
	t.trim(now)
	return slices.Clone(t.retained)
}

// tidy removes what the topic no longer retains at now.
func (t *topic) tidy(now int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.retainedMu.Lock()
	defer t.retainedMu.Unlock()
	t.trim(now)
}

// trim removes messages that are past the retention. The caller holds both locks.
func (t *topic) trim(now int64) {
	keep := t.config.MessageRetentionDuration.AsDuration() // nil is 0: remove all
	expired := 0
	for expired < len(t.retained) && t.retained[expired].stored+int64(keep) <= now {
		expired++
	}
	if expired > 0 {
		if t.journal != nil {
			t.journal.Settle(t.holder, nil, nil, idsOf(t.retained[:expired]))
		}
		clear(t.retained[:expired]) // their memory is freed when append moves to another array
		t.retained = t.retained[expired:]
		if len(t.retained) == 0 {
			t.retained = nil
		}
	}
}

func (t *topic) journalID() uint64 { return t.holder }

// attach adds a subscription, which gets what is published from now on.
func (t *topic) attach(sub *subscription) {
	t.mu.Lock()
	t.subscriptions = append(t.subscriptions, sub)
	t.mu.Unlock()
}

func (t *topic) detach(sub *subscription) {
	t.mu.Lock()
	if i := slices.Index(t.subscriptions, sub); i >= 0 {
		t.subscriptions = slices.Delete(t.subscriptions, i, i+1)
	}
	t.mu.Unlock()
}
