package gateway

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

func mismatch(field string, said, is domain.DroneID) *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.IdentityMismatch, Final: true,
		Text: fmt.Sprintf("%s is %.128q, but the connection belongs to %q; use the credentials of that drone, or send the id that they name", field, said, is)}
}

func superseded(by string) *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.Superseded, Final: true,
		Text: "the same drone has connected again, in session " + by + "; if it has not, revoke its credentials: somebody else has them"}
}

func reconnect() *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.Reconnect, Final: true, RetryAfter: spread(reconnectRetry), Text: "this gateway is stopping; reconnect, and another one answers"}
}

func expired() *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.Expired, Final: true, Text: "the certificate or token has expired; reconnect with a new one"}
}

func unavailable(err error) *dronelink.Refusal {
	return &dronelink.Refusal{Reason: dronelink.Unavailable, Final: true, RetryAfter: spread(unavailableRetry),
		Text: "the report could not be published: " + err.Error() + "; reconnect, and send it and all later ones again"}
}

// unavailableRetry keeps drones from reconnecting for each report during an outage.
const unavailableRetry = 2 * time.Second

// spread varies a pause by half either way, so that drones do not come back all at once.
func spread(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause)
}

func future(sequence uint32, ahead time.Duration) *dronelink.Refusal {
	return &dronelink.Refusal{Sequence: sequence, Reason: dronelink.FutureTimestamp,
		Text: fmt.Sprintf("timestamp: measured %s ahead of the gateway; set the drone's clock", ahead.Round(time.Millisecond))}
}

func tooLarge(size int64) string {
	return fmt.Sprintf("the report has %d bytes; send at most %d", size, MaxReport)
}

// refusalOf says what is wrong with a report that cannot be read.
func refusalOf(sequence uint32, err error) *dronelink.Refusal {
	reason := dronelink.Invalid
	if _, undecodable := errors.AsType[*wire.UndecodableError](err); undecodable {
		reason = dronelink.Undecodable
	}
	return &dronelink.Refusal{Sequence: sequence, Reason: reason, Text: err.Error()}
}
