// Command dronefleet is for trying DroneFleet out: it runs a whole fleet in one
// process, with embedded servers and simulated drones, or the embedded servers or the
// drones alone. Production does not use it.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/cli"
)

type grammar struct {
	Dev       devCommand       `cmd:"" serves:"" settings:"" help:"Run a whole simulated fleet in one process: embedded servers, State Manager, optimizer, drones."`
	Emulators emulatorsCommand `cmd:"" serves:"" settings:"" help:"Run only the embedded Firestore and Pub/Sub."`
	Fleet     fleetCommand     `cmd:"" serves:"" settings:"" help:"Run simulated drones and hospitals against a running fleet: embedded servers, emulators or a test project."`
	Capacity  capacityCommand  `cmd:"" help:"Say what a fleet of any size would use and cost, and what breaks first, by a model."`
	Conform   conformCommand   `cmd:"" help:"Examine a program of yours against the rules of api/asyncapi.yaml."`
	Version   kong.VersionFlag `help:"Print the version."`
}

func main() {
	cli.Main(&grammar{}, "Runs a simulated drone fleet and embedded servers, to try DroneFleet out.")
}
