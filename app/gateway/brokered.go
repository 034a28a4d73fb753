package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/restart"
)

// Brokered is a gateway whose drones are connected to a broker. It has no sessions: the broker
// says which drone's connection has begun or is lost, to any of the gateways.
type Brokered struct {
	*Gateway

	latest map[domain.DroneID]opening // at any gateway; Gateway.mu guards it
}

// opening is a connection that a drone has opened.
type opening struct {
	session string
	at      time.Time
}

// NewBrokered returns a gateway for the drones of a broker.
func NewBrokered(g *Gateway) *Brokered {
	return &Brokered{Gateway: g, latest: map[domain.DroneID]opening{}}
}

// Follow hears what other gateways say of connections, until ctx ends. Then it waits until the
// drones whose connection was lost here are back or reported, for limit at most. id is the
// process's, and unique.
func (b *Brokered) Follow(ctx context.Context, client *pubsub.Client, id string, limit time.Duration) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		restart.Until(following, func() {
			err := pubsubio.FollowLinks(following, client, id, b.log, func() {}, func(s domain.LinkState) {
				if s.Status == domain.LinkLost {
					b.heard(s)
				} else {
					b.noteOpened(s)
				}
			})
			if following.Err() == nil {
				b.log.WarnContext(following, "connections at other gateways cannot be followed; trying again", slog.Any("err", err))
			}
		})
	})
	<-ctx.Done()
	ending, cancel := context.WithTimeout(following, limit)
	defer cancel()
	b.awaitReturn(ending)
	b.rest()
	stop()
	running.Wait()
}

// noteOpened notes that a drone has opened a connection, here or elsewhere, and reports whether this
// gateway knew the drone as lost. What it has noted already, or is older, changes nothing.
func (b *Brokered) noteOpened(s domain.LinkState) (lost bool) {
	at := s.At.Truncate(time.Microsecond) // as the wire keeps it
	b.mu.Lock()
	defer b.mu.Unlock()
	last, known := b.latest[s.DroneID]
	if known && !at.After(last.at) {
		return false
	}
	if known || len(b.latest) < maxLost {
		b.latest[s.DroneID] = opening{s.Session, at}
	}
	_, lost = b.links.lost[s.DroneID]
	delete(b.links.away, s.DroneID)
	delete(b.links.lost, s.DroneID)
	return lost
}

// Linked takes what the broker says of a drone's connection. One that is lost is reported if the
// drone has not opened another one, at any gateway, within lostAfter.
func (b *Brokered) Linked(s domain.LinkState) {
	if s.Status == domain.LinkLost {
		b.mu.Lock()
		defer b.mu.Unlock()
		if last, known := b.latest[s.DroneID]; !known || last.session == s.Session { // else it is back already
			b.links.away[s.DroneID] = s
			b.clock.AfterFunc(lostAfter, func() { b.miss(s) })
		}
		return
	}
	lost := b.noteOpened(s)
	b.work.Go(func() {
		if lost || b.knownLost(s.DroneID) {
			s.Status = domain.LinkRestored
		}
		b.say(s)
	})
}

// knownLost reports whether the drone's document says that it is lost, for a gateway that has not
// heard of the loss. If Firestore does not answer, it may be: a restored link that was not lost
// does no harm.
//
// Cost: 1 RPC, 1 read.
func (b *Brokered) knownLost(id domain.DroneID) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	if b.lookups.Acquire(ctx, 1) != nil {
		return true
	}
	defer b.lookups.Release(1)
	drones, err := b.missions.DronesOf(ctx, []domain.DroneID{id})
	return err != nil || len(drones) > 0 && !drones[0].LinkLostAt.IsZero()
}
