package console_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/sim/devrun"
)

// F-DAY-02: in a trial an operator starts and ends incidents at the console, which says what to look at, also after they are
// over. What the trial refuses is said. Without a trial there is no such view.
func TestConsole_OffersIncidentsInATrial(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: 12, OrdersPerMinute: 6, Speed: 1, HTTPAddr: "127.0.0.1:0", Operator: true})
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(f.url))
	await(t, ctx, `fleet.map.drawn === 12 && [...document.querySelectorAll("#tabs button")].some((b) => b.textContent === "Incidents")`)
	js[any](t, ctx, `fleet.show("Incidents"), 1`)
	await(t, ctx, `document.querySelectorAll("#incidents li").length === 6`)
	row := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#incidents li")].find((l) => l.querySelector("b").textContent === %q)`, name)
	}
	press := func(name, button string) {
		t.Helper()
		await(t, ctx, fmt.Sprintf(`%s.querySelector("button").textContent === %q`, row(name), button))
		js[any](t, ctx, row(name)+`.querySelector("button").click(), 1`)
	}
	press("wind", "Start")
	await(t, ctx, row("wind")+`.innerText.includes("Look at") && `+row("wind")+`.innerText.includes("Under way until")`)
	accessible(t, ctx, "Incidents")
	shoot(t, ctx, "Incidents")
	press("mass-casualty", "Start")
	await(t, ctx, row("mass-casualty")+`.innerText.includes("orders 12 CRITICAL parcels") && fleet.live.all.order.size >= 12`)
	open(t, ctx, 0)
	js[any](t, ctx, `fleet.show("Incidents"), 1`)
	await(t, ctx, row("mass-casualty")+`.innerText.includes("Look at the orders with the least time left")`)
	press("wind", "End")
	await(t, ctx, row("wind")+`.innerText.includes("Over")`)
	js[any](t, ctx, `{ const ask = fetch; window.fetch = (path, how) => how?.method === "POST" ? Promise.resolve(new Response('{"detail": "no drone has a parcel aboard"}', {status: 409})) : ask(path, how) }`)
	press("drone-lost", "Start")
	await(t, ctx, `document.querySelector("#panel .wrong").textContent === "drone-lost: no drone has a parcel aboard"`)
}
