package console_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-REG-09, F-REG-15, F-REG-19: the console shows how drones are registered, which are not,
// what is due, and that a drone which never reported is nowhere.
func TestConsole_ShowsTheRegistry(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: 4, OrdersPerMinute: 1, Speed: 1, HTTPAddr: "127.0.0.1:0"})
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(f.url))
	await(t, ctx, `document.getElementById("state").textContent === "Live" && fleet.map.drawn === 4`)

	clients := emutest.Connect(t, f.hosts)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: time.Now})
	known, err := store.Drone(t.Context(), "DRONE-001")
	if err != nil {
		t.Fatal(err)
	}
	due, never := known.Registration(), domain.DroneRegistration{ID: "NEVER-1", HomeDepotID: known.HomeDepotID}
	due.Own = known.Properties()
	due.Own.Due = []domain.DueItem{{Item: "propellers", EveryDays: 1}}
	never.Own = domain.DroneProperties{PayloadCapacityKg: 2, ConsumptionPerKm: 3, MaxFlightTimeMinutes: 25}
	for _, registration := range []domain.DroneRegistration{due, never} {
		if _, err := store.ApplyDrone(t.Context(), registration, firestoretx.Change{By: "ann", Why: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	stranger := domain.Telemetry{DroneID: "STRANGER-1", Timestamp: time.Now(), Position: domain.Position{Lat: 48.86, Lon: 2.34}, Battery: 70, Status: domain.DroneIdle}
	for _, err := range store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{stranger}) {
		if err != nil {
			t.Fatal(err)
		}
	}

	open(t, ctx, 1)
	row := func(id, text string) string {
		return `[...document.querySelectorAll("#panel tbody tr")].some((r) => r.textContent.includes("` + id + `") && r.textContent.includes("` + text + `"))`
	}
	await(t, ctx, row("STRANGER-1", "not registered"))
	await(t, ctx, row("NEVER-1", "never"))
	await(t, ctx, row("D1", "due soon"))
	await(t, ctx, `fleet.map.drawn === 5 && !fleet.store.marks.has("NEVER-1")`)
	js[any](t, ctx, `fleet.select({kind: "drone", id: "DRONE-001"}), 1`)
	for _, text := range []string{"by dronefleet dev", "5 kg", "2 to 8 °C", "propellers: 20", "item propellers is due at"} {
		await(t, ctx, `document.getElementById("selected").textContent.includes("`+text+`")`)
	}
	shoot(t, ctx, "registry")
	accessible(t, ctx, "registry")
	open(t, ctx, 3)
	await(t, ctx, `document.getElementById("rail").textContent.includes("unregistered drone STRANGER-1")`)
	await(t, ctx, `document.getElementById("rail").textContent.includes("item propellers is due at")`)
	shoot(t, ctx, "registry-alerts")
}
