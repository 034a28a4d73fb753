package pubsubemu

import (
	"maps"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

var (
	errOutage       = status.Error(codes.Unavailable, "injected fault: outage")
	errStreamBroken = status.Error(codes.Unavailable, "injected fault: the stream broke")
	errAnswerLost   = status.Error(codes.Unavailable, "injected fault: the answer was lost")
)

// Faults injects faults into this server, none until a plan is set.
func (s *Server) Faults() *fault.Injector { return s.faults }

// outage is nil unless an outage is injected.
func (s *Server) outage() error {
	select {
	case <-s.faults.Outage():
		return errOutage
	default:
		return nil
	}
}

// distort applies the plan to a batch of deliveries. The caller holds the lock.
func (sub *subscription) distort(deliveries []delivery) []delivery {
	faults, b := sub.server.faults, sub.backlog
	if !faults.Active(sub.name) || len(deliveries) == 0 {
		return deliveries
	}
	first := deliveries[0].lease
	out := deliveries[:0:0]
	for _, d := range deliveries {
		if faults.Hit(fault.Drop, sub.name, d.lease) {
			continue
		}
		out = append(out, d)
		if !b.rules.exactlyOnce && faults.Hit(fault.Duplicate, sub.name, d.lease) {
			b.lastLease++ // a number that no lease will have
			sub.copied(b.lastLease, d.lease)
			d.lease = b.lastLease
			out = append(out, d)
		}
	}
	if !b.rules.ordered && len(out) > 1 && faults.Hit(fault.Reorder, sub.name, first) {
		for i := len(out) - 1; i > 0; i-- {
			j := faults.Pick(fault.Reorder, sub.name, first+uint64(i), i+1)
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// copied records that a delivery went out a second time under another number. Now
// and then it removes the copies whose lease has ended.
func (sub *subscription) copied(number, lease uint64) {
	if len(sub.copies) > 2*len(sub.backlog.leases) {
		maps.DeleteFunc(sub.copies, func(_, lease uint64) bool { return sub.backlog.leases[lease] == nil })
	}
	if sub.copies == nil {
		sub.copies = map[uint64]uint64{}
	}
	sub.copies[number] = lease
}

// original returns the lease that an ack with this number ends: a copy stands for
// the delivery that it was copied from.
func (sub *subscription) original(number uint64) uint64 {
	if lease, copied := sub.copies[number]; copied {
		return lease
	}
	return number
}

// holdBack applies the Delay fault to messages that just arrived. The caller holds
// the lock.
func (sub *subscription) holdBack(msgs []*message) {
	faults, b := sub.server.faults, sub.backlog
	if !faults.Active(sub.name) {
		return
	}
	delayed := map[*message]bool{}
	for _, m := range msgs {
		if faults.Hit(fault.Delay, sub.name, m.id) {
			delayed[m] = true
		}
	}
	due := sub.server.now() + int64(faults.DelayFor())
	for e := b.all.tail; e != nil && len(delayed) > 0; e = e.links[byArrival].prev {
		if !delayed[e.msg] {
			continue
		}
		delete(delayed, e.msg)
		if e.key != nil && e.key.next != e {
			continue
		}
		if e.queue != nil {
			e.queue.remove(e)
			e.queue = nil
		}
		b.delay(e, due)
	}
}
