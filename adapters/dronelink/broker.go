package dronelink

import (
	"github.com/dronefleet/dronefleet/adapters/wire"
)

// ReadHello reads the hello of a drone behind a broker, a DroneHello in either form. The error
// is a *Refusal.
func ReadHello(data []byte, contentType string) (Hello, error) {
	m, err := wire.DecodeHello(data, contentType)
	if err != nil {
		return Hello{}, &Refusal{Reason: Undecodable, Text: err.Error()}
	}
	return readHello(m)
}

// WriteMessage writes a message for a drone behind a broker, a GatewayMessage, and says of
// which content type it is.
func WriteMessage(m Message, f wire.Format) (data []byte, contentType string, err error) {
	return wire.EncodeLink(down(m), f)
}
