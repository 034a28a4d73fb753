package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/domain"
)

// F-GW-01, F-GW-04: a drone that connects gets back the mission that it has begun, with its count; one
// that it has not begun comes as a command, which expires; an ended one is revoked again.
func TestStanding_TellsADroneWhatItMustKnow(t *testing.T) {
	acked := domain.Drone{ID: "D1", CurrentMissionID: "M1", MissionAcked: true, RegisteredAt: time.Unix(1, 0)}
	told := acked
	told.MissionAcked = false
	idle, stranger := domain.Drone{ID: "D1"}, domain.Drone{ID: "D1", Unregistered: true}
	active := domain.Mission{ID: "M1", DroneID: "D1", Status: domain.MissionActive, RouteRevision: 1, ReachedStops: 2}
	amended := active
	amended.Amendment = &domain.Amendment{Revision: 2}
	failed := domain.Mission{ID: "M0", DroneID: "D1", Status: domain.MissionFailed}
	lost := failed
	lost.ID = "M1"
	for name, c := range map[string]struct {
		found standing
		hello dronelink.Hello
		want  []string
	}{
		"has forgotten its mission": {standing{drone: &acked, current: &active}, dronelink.Hello{}, []string{"resume M1 after 2"}},
		"knows its mission":         {standing{drone: &acked, current: &active}, dronelink.Hello{Mission: "M1", Revision: 1}, []string{"resume M1 after 2"}},
		"has not heard of a change": {standing{drone: &acked, current: &amended}, dronelink.Hello{Mission: "M1", Revision: 1}, []string{"resume M1 after 2", "command M1 of 2"}},
		"knows of the change":       {standing{drone: &acked, current: &amended}, dronelink.Hello{Mission: "M1", Revision: 2}, []string{"resume M1 after 2"}},
		"has not begun it":          {standing{drone: &told, current: &active}, dronelink.Hello{}, []string{"resume nothing", "command M1 of 1"}},
		"flies it unheard":          {standing{drone: &told, current: &active}, dronelink.Hello{Mission: "M1"}, []string{"resume M1 after 2"}},
		"flies an ended one":        {standing{drone: &idle, claimed: &failed}, dronelink.Hello{Mission: "M0"}, []string{"revoke M0", "resume nothing"}},
		"has one that failed":       {standing{drone: &acked, current: &lost}, dronelink.Hello{}, []string{"resume nothing", "revoke M1"}},
		"has nothing":               {standing{drone: &idle}, dronelink.Hello{}, []string{"resume nothing"}},
		"is not registered":         {standing{drone: &stranger}, dronelink.Hello{}, []string{"DRONE_UNREGISTERED", "resume nothing"}},
		"is not known":              {standing{}, dronelink.Hello{}, []string{"DRONE_UNREGISTERED", "resume nothing"}},
	} {
		var got []string
		for _, m := range c.found.messages(c.hello) {
			switch {
			case m.Refusal != nil:
				got = append(got, string(m.Refusal.Reason))
			case m.Resume != nil && m.Resume.Mission == nil:
				got = append(got, "resume nothing")
			case m.Resume != nil:
				got = append(got, fmt.Sprintf("resume %s after %d", m.Resume.Mission.ID, m.Resume.CompletedStops))
			case m.Command.Revoke:
				got = append(got, "revoke "+string(m.Command.Mission.ID))
			default:
				got = append(got, fmt.Sprintf("command %s of %d", m.Command.Mission.ID, m.Command.Mission.RouteRevision))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("a drone that %s is told %q, want %q", name, got, c.want)
		}
	}
}
