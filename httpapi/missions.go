package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

func (a *API) missionEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/missions", role: viewer, summary: "List missions.",
			parameters: listed("missions", choice("status", domain.MissionStatuses)), answer: list("missions", a.missions, entity.OfMission),
		},
		{method: get, path: "/api/v1/missions/{id}", role: viewer, summary: "Read one mission.", answer: single[domain.MissionID](a.store.Mission, entity.OfMission)},
		{method: get, path: "/api/v1/missions/{id}/story", role: viewer, summary: "Tell everything recorded about one mission.", answer: a.story(operator.SubjectMission)},
		{method: post, path: "/api/v1/missions/{id}/recall", role: oper, summary: "Have a drone give its mission up once nothing is aboard.", answer: changes(a, operator.Commands.RecallMission, entity.OfMission)},
	}
}

func (a *API) missions(ctx context.Context, r *request) (firestoretx.Listing[domain.Mission], error) {
	return a.store.ListMissions(ctx, domain.MissionStatus(r.value("status")), r.page())
}
