package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// resting is how many drones of the staged fleet have nothing to do.
const resting = 2000

// rush is the incident in a large fleet: DRONE-4 will be late, DRONE-5 is in trouble and an
// order is pinned to DRONE-0007.
func rush() []any {
	now := time.Now().Add(ahead).UTC()
	depot := form{"lat": 48.85, "lon": 2.35}
	entities := append(incident(),
		form{"kind": "drone", "id": "DRONE-4", "entity": form{"id": "DRONE-4", "status": "DELIVERING", "position": form{"lat": 48.9, "lon": 2.3}, "batteryPercentage": 60, "lastUpdate": now, "currentMissionId": "M-4", "homeDepotId": "DEPOT-1"}},
		form{"kind": "drone", "id": "DRONE-5", "entity": form{"id": "DRONE-5", "status": "PROBLEM", "position": depot, "batteryPercentage": 60, "lastUpdate": now, "homeDepotId": "DEPOT-1"}},
		form{"kind": "order", "id": "O-LATE", "entity": form{"id": "O-LATE", "status": "IN_DELIVERY", "priority": "HIGH", "productType": "BLOOD", "requesterId": "HOSP-NECKER", "deliveryLocation": form{"lat": 48.91, "lon": 2.3},
			"createdAt": now.Add(-20 * time.Minute), "deadline": now.Add(10 * time.Minute), "assignedDroneId": "DRONE-4", "assignedMissionId": "M-4"}},
		form{"kind": "order", "id": "O-PINNED", "entity": form{"id": "O-PINNED", "status": "PENDING", "priority": "STANDARD", "productType": "BLOOD", "requesterId": "HOSP-FOCH", "deliveryLocation": form{"lat": 48.83, "lon": 2.3},
			"createdAt": now, "deadline": now.Add(time.Hour), "pinnedDroneId": "DRONE-0007", "planningDepotId": "DEPOT-1", "earliestArrival": now.Add(20 * time.Minute)}},
		form{"kind": "mission", "id": "M-4", "entity": form{"id": "M-4", "droneId": "DRONE-4", "orderIds": []string{"O-LATE"}, "status": "ACTIVE", "reachedStops": 2, "startTime": now.Add(-8 * time.Minute), "route": []form{
			{"type": "DEPOT_START", "position": depot, "eta": now.Add(-8 * time.Minute)},
			{"type": "WAREHOUSE_PICKUP", "position": depot, "relatedOrderId": "O-LATE", "eta": now.Add(-5 * time.Minute)},
			{"type": "HOSPITAL_DELIVERY", "position": form{"lat": 48.91, "lon": 2.3}, "relatedOrderId": "O-LATE", "eta": now.Add(20 * time.Minute)},
			{"type": "DEPOT_RETURN", "position": depot, "eta": now.Add(30 * time.Minute)},
		}}},
	)
	for i := range resting {
		id, status := fmt.Sprintf("DRONE-%04d", i), "IDLE"
		if i%4 == 0 {
			status = "CHARGING"
		}
		entities = append(entities, form{"kind": "drone", "id": id, "entity": form{"id": id, "status": status, "position": depot, "batteryPercentage": 70, "lastUpdate": now, "homeDepotId": "DEPOT-1"}})
	}
	return entities
}

// F-UI-07: what each drone has to do stands on one scale of time, those in trouble first; an
// order is pinned by dragging it to a drone; a depot says what it has, and drones that stand
// there are one number.
func TestConsole_ShowsTheTimeline(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	url, commands := staged(t, rush()...)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"#view=Timeline"))
	await(t, ctx, fmt.Sprintf(`document.getElementById("state")?.textContent === "Live" && fleet.map.drawn === %d && fleet.model.who !== null && document.querySelectorAll(".rows li").length > 5`, resting+5))

	is(t, ctx, "only rows in sight are drawn, all are counted", fmt.Sprintf(`document.querySelectorAll(".rows li").length < 40 && document.querySelector(".rows li").getAttribute("aria-setsize") === "%d"`, resting+5))
	is(t, ctx, "trouble first, then late, pinned, on a mission", `[...document.querySelectorAll(".rows button")].slice(0, 4).map((b) => b.title).join() === "DRONE-5,DRONE-4,DRONE-0007,DRONE-1"`)
	is(t, ctx, "a late order is told by shape and words", `(() => { const row = document.querySelectorAll(".rows li")[1], late = row.querySelectorAll(".mark.late");
		return late.length === 1 && late[0].querySelector("text").textContent === "HOSP-NECKER 10\u00a0min late" && row.querySelectorAll(".due.late").length === 1 && row.querySelector("button").getAttribute("aria-label").includes("blood to HOSP-NECKER") })()`)
	is(t, ctx, "marks stand at their times", `(() => { const svg = document.querySelectorAll(".rows li svg")[1], now = document.querySelector(".now").getBoundingClientRect().x - svg.getBoundingClientRect().x,
		at = Number(svg.querySelector(".mark.late").getAttribute("transform").match(/\(([\d.]+)/)[1]), w = Number(svg.getAttribute("width")); return Math.abs(now - w * 10 / 70) < 3 && Math.abs(at - w * 30 / 70) < 6 })()`)
	shoot(t, ctx, "Timeline-staged")
	accessible(t, ctx, "Timeline")

	// By mouse and by keyboard.
	js[any](t, ctx, `document.querySelector(".mark.late").dispatchEvent(new MouseEvent("click", {bubbles: true})), 1`)
	await(t, ctx, `fleet.model.selected?.id === "O-LATE" && document.querySelectorAll(".rows li")[1].dataset.selected === ""`)
	js[any](t, ctx, `document.querySelector(".rows button[title=DRONE-4]").focus(), 1`)
	press := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			do(t, ctx, chromedp.KeyEvent(key))
		}
	}
	press(kb.ArrowDown, kb.ArrowDown)
	await(t, ctx, `document.activeElement.title === "DRONE-1"`)
	press(kb.ArrowRight)
	await(t, ctx, `fleet.model.selected?.id === "O-FLIES" && document.activeElement.title === "DRONE-1"`)
	press(kb.End)
	await(t, ctx, `document.activeElement.title === "DRONE-2"`)
	press(kb.Home, "\r")
	await(t, ctx, `document.activeElement.title === "DRONE-5" && fleet.model.selected?.id === "DRONE-5"`)

	// Nothing is sent before it is confirmed.
	dragTo := func(target string) {
		t.Helper()
		js[any](t, ctx, `(() => { const data = new DataTransfer(), from = document.querySelector(".unplanned [title=O-HOPELESS]").parentElement, to = `+target+`, b = to.getBoundingClientRect();
			const [x, y] = to === fleet.map.canvas ? fleet.map.xy(48.9, 2.3) : [5, 5], more = {dataTransfer: data, bubbles: true, cancelable: true, clientX: b.x + x, clientY: b.y + y};
			from.dispatchEvent(new DragEvent("dragstart", more)); if (to.dispatchEvent(new DragEvent("dragover", more))) throw new Error("no drop"); to.dispatchEvent(new DragEvent("drop", more)); return 1 })()`)
		await(t, ctx, `document.querySelector("dialog[open] h2")?.textContent.startsWith("Pin: ")`)
	}
	dragTo(`document.querySelector(".rows button[title=DRONE-1]").parentElement`)
	await(t, ctx, `document.querySelector("dialog input[list]").value === "DRONE-1" && fleet.model.selected.id === "O-HOPELESS"`)
	js[any](t, ctx, `document.querySelector("dialog .buttons button").click(), 1`)
	await(t, ctx, `!document.querySelector("dialog")`)
	dragTo(`fleet.map.canvas`)
	await(t, ctx, `document.querySelector("dialog input[list]").value === "DRONE-4"`)
	await(t, ctx, `document.querySelector(".preview").dataset.of === "DRONE-4"`) // without the route of candidates here
	if got := commands.all(); len(got) > 0 {
		t.Errorf("sent before it was confirmed: %q", got)
	}
	js[any](t, ctx, `(() => { const reason = document.querySelector("dialog input[maxlength='200']"); reason.value = "nearest"; reason.form.requestSubmit(); return 1 })()`)
	await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "Pin: done"`)
	if got, want := commands.all(), []string{`/api/v1/orders/O-HOPELESS/pin {"reason":"nearest","droneId":"DRONE-4"}`}; !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}

	// The drones at the depot are one number; it opens to a list.
	js[any](t, ctx, `fleet.select(null), fleet.map.show({lat: 48.85, lon: 2.35}, 6000), document.getElementById("canvas").focus(), 1`)
	await(t, ctx, fmt.Sprintf(`fleet.map.piles.length === 1 && fleet.map.piles[0].count === %d`, resting+1))
	do(t, ctx, chromedp.KeyEvent("\r"))
	await(t, ctx, `document.getElementById("selected")?.dataset.id === "DEPOT-1"`)
	text := js[string](t, ctx, `document.getElementById("selected").innerText.replace(/\s+/g, " ")`)
	for _, want := range []string{"Next drone now", "each drone has one", "1 order waits, the most urgent has ", "Wrong 1 in trouble", "2002 drones DRONE-5 problem, 60 %", "and 1802 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("the depot does not say %q: %s", want, text)
		}
	}
	shoot(t, ctx, "Depot")
	accessible(t, ctx, "Depot")
	js[any](t, ctx, `fleet.select(null), 1`)
	at := js[[]float64](t, ctx, `(() => { const b = fleet.map.canvas.getBoundingClientRect(), [pile] = fleet.map.piles; return [b.x + pile.x, b.y + pile.y - 18] })()`)
	do(t, ctx, chromedp.MouseClickXY(at[0], at[1]))
	await(t, ctx, `fleet.model.selected?.id === "DEPOT-1"`)
	js[any](t, ctx, `document.querySelector(".pile .ref[title=DRONE-5]").click(), 1`)
	await(t, ctx, `fleet.model.selected?.id === "DRONE-5"`)

	for _, look := range []struct {
		width int64
		theme string
	}{{390, "light"}, {1280, "light"}, {1280, "dark"}, {2560, "light"}, {2560, "dark"}} {
		do(t, ctx, chromedp.EmulateViewport(look.width, 900))
		js[any](t, ctx, fmt.Sprintf(`fleet.theme(%q), 1`, look.theme))
		is(t, ctx, "it fits, with three rows at least", `document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight && document.querySelector(".rows").clientHeight >= 132`)
		shoot(t, ctx, fmt.Sprintf("Timeline-%d-%s", look.width, look.theme))
	}
}
