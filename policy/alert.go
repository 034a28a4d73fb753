package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// AcknowledgeAlert records that somebody has taken note of an alert; known is nil if
// nobody has. The first acknowledgement stays.
func AcknowledgeAlert(known *domain.AlertAck, ack domain.AlertAck, now time.Time) (domain.AlertAck, error) {
	if known != nil {
		return *known, reject(ReasonAlreadyAcknowledged, ack.ID, "by %s at %s", known.By, known.At.UTC().Format(time.RFC3339))
	}
	ack.At = now
	return ack, nil
}
