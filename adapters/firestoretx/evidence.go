package firestoretx

import (
	"context"
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// endedCache holds missions, as last read, that reports name but that do not hold their drone. A
// report that proves nothing about an older state proves nothing about a newer one, so most reports
// need no read.
type endedCache map[domain.MissionID]*cachedMission

type cachedMission struct {
	mission domain.Mission // without an ID if there is none
	used    time.Time
}

// holdsNot reports whether the report's mission does not hold the drone and never will again, as
// far as the cache knows.
func (c endedCache) holdsNot(t domain.Telemetry) bool {
	k, ok := c[t.MissionID]
	return ok && k.mission.ID != "" && (k.mission.Status != domain.MissionActive || k.mission.DroneID != t.DroneID)
}

// evict drops missions that no report has named for a while.
func (c endedCache) evict(now time.Time) {
	maps.DeleteFunc(c, func(_ domain.MissionID, k *cachedMission) bool { return now.Sub(k.used) > forgetAfter })
}

// proveEnded applies reports that name an ended mission to that mission's stops (F-TEL-11).
// A report that proves something is not stale.
func (a *TelemetryApplier) proveEnded(ctx context.Context, verdicts []verdict) []verdict {
	proved := make([]verdict, len(verdicts))
	for i, v := range verdicts {
		proved[i] = a.proveReport(ctx, v)
	}
	return proved
}

// proveReport applies one report to the mission that it names until it proves nothing new.
// Most reports prove nothing at all.
func (a *TelemetryApplier) proveReport(ctx context.Context, v verdict) verdict {
	if !v.past || v.err != nil && !v.stale() || a.provesNothing(v.Telemetry) {
		return v
	}
	for range maxRecalls {
		mission, changed, err := a.store.proveLate(ctx, v.Telemetry)
		if err != nil {
			v.err = wrap(err, "telemetry of drone %s about mission %s", v.DroneID, v.MissionID)
			break
		}
		a.ended[v.MissionID] = &cachedMission{mission: mission, used: a.store.now()}
		if !changed {
			break
		}
		v.err = nil
	}
	return v
}

// provesNothing reports whether the cached mission shows that a report proves nothing new. This
// does not depend on orders.
func (a *TelemetryApplier) provesNothing(t domain.Telemetry) bool {
	k, ok := a.ended[t.MissionID]
	if !ok {
		return false
	}
	k.used = a.store.now()
	_, err := a.store.drone.ProveLate(policy.Ended{Mission: k.mission}, t, k.used)
	return err != nil
}

// maxRecalls bounds the transactions for one report: each takes at most one order from
// another mission, and a mission has at most 64.
const maxRecalls = 66

// proveLate applies a report to the ended mission that it names, in one transaction. It returns the
// resulting mission, without an ID if there is none, and whether it changed.
//
// Cost: 4 RPCs if the report proves nothing new, else 5, or 7 if an order was assigned
// again.
func (s *Store) proveLate(ctx context.Context, t domain.Telemetry) (mission domain.Mission, changed bool, err error) {
	var notes []domain.Event
	err = s.transact(ctx, nil, func(tx *txn) error {
		mission, changed, notes = domain.Mission{}, false, nil
		if err := tx.readMissions(t.MissionID); err != nil {
			return err
		}
		m, ok := tx.missions[t.MissionID]
		if !ok {
			return nil
		}
		if mission = m; m.Status == domain.MissionActive {
			return nil
		}
		e := policy.Ended{Mission: m, Orders: tx.orders}
		if _, err := s.drone.ProveLate(e, t, tx.now); err != nil {
			return nil // nothing new
		}
		if drone, taken := e.TakenOver(t); taken {
			b, err := tx.readBinding(drone)
			if err != nil {
				return err
			}
			e.Orders, e.Other = tx.orders, &b
		}
		change, err := s.drone.ProveLate(e, t, tx.now)
		if err != nil {
			return nil
		}
		changed = true
		for _, c := range change.Missions {
			if c.ID == m.ID {
				mission = c
			}
		}
		for _, event := range change.Events {
			if event.Reason == string(policy.ReasonPickedUpAgain) {
				notes = append(notes, event)
			}
		}
		return tx.write(change)
	})
	if err == nil {
		for _, n := range notes {
			s.pickedUpAgain(ctx, n.OrderID)
		}
	}
	return mission, changed, err
}
