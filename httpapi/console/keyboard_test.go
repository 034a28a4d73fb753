package console_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// F-UI-10: a whole incident by keyboard alone, through the palette: an alert comes, go to it, ask why, pin with a reason,
// acknowledge, follow. The keys of each task are those of docs/console.md; names and reasons are not counted.
func TestConsole_WholeIncidentByKeyboard(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	commands := settled(t, ctx)
	pressed, began := 0, time.Now()
	key := func(name string, with ...chromedp.KeyOption) {
		t.Helper()
		pressed++
		do(t, ctx, chromedp.KeyEvent(name, with...))
	}
	palette := func(text string) {
		t.Helper()
		key("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
		await(t, ctx, `document.activeElement.closest("#palette") !== null`)
		do(t, ctx, chromedp.KeyEvent(text))
		await(t, ctx, `document.querySelector("#choices [aria-selected=true]") !== null && document.activeElement.value === "`+text+`"`)
		key("\r")
		await(t, ctx, `!document.querySelector("#palette")`)
	}
	reason := func(text, then string) {
		t.Helper()
		await(t, ctx, `document.activeElement.closest("dialog") !== null`)
		do(t, ctx, chromedp.KeyEvent(text))
		key("\r")
		await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "`+then+`"`)
	}
	task := func(name string, most int) {
		t.Helper()
		if t.Logf("%s: %d keys, %.1f s", name, pressed, time.Since(began).Seconds()); pressed > most {
			t.Errorf("%s takes %d keys, want at most %d", name, pressed, most)
		}
		pressed, began = 0, time.Now()
	}

	// The alert comes while somebody works elsewhere.
	open(t, ctx, 1)
	js[any](t, ctx, `(() => { const a = {...fleet.live.all.alert.get("A-RISK"), rank: 0, cause: "", text: "CRITICAL order O-HOPELESS cannot arrive in time"}; fleet.live.upsert({kind: "alert", id: a.id, entity: a}); fleet.refresh(); return 1 })()`)
	await(t, ctx, `document.title === "(2) CRITICAL order blood to HOSP-BICHAT cannot arrive in time"`)
	began = time.Now()
	palette("")
	await(t, ctx, `fleet.model.selected?.id === "O-HOPELESS"`)
	task("find the worst", 2)
	palette("why")
	await(t, ctx, `fleet.model.view === "Story" && document.querySelector("#panel .why [role=status]").textContent !== ""`)
	task("why", 2)
	palette("pin")
	await(t, ctx, `document.activeElement.closest("dialog") !== null`)
	do(t, ctx, chromedp.KeyEvent("DRONE-2"))
	key("\t")
	await(t, ctx, `document.querySelector(".preview")?.dataset.of === "DRONE-2"`)
	for range 3 {
		if js[bool](t, ctx, `document.activeElement.maxLength === 200`) {
			break
		}
		key("\t")
	}
	reason("nearest", "Pin: done")
	task("pin", 4)
	palette("ackn")
	reason("surgeon told", "Acknowledge: done")
	task("acknowledge", 3)
	palette("tarnier")
	palette("follow")
	await(t, ctx, `fleet.model.following && fleet.store.droneOf(fleet.model.selected) === "DRONE-1"`)
	task("follow", 4)
	palette("DRONE-2")
	palette("ground")
	reason("rotor", "Ground: done")
	task("ground", 5)
	palette("M-2")
	palette("recall")
	reason("blood is needed", "Recall: sent; the drone has not confirmed it yet")
	task("recall", 5)
	palette("handover")
	await(t, ctx, `fleet.model.view === "Handover"`)
	task("hand over", 2)
	want := []string{
		`/api/v1/orders/O-HOPELESS/pin {"reason":"nearest","droneId":"DRONE-2"}`, `/api/v1/alerts/acknowledge {"id":"A-RISK","reason":"surgeon told"}`,
		`/api/v1/drones/DRONE-2/ground {"reason":"rotor"}`, `/api/v1/missions/M-2/recall {"reason":"blood is needed"}`,
	}
	if got := commands.all(); !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}
