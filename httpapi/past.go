package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

// pastTime is when; maybePast is the same for a request that may leave it out.
var (
	pastTime  = timeParameter("at", "When.", true)
	maybePast = timeParameter("at", "When; default now, or soon after the creation of an order that is over.", false)
)

func timeParameter(name, says string, required bool) parameter {
	return parameter{
		name: name, says: says, example: "2026-11-21T12:00:00Z", schema: schema{"type": "string", "format": "date-time"}, required: required,
		wrong: func(value string) string {
			at, err := input.Time(value)
			switch {
			case err != nil:
				return fmt.Sprintf("is %.64q; give a time such as 2026-11-21T12:00:00Z", value)
			case at.Year() < 1970:
				return fmt.Sprintf("is %.64q, before 1970; give a later time", value)
			}
			return ""
		},
	}
}

// pastEntity is an entity in the form that a stream's snapshot has.
type pastEntity struct {
	Kind   live.Kind `json:"kind"`
	ID     string    `json:"id"`
	Entity any       `json:"entity"`
}

// schema implements described: the kind says what the entity is.
func (pastEntity) schema(s *schemas) schema {
	var kinds []schema
	for _, k := range []struct {
		kind   live.Kind
		entity schema
	}{
		{live.KindDepot, s.of(typeOf[entity.Depot]())}, {live.KindWarehouse, s.of(typeOf[entity.Warehouse]())}, {live.KindDrone, s.of(typeOf[entity.Drone]())},
		{live.KindMission, s.of(typeOf[entity.Mission]())}, {live.KindOrder, s.of(typeOf[entity.Order]())},
		{live.KindCycle, s.of(typeOf[entity.CycleForm]())}, {live.KindAlert, s.of(typeOf[entity.Alert]())},
	} {
		kinds = append(kinds, schema{
			"type": "object", "required": []string{"kind", "id", "entity"},
			"properties": schema{"kind": enum([]live.Kind{k.kind}), "id": schema{"type": "string"}, "entity": k.entity},
		})
	}
	return schema{"oneOf": kinds}
}

// pastFleet is the fleet as it was.
type pastFleet struct {
	serverTime
	ReadTime time.Time    `json:"readTime"`
	Entities []pastEntity `json:"entities"`
}

// past answers GET /api/v1/snapshot?at= with the fleet as it was: all drones and places,
// the open orders, the active missions, and the cycles of the ten minutes before.
//
// Cost: see firestoretx.Store.PastAt.
func (a *API) past(ctx context.Context, r *request) (then pastFleet, err error) {
	at, _ := input.Time(r.value("at")) // checked
	p, err := a.store.PastAt(ctx, at)
	if errors.Is(err, firestoretx.ErrNotKept) {
		return then, problem(http.StatusGone, "%s; give a time within that, or enable point-in-time recovery of the database", err)
	}
	if err != nil {
		return then, err
	}
	for _, malformed := range p.Malformed {
		a.log.WarnContext(ctx, "document left out of the past; it was malformed then", slog.Any("err", malformed))
	}
	return pastFleet{r.serverTime(), p.ReadTime.UTC(), entitiesOf(p)}, nil
}

// entitiesOf are the entities of the past.
func entitiesOf(p firestoretx.Past) []pastEntity {
	decisions := map[domain.CycleID][]domain.LedgerEntry{}
	for _, d := range p.Decisions {
		decisions[d.CycleID] = append(decisions[d.CycleID], d)
	}
	drones := make(map[domain.DroneID]domain.Drone, len(p.Drones))
	for _, d := range p.Drones {
		drones[d.ID] = d
	}
	return slices.Concat(
		[]pastEntity{}, // not nil
		pastEntities(live.KindDepot, p.Depots, func(d domain.Depot) (string, any) { return string(d.ID), entity.OfDepot(d) }),
		pastEntities(live.KindWarehouse, p.Warehouses, func(w domain.Warehouse) (string, any) { return string(w.ID), entity.OfWarehouse(w) }),
		pastEntities(live.KindDrone, p.Drones, func(d domain.Drone) (string, any) { return string(d.ID), entity.OfLiveDrone(d) }),
		pastEntities(live.KindMission, p.Missions, func(m domain.Mission) (string, any) {
			return string(m.ID), entity.OfLiveMission(m, drones[m.DroneID])
		}),
		pastEntities(live.KindOrder, p.Orders, func(o domain.Order) (string, any) { return string(o.ID), entity.OfOrder(o) }),
		pastEntities(live.KindCycle, p.Cycles, func(c domain.Cycle) (string, any) {
			return string(c.ID), entity.OfJudgedCycle(c, slices.Values(decisions[c.ID]))
		}),
	)
}

func pastEntities[D any](kind live.Kind, list []D, form func(D) (id string, entity any)) []pastEntity {
	return entity.Each(list, func(d D) pastEntity {
		id, shown := form(d)
		return pastEntity{kind, id, shown}
	})
}
