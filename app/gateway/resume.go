package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/domain"
)

// standing is what the store knows of a drone that connects. What it does not know is nil.
type standing struct {
	drone   *domain.Drone
	current *domain.Mission // that holds the drone
	claimed *domain.Mission // that the drone says it flies, if that is another one
}

// resume tells the drone what the store has, as soon as the store answers.
func (s *session) resume() { s.tellStanding(func(dronelink.Message) bool { return true }) }

// catchUp sends the drone the commands that the store has for it.
func (s *session) catchUp() {
	s.tellStanding(func(m dronelink.Message) bool { return m.Command != nil })
}

// tellStanding reads what the store has, as soon as it answers, and tells the drone the wanted
// messages.
func (s *session) tellStanding(wanted func(dronelink.Message) bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	var found standing
	err := backoff.RetryNotify(func() (err error) {
		found, err = s.gateway.standing(ctx, s.hello)
		return err
	}, backoff.WithContext(pauses, ctx), func(err error, _ time.Duration) {
		s.gateway.log.WarnContext(ctx, "mission of a drone that connected cannot be read; trying again", slog.String("drone_id", string(s.who.Drone)), slog.Any("err", err))
	})
	if err != nil { // the session has ended
		return
	}
	if d := found.drone; d != nil && !d.LinkLostAt.IsZero() && d.LinkLostAt.Before(s.began) {
		s.gateway.say(s.state(domain.LinkRestored, s.began))
	}
	for _, m := range found.messages(s.hello) {
		if wanted(m) {
			s.send(m)
		}
	}
}

// Resume returns what a drone must know that says hello and has no session.
func (g *Gateway) Resume(ctx context.Context, hello dronelink.Hello) ([]dronelink.Message, error) {
	found, err := g.standing(ctx, hello)
	if err != nil {
		return nil, err
	}
	return found.messages(hello), nil
}

// lookupLimit bounds one look at the store.
const lookupLimit = 10 * time.Second

// standing reads what the store knows of a drone.
//
// Cost: 2 RPCs, or 1 for a drone without a mission; a read for the drone and for each mission.
func (g *Gateway) standing(ctx context.Context, hello dronelink.Hello) (found standing, err error) {
	if err := g.lookups.Acquire(ctx, 1); err != nil {
		return standing{}, err
	}
	defer g.lookups.Release(1)
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	drones, err := g.missions.DronesOf(ctx, []domain.DroneID{hello.Drone})
	if err != nil {
		return standing{}, fmt.Errorf("drone %s: %w", hello.Drone, err)
	}
	var ids []domain.MissionID
	for i := range drones {
		found.drone = &drones[i]
		if id := drones[i].CurrentMissionID; id != "" {
			ids = append(ids, id)
		}
	}
	if hello.Mission != "" && (len(ids) == 0 || ids[0] != hello.Mission) {
		ids = append(ids, hello.Mission)
	}
	if len(ids) == 0 {
		return found, nil
	}
	missions, err := g.missions.MissionsOf(ctx, ids)
	if err != nil {
		return standing{}, fmt.Errorf("missions of drone %s: %w", hello.Drone, err)
	}
	for i, m := range missions {
		switch {
		case m.DroneID != hello.Drone: // the drone names another one's mission
		case found.drone != nil && m.ID == found.drone.CurrentMissionID:
			found.current = &missions[i]
		default:
			found.claimed = &missions[i]
		}
	}
	return found, nil
}

// messages are what a drone is told that connects and says hello. A drone that has restarted
// and forgotten its mission gets it back if it has begun it; a mission that it has not begun
// comes as the command that it is, with its expiry.
func (f standing) messages(hello dronelink.Hello) (list []dronelink.Message) {
	command := func(m domain.Mission) {
		c := m.Command()
		list = append(list, dronelink.Message{Command: &c})
	}
	if f.drone == nil || f.drone.Unregistered || f.drone.Retired() {
		list = append(list, dronelink.Message{Refusal: unregistered(hello.Drone)})
	}
	if f.claimed != nil && f.claimed.Revoked() {
		command(*f.claimed)
	}
	switch m := f.current; {
	case m == nil:
		list = append(list, dronelink.Message{Resume: &dronelink.Resume{}})
	case m.Revoked():
		list = append(list, dronelink.Message{Resume: &dronelink.Resume{}})
		command(*m)
	case f.drone.MissionAcked || hello.Mission == m.ID:
		list = append(list, dronelink.Message{Resume: &dronelink.Resume{Mission: m, CompletedStops: m.ReachedStops}})
		if m.Amendment != nil && hello.Revision != m.Amendment.Revision {
			command(*m)
		}
	default:
		list = append(list, dronelink.Message{Resume: &dronelink.Resume{}})
		command(*m)
	}
	return list
}

func unregistered(id domain.DroneID) *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.Unregistered,
		Text: fmt.Sprintf("drone %q is not registered: it gets no mission until an operator registers it (statemanager drones apply)", id)}
}

// commandFilter keeps from a drone what it must not obey: commands that have expired, are
// repeated, or whose mission was revoked while they were read or under way.
type commandFilter struct {
	ended   [4]domain.MissionID // revoked in this session; the oldest is forgotten
	next    int                 // index in ended
	sent    domain.MissionID    // of the command sent last
	expires time.Time           // of that
}

// pass reports whether the drone is to get a message, and remembers it. A mission that was
// revoked is taken out of a resume.
func (f *commandFilter) pass(m dronelink.Message, now time.Time) bool {
	if r := m.Resume; r != nil && r.Mission != nil && f.isEnded(r.Mission.ID) {
		*r = dronelink.Resume{}
	}
	c := m.Command
	switch {
	case c == nil:
		return true
	case c.Revoke:
		if !f.isEnded(c.Mission.ID) {
			f.ended[f.next] = c.Mission.ID
			f.next = (f.next + 1) % len(f.ended)
		}
		return true
	case now.After(c.ExpiresAt), f.isEnded(c.Mission.ID), c.Mission.ID == f.sent && !c.ExpiresAt.After(f.expires):
		return false
	}
	f.sent, f.expires = c.Mission.ID, c.ExpiresAt
	return true
}

func (f *commandFilter) isEnded(id domain.MissionID) bool {
	return id != "" && slices.Contains(f.ended[:], id)
}
