package console_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// F-POS-02: the selected drone's card shows how old its position is and how far off it can be. A circle on the
// map shows that beyond 100 m, until the next report.
func TestConsole_ShowsHowExactAPositionIs(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	drone := func(id string, kmh float64) form {
		return form{"kind": "drone", "id": id, "entity": form{
			"id": id, "status": "MOVING", "position": form{"lat": 48.85, "lon": 2.35}, "batteryPercentage": 80, "speedKmh": kmh,
			"lastUpdate": time.Now().Add(ahead - 30*time.Second).UTC(),
		}}
	}
	address, _ := staged(t, drone("FLIES", 54), drone("STANDS", 0))
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(address+"#map=48.85,2.35,20000"))
	await(t, ctx, `fleet.map.drawn === 2`)

	js[any](t, ctx, `fleet.select({kind: "drone", id: "STANDS"}), 1`)
	await(t, ctx, `/Positionwithin 10.m, \d+.(s|min) old/.test(document.getElementById("selected").textContent)`)
	is(t, ctx, "no circle is drawn around a drone that stands", `fleet.map.bound === 0`)

	js[any](t, ctx, `fleet.select({kind: "drone", id: "FLIES"}), 1`)
	await(t, ctx, `/Positionwithin (4[5-9]0|[5-9]\d0|\d\.\d).k?m, \d+.(s|min) old/.test(document.getElementById("selected").textContent)`)
	await(t, ctx, `fleet.map.bound > 0`)
	is(t, ctx, "the circle is as large as the bound", `(() => { const m = fleet.store.marks.get("FLIES"), px = fleet.store.bound(m) / 111320 * fleet.map.scale / Math.cos(m.lat * Math.PI / 180); return fleet.map.bound <= px && fleet.map.bound > px / 2 })()`)
	shoot(t, ctx, "bound")

	// Reports go on until the page has shown one: a busy machine may draw it late.
	await(t, ctx, `(fleet.store.position(["FLIES", 48.851, 2.35, 80, "MOVING", fleet.store.now()]), fleet.map.bound === 0 && /Positionwithin \d0.m, \d.s old/.test(document.getElementById("selected").textContent))`)
}
