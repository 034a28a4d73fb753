package pubsubemu

import "time"

// ackOutcome is the outcome for one ack id of a request.
type ackOutcome uint8

const (
	ackApplied   ackOutcome = iota
	ackInvalid              // no live lease has this id
	ackUnordered            // exactly-once and ordered: an earlier message of the key is not acked yet
)

type settlement uint8

const (
	settledAck settlement = iota + 1
	settledNack
)

// settledMemory is how long, at least, a repeated ack of a settled exactly-once
// delivery is answered OK. Clients repeat a request whose answer was lost, and the
// second answer must not contradict the first.
const settledMemory = time.Minute

// settledIDs remembers recently settled lease numbers in two generations, so
// that forgetting costs nothing per id.
type settledIDs struct {
	young, old map[uint64]settlement
	turned     int64 // Clock nanoseconds of the last change of generation
}

func (s *settledIDs) age(now int64) {
	if now-s.turned < int64(settledMemory) {
		return
	}
	if now-s.turned < 2*int64(settledMemory) {
		s.old = s.young
	} else {
		s.old = nil
	}
	s.young, s.turned = nil, now
}

func (s *settledIDs) remember(lease uint64, as settlement, now int64) {
	s.age(now)
	if s.young == nil {
		s.young = map[uint64]settlement{}
	}
	s.young[lease] = as
}

// outcome answers a request for a lease that is no longer alive.
func (s *settledIDs) outcome(lease uint64, want settlement, now int64) ackOutcome {
	s.age(now)
	if s.young[lease] == want || s.old[lease] == want {
		return ackApplied
	}
	return ackInvalid
}
