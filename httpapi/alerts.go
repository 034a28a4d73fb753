package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
)

func (a *API) alertEndpoints() []endpoint {
	return []endpoint{
		{method: post, path: "/api/v1/alerts/acknowledge", role: oper, summary: "Record that you have taken note of an alert.", answer: operates(a, acknowledge)},
	}
}

// acknowledgeRequest is the body of a command that acknowledges an alert.
type acknowledgeRequest struct {
	changeRequest
	ID string `json:"id" doc:"The alert's, as the stream gives it." example:"CRITICAL_LATE:O2"`
}

func (q *acknowledgeRequest) check(bad *problems) {
	q.changeRequest.check(bad)
	bad.addError("id", domain.CheckAlertID(q.ID))
}

// acknowledge answers POST /api/v1/alerts/acknowledge with the acknowledgement.
func acknowledge(ctx context.Context, c *command, req *acknowledgeRequest) (entity.AlertAck, error) {
	c.id = req.ID
	ack, err := c.AcknowledgeAlert(ctx, req.ID, req.Reason)
	return after(c, req.Reason, ack, err, entity.OfAlertAck)
}
