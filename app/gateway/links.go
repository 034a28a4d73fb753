package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// lostAfter is how long a drone may take to come back, by the fleet's clock, before its session
// is reported as lost.
const lostAfter = 5 * time.Second

// maxLost bounds the lost drones that a gateway remembers. A State Manager knows them all.
const maxLost = 100_000

// links is what a gateway knows of sessions that are not its own, and of drones that have
// left. The gateway's lock guards it.
type links struct {
	away map[domain.DroneID]domain.LinkState // drones that may still come back, with what to say if not
	lost map[domain.DroneID]time.Time        // drones whose sessions were reported as lost, and not as restored
}

// opened tells State Managers and other gateways of a session.
func (g *Gateway) opened(s *session) {
	status := domain.LinkOpened
	g.mu.Lock()
	delete(g.links.away, s.who.Drone)
	if _, lost := g.links.lost[s.who.Drone]; lost {
		status = domain.LinkRestored
		delete(g.links.lost, s.who.Drone)
	}
	g.mu.Unlock()
	g.say(s.state(status, s.began))
}

func (s *session) state(status domain.LinkStatus, at time.Time) domain.LinkState {
	return domain.LinkState{DroneID: s.who.Drone, Session: s.id, Status: status, At: at}
}

// say publishes what became of a session.
func (g *Gateway) say(state domain.LinkState) {
	data, attrs, err := wire.EncodeLinkState(state, wire.Protobuf)
	if err != nil {
		g.log.Error("link state cannot be encoded", slog.String("drone_id", string(state.DroneID)), slog.Any("err", err))
		return
	}
	published := g.publisher.Publish(context.Background(), pubsubio.TopicLinks, data, attrs, string(state.DroneID))
	g.beside(func() {
		ctx, cancel := context.WithTimeout(context.Background(), publishLimit)
		defer cancel()
		if _, err := published.Wait(ctx); err != nil {
			g.log.Warn("link state not published", slog.String("drone_id", string(state.DroneID)), slog.String("status", string(state.Status)), slog.Any("err", err))
			return
		}
		g.cfg.Meter.Published(string(state.Status))
	})
}

// beside runs f beside the caller, or in its place after rest.
func (g *Gateway) beside(f func()) {
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		f()
		return
	}
	defer g.mu.Unlock()
	g.work.Go(f)
}

// rest waits for what was begun. From then on nothing begins that would have to be waited for.
func (g *Gateway) rest() {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.work.Wait()
}

// left waits for the drone of a session that has ended without a goodbye, and reports it as
// lost if it does not come back. The gateway's lock must be held.
func (g *Gateway) left(s *session) {
	state := s.state(domain.LinkLost, g.clock.Now())
	g.links.away[state.DroneID] = state
	g.clock.AfterFunc(lostAfter, func() { g.miss(state) })
}

// miss reports a session as lost, unless its drone has come back.
func (g *Gateway) miss(state domain.LinkState) {
	g.mu.Lock()
	missed := g.links.away[state.DroneID] == state
	if missed {
		delete(g.links.away, state.DroneID)
	}
	g.mu.Unlock()
	if missed {
		g.say(state)
	}
}

// heard handles what gateways, this one included, say of sessions.
func (g *Gateway) heard(state domain.LinkState) {
	g.mu.Lock()
	here := g.sessions[state.DroneID]
	restored := false
	var older *session
	switch {
	case state.Status == domain.LinkLost && here != nil && here.id != state.Session:
		restored = true
	case state.Status == domain.LinkLost:
		if len(g.links.lost) < maxLost {
			g.links.lost[state.DroneID] = state.At
		}
	default:
		if away, is := g.links.away[state.DroneID]; is && away.Session != state.Session && !state.At.Before(away.At.Add(-lostAfter)) {
			delete(g.links.away, state.DroneID)
		}
		if state.Status == domain.LinkRestored {
			delete(g.links.lost, state.DroneID)
		}
		if here != nil && here.id != state.Session && here.before(state) {
			older = here
		}
	}
	g.mu.Unlock()
	if restored {
		g.say(here.state(domain.LinkRestored, g.clock.Now()))
	}
	if older != nil {
		older.end(superseded(state.Session))
	}
}

// before reports whether a session began before another one, of another gateway. Their clocks
// may differ by less than what makes a gateway not ready.
func (s *session) before(other domain.LinkState) bool {
	if began := s.began.Truncate(time.Microsecond); !began.Equal(other.At) { // as the wire keeps it
		return began.Before(other.At)
	}
	return s.id < other.Session
}

// awaitReturn waits until every drone that has left is at another gateway or reported as lost,
// or ctx ends; those that are left are reported then.
func (g *Gateway) awaitReturn(ctx context.Context) {
	ticker := time.NewTicker(returnPoll)
	defer ticker.Stop()
	for {
		g.mu.Lock()
		var away []domain.LinkState
		for _, state := range g.links.away {
			away = append(away, state)
		}
		g.mu.Unlock()
		if len(away) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			for _, state := range away {
				g.miss(state)
			}
			return
		}
	}
}

// returnPoll is how often awaitReturn looks, by the machine's clock.
const returnPoll = 50 * time.Millisecond
