package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/input"
)

func (a *API) handoverEndpoints() []endpoint {
	return []endpoint{{
		method: get, path: "/api/v1/handover", role: viewer, summary: "Tell the next shift what is open, what to watch, and what was done by whom since a time.",
		parameters: []parameter{timeParameter("since", "When the shift began, at most 7 days ago.", true)}, answer: writes(a.handover),
	}}
}

// handoverNow is what the next shift should know.
type handoverNow struct {
	serverTime
	Since     time.Time           `json:"since"`
	ReadTime  time.Time           `json:"readTime"`
	Orders    []entity.LiveOrder  `json:"orders" doc:"The open ones, the most urgent first."`
	Drones    []entity.Drone      `json:"drones" doc:"Those that take no mission until somebody acts."`
	Alerts    []entity.Alert      `json:"alerts" doc:"The worst first, a cause before what it explains."`
	Steps     []operator.StepJSON `json:"steps" doc:"Everything that people did since, in words, oldest first."`
	Events    []entity.Event      `json:"events" doc:"The changes of drones, orders and missions among the steps."`
	Malformed []string            `json:"malformed,omitempty" doc:"Documents that cannot be decoded and are left out."`
}

// longestShift bounds what one request reads: nobody hands over years.
const longestShift = 7 * 24 * time.Hour

// handover answers GET /api/v1/handover?since=.
//
// Cost: those of live.Feed.Summary and operator.Commands.Done.
func (a *API) handover(ctx context.Context, r *request) (h handoverNow, err error) {
	if a.feed == nil {
		return h, problem(http.StatusNotFound, "this process has no live feed; ask a State Manager")
	}
	since, _ := input.Time(r.value("since")) // checked
	now := r.now()
	if !since.Before(now) {
		return h, badParameter("since", "is %s, not in the past; give an earlier time", since.UTC().Format(time.RFC3339))
	}
	if now.Sub(since) > longestShift {
		return h, badParameter("since", "is %s, more than %d days ago; give a later time", since.UTC().Format(time.RFC3339), longestShift/(24*time.Hour))
	}
	done, err := a.operator.Done(ctx, since, now)
	if err != nil {
		return h, err
	}
	summary, err := a.feed.Summary(ctx, done.Acks)
	if err != nil {
		return h, err
	}
	return handoverNow{
		r.serverTime(), since.UTC(), summary.ReadTime, summary.Orders, summary.Drones, summary.Alerts, done.Steps, entity.OrEmpty(entity.Each(done.Events, entity.OfEvent)),
		entity.Each(append(done.Malformed, summary.Malformed...), error.Error),
	}, nil
}
