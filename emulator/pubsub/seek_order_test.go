package pubsubemu

import (
	"testing"
	"time"
)

// Of two concurrent publishes, the one with the higher ids may arrive first. A seek
// restores the messages of a key in the order of their ids all the same. P-DEL-04,
// P-SEEK-01
func TestSeek_KeepsKeyInOrderOfIDs(t *testing.T) {
	b := newBacklog(rules{ackDeadline: time.Minute, retention: time.Hour, ordered: true})
	ahead, first, second := &message{id: 7}, &message{id: 5, key: "k"}, &message{id: 6, key: "k"}
	b.add([]*message{ahead, first, second, {id: 8}})
	c, all := newConsumer(0, 0), batchLimits{messages: 10, bytes: 1 << 20}
	b.open(c)
	for _, e := range b.take(c, nil, all, 1) {
		if e.msg == ahead || e.msg == first {
			b.acknowledge(e.lease, 1)
		}
	}
	b.seek(func(*message) bool { return true }, []*message{ahead, first})
	if err := b.check(); err != nil {
		t.Fatal(err)
	}
	var key []uint64
	for _, e := range b.take(c, nil, all, 2) {
		if e.msg.key == "k" {
			key = append(key, e.msg.id)
		}
	}
	if len(key) != 2 || key[0] != 5 || key[1] != 6 {
		t.Errorf("the key was replayed as %d, want 5 then 6", key)
	}
}
