package operator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// ListMissions prints one page of missions.
//
// Cost: 1 RPC, a read per mission.
func (d *Desk) ListMissions(ctx context.Context, status domain.MissionStatus, page firestoretx.Page) error {
	l, err := d.Store.ListMissions(ctx, status, page)
	if err != nil {
		return err
	}
	header := []string{"MISSION", "STATUS", "DRONE", "ORDERS", "STOPS REACHED", "STARTED (UTC)", "ENDED (UTC)", "FAILED BECAUSE"}
	return printPage(d, "missions", nothing("missions", string(status), false), l, entity.OfMission, header, func(m domain.Mission) []string {
		return []string{
			string(m.ID), string(m.Status), string(m.DroneID), idsText(m.OrderIDs), fmt.Sprintf("%d of %d", m.ReachedStops, len(m.Route)),
			stamp(m.StartTime), stamp(m.EndTime), string(m.FailureReason),
		}
	})
}

// ListCycles prints one page of solve cycles.
//
// Cost: 1 RPC, a read per cycle.
func (d *Desk) ListCycles(ctx context.Context, outcome domain.CycleOutcome, page firestoretx.Page) error {
	l, err := d.Store.ListCycles(ctx, outcome, page)
	if err != nil {
		return err
	}
	header := []string{"CYCLE", "DEPOTS", "OUTCOME", "STARTED (UTC)", "DRONES", "ORDERS", "MISSIONS", "AMENDED", "UNSERVED", "SOLVED IN", "DETAIL"}
	return printPage(d, "cycles", nothing("cycles", string(outcome), false), l, entity.OfCycle, header, func(c domain.Cycle) []string {
		return []string{
			string(c.ID), cmp.Or(idsText(c.DepotIDs), string(c.DepotID)), string(c.Outcome), stamp(c.StartedAt), fmt.Sprint(c.Drones), fmt.Sprint(c.Orders),
			fmt.Sprint(c.Missions), fmt.Sprint(c.Amended), fmt.Sprint(len(c.Unserved)), c.SolveTook.String(), c.Detail,
		}
	})
}

// ListDecisions prints one page of the ledger.
//
// Cost: 1 RPC, a read per decision.
func (d *Desk) ListDecisions(ctx context.Context, f firestoretx.LedgerFilter, page firestoretx.Page) error {
	l, err := d.Store.ListLedger(ctx, f, page)
	if err != nil {
		return err
	}
	header := []string{"DECISION", "OUTCOME", "REASON", "DRONE", "ORDERS", "MISSION", "CYCLE", "APPLIED (UTC)", "DETAIL"}
	return printPage(d, "decisions", nothing("decisions", string(f.Outcome), false), l, entity.OfDecision, header, func(e domain.LedgerEntry) []string {
		return []string{
			string(e.ID), string(e.Outcome), e.Reason, string(e.DroneID), idsText(e.OrderIDs), string(e.MissionID), string(e.CycleID), stamp(e.AppliedAt), cmp.Or(e.Detail, e.Warning),
		}
	})
}

// idsText lists ids, separated by spaces.
func idsText[ID ~string](ids []ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, " ")
}
