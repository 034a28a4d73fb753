package operator

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// AcknowledgeAlert records that the operator has taken note of an alert. The first
// acknowledgement stays.
//
// Cost: 3 RPCs, 1 read, 1 write.
func (c Commands) AcknowledgeAlert(ctx context.Context, id, reason string) (Changed[domain.AlertAck], error) {
	if err := ofField("id", domain.CheckAlertID(id)); err != nil {
		return Changed[domain.AlertAck]{}, err
	}
	if err := c.checkAudit(reason); err != nil {
		return Changed[domain.AlertAck]{}, err
	}
	ack, err := c.Store.AcknowledgeAlert(ctx, domain.AlertAck{ID: id, By: c.By, Reason: oneLine(reason)})
	_, already := policy.ReasonOf(err)
	if err != nil && !already {
		return Changed[domain.AlertAck]{}, about("alert", id, err)
	}
	return Changed[domain.AlertAck]{Now: ack, Already: already}, nil
}

// PrintAck prints an acknowledgement.
func (d *Desk) PrintAck(changed Changed[domain.AlertAck], err error) error {
	if err != nil {
		return err
	}
	ack := changed.Now
	if d.JSON {
		return d.printJSON(entity.OfAlertAck(ack))
	}
	d.say("%salert %s is acknowledged by %s at %s UTC: %s", changed.already(), ack.ID, ack.By, stamp(ack.At), ack.Reason)
	return nil
}
