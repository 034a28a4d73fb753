package pubsubemu

// keyQueue holds the unsettled messages of one ordering key in publish order:
//
//	[in flight or acked out of order ...][next ... not yet delivered]
//
// While anything before next is in flight the key is bound to the consumer that
// holds it, and only that consumer gets more of the key. A nack or an expiry
// moves next back and ends the leases of everything after it.
type keyQueue struct {
	name            string
	entries         list
	next            *entry    // first entry not delivered, nil when all are
	owner           *consumer // bound consumer
	orphaned        bool      // leases outlive a closed stream: bound to no consumer, but not free
	inFlight        int
	forwarding      int      // entries being forwarded to the dead-letter topic
	in              *keyList // the list of deliverable keys that links it
	prev, following *keyQueue
}

// deliverable says whether a consumer may get the next message now. The key waits
// while next backs off, and while an earlier message is being forwarded.
func (k *keyQueue) deliverable() bool {
	return k.next != nil && k.next.state == stateReady && k.forwarding == 0 && !k.orphaned
}

// afterDelivered is the entry to deliver after e. An entry that is being forwarded
// to the dead-letter topic is skipped: it comes back only if that fails.
func (k *keyQueue) afterDelivered(e *entry) *entry {
	next := k.entries.after(e)
	for next != nil && next.state == stateForwarding {
		next = k.entries.after(next)
	}
	return next
}

// keyList is a round-robin list of keys with something to deliver.
type keyList struct {
	head, tail *keyQueue
	n          int
}

func (l *keyList) pushBack(k *keyQueue) {
	k.in, k.prev, k.following = l, l.tail, nil
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.following = k
	}
	l.tail = k
	l.n++
}

// first is the next message of the first key, or nil.
func (l *keyList) first() *entry {
	if l.head == nil {
		return nil
	}
	return l.head.next
}

func (k *keyQueue) unlist() {
	l := k.in
	if l == nil {
		return
	}
	if k.prev == nil {
		l.head = k.following
	} else {
		k.prev.following = k.following
	}
	if k.following == nil {
		l.tail = k.prev
	} else {
		k.following.prev = k.prev
	}
	k.in, k.prev, k.following = nil, nil, nil
	l.n--
}
