// Command dronefleet is for trying out: it runs a whole fleet in one process,
// with embedded servers and simulated drones, or the embedded servers alone.
// Nothing in production needs it.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/cli"
)

type grammar struct {
	Dev       devCommand       `cmd:"" serves:"" settings:"" help:"Run a whole fleet in this process: embedded servers, State Manager, optimizer, simulated drones."`
	Emulators emulatorsCommand `cmd:"" serves:"" settings:"" help:"Run the embedded Firestore and Pub/Sub alone."`
	Version   kong.VersionFlag `help:"Print the version."`
}

func main() {
	cli.Main(&grammar{}, "Runs a simulated drone fleet and embedded servers, to try DroneFleet out.")
}
