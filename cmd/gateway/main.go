// Command gateway connects drones that have no credentials of Google Cloud: it authenticates
// each of them, publishes its reports, and sends it its commands.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/cli"
)

type grammar struct {
	Link    linkCommand      `cmd:"" serves:"" settings:"" help:"Take drones' connections over gRPC and WebSocket."`
	MQTT    mqttCommand      `cmd:"" name:"mqtt" serves:"" settings:"" help:"Carry messages of drones behind an MQTT broker."`
	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	cli.Main(&grammar{}, "Connects drones to the fleet.")
}
