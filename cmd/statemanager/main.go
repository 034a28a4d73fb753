// Command statemanager keeps the state of a medical drone fleet: it applies
// telemetry, orders and mission decisions from Pub/Sub to Firestore.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/cli"
)

type grammar struct {
	Serve       serveCommand       `cmd:"" serves:"" settings:"" help:"Run the State Manager against Google Cloud or emulators."`
	Orders      ordersCommand      `cmd:"" help:"List, hold, release and cancel orders."`
	Drones      dronesCommand      `cmd:"" help:"Register, list, show, maintain, ground and retire drones, clear emergencies."`
	DroneTypes  droneTypesCommand  `cmd:"" help:"List, apply and delete types of drones."`
	Alerts      alertsCommand      `cmd:"" help:"Acknowledge alerts."`
	Missions    missionsCommand    `cmd:"" help:"List and recall missions."`
	Cycles      cyclesCommand      `cmd:"" help:"List solve cycles."`
	Decisions   decisionsCommand   `cmd:"" help:"List decisions."`
	Depots      depotsCommand      `cmd:"" help:"List, apply and delete depots."`
	Warehouses  warehousesCommand  `cmd:"" help:"List, apply and delete warehouses."`
	Audit       auditCommand       `cmd:"" help:"Print the history of one drone, order, mission, decision, cycle, depot or warehouse."`
	Deadletters deadLettersCommand `cmd:"" help:"List, replay and discard dead-lettered messages."`
	Publish     publishCommand     `cmd:"" help:"Publish one message, for trials and repairs."`
	Keys        keysCommand        `cmd:"" help:"Make, list and revoke API keys."`
	Webhooks    webhooksCommand    `cmd:"" help:"Tell other systems what becomes of orders."`
	Locks       locksCommand       `cmd:"" help:"Show the locks that are held, and break them."`
	Dev         movedCommand       `cmd:"" hidden:""`
	Emulators   movedCommand       `cmd:"" hidden:""`
	Version     kong.VersionFlag   `help:"Print the version."`
}

func main() {
	cli.Main(&grammar{Dev: movedCommand{name: "dev"}, Emulators: movedCommand{name: "emulators"}}, "Keeps the state of a medical drone fleet in Firestore.")
}
