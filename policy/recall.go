package policy

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A recalled mission goes on until nothing is aboard. Then its drone is told to give it up. Its
// orders stay with it until the drone shows that it has left, so that no other drone gets a parcel
// that this one may still pick up (docs/decisions/0010).

// RecallMission recalls a mission for an operator. mission is nil if there is none;
// binding is its drone's.
func RecallMission(binding Binding, mission *domain.Mission, id domain.MissionID, why string, now time.Time) (Change, error) {
	switch {
	case mission == nil:
		return Change{}, reject(ReasonNotFound, string(id), "no such mission")
	case !mission.RecalledAt.IsZero():
		return Change{}, reject(ReasonAlreadyRecalled, string(id), "recalled at %s: %s; %s", mission.RecalledAt.UTC().Format(time.RFC3339), mission.RecallReason, afterRecall(*mission))
	case mission.Status == domain.MissionActive && (binding.Mission == nil || binding.Mission.ID != id):
		return Change{}, reject(ReasonMissionNotActive, string(id), "drone %q does not fly it", mission.DroneID)
	case mission.Status != domain.MissionActive:
		return Change{}, reject(ReasonMissionNotActive, string(id), "the mission is %s; only an ACTIVE one can be recalled", mission.Status)
	}
	b := binding.clone()
	r := &recorder{now: now, cause: domain.CauseOperator}
	m := b.Mission
	before := *m
	m.RecalledAt, m.RecallReason = now, why
	if !b.aboard() {
		revoke(m)
	}
	r.mission(before, m, why)
	r.drone(&b.Drone, &b.Drone, id, "")
	return r.change, nil
}

// afterRecall says where a recalled mission stands.
func afterRecall(m domain.Mission) string {
	switch {
	case m.Status != domain.MissionActive:
		return fmt.Sprintf("the mission is %s", m.Status)
	case m.Revoked():
		return fmt.Sprintf("drone %q has been told and has not left it yet", m.DroneID)
	}
	return fmt.Sprintf("drone %q first delivers what is aboard", m.DroneID)
}

// recalled reports whether the bound mission is recalled.
func (b Binding) recalled() bool { return b.Mission != nil && !b.Mission.RecalledAt.IsZero() }

// aboard reports whether the bound mission carries a parcel.
func (b Binding) aboard() bool {
	for _, o := range b.Orders {
		if o.Status == domain.OrderInDelivery && o.AssignedMissionID == b.Mission.ID {
			return true
		}
	}
	return false
}

// remindRecalled revokes a recalled mission: once nothing is aboard, and again while the drone
// still names the mission.
func (r *recorder) remindRecalled(b *Binding) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || !b.recalled() || m.RevokePending || b.aboard() ||
		r.now.Sub(m.RevokePublishedAt) < r.GhostRevokeEvery {
		return
	}
	revoke(m)
	r.keepMission(*m)
}
