package console_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// F-UI-10: tables are sorted by their columns; many rows are marked by keys and mouse and commanded with one reason, each
// with its own answer; anything is found or done by its name, and what is shown is saved under a name.
func TestConsole_WorksManyAtOnce(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	commands := settled(t, ctx)
	keys := func(text string) { do(t, ctx, chromedp.KeyEvent(text)) }
	press := func(where, name string) {
		t.Helper()
		find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((b) => b.textContent === %q)`, where, name)
		await(t, ctx, `!!`+find)
		js[any](t, ctx, find+`.click(), 1`)
	}
	rows := `[...document.querySelectorAll("#panel .row")].map((b) => b.title).join()`

	press(".sort", "Slack")
	press(".sort", "Slack ▲")
	is(t, ctx, "the largest slack first, and orders without a drone still on top", rows+` === "O-WAITS,O-HOPELESS,O-FLIES" && document.querySelector("[aria-sort=descending]").textContent === "Slack ▼" && location.hash.includes("sort=order%3A-3")`)
	press(".sort", "Slack ▼")
	is(t, ctx, "as at the start", rows+` === "O-HOPELESS,O-WAITS,O-FLIES" && !location.hash.includes("sort")`)

	// By keys and by mouse.
	js[any](t, ctx, `document.querySelector("#panel .row").focus(), 1`)
	keys("x")
	await(t, ctx, `document.querySelectorAll("tr[data-marked]").length === 1`)
	js[any](t, ctx, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", shiftKey: true, bubbles: true})), 1`)
	await(t, ctx, `document.querySelectorAll("tr[data-marked]").length === 2 && document.activeElement.title === "O-WAITS"`)
	open(t, ctx, 1)
	js[any](t, ctx, `document.querySelector("#panel .row[title=DRONE-3]").dispatchEvent(new MouseEvent("click", {ctrlKey: true, bubbles: true})), 1`)
	await(t, ctx, `document.querySelector("#batch p").textContent === "3 marked" && fleet.model.selected === null`)
	shoot(t, ctx, "Marked")
	accessible(t, ctx, "marked")
	await(t, ctx, `[...document.querySelectorAll("#batch button")].map((b) => b.textContent).join() === "Hold 2,Ground 1,Acknowledge 2,Clear marks"`)

	// One is refused; the other is not lost, and the refused one can be tried again.
	commands.refuse("/api/v1/orders/O-WAITS/hold", "order O-WAITS is no longer pending")
	press("#batch button", "Hold 2")
	await(t, ctx, `document.activeElement.closest("dialog") !== null`)
	keys("storm")
	keys("\r")
	await(t, ctx, `document.querySelector("dialog [role=status]").textContent === "1 of 2 done, 1 refused."`)
	is(t, ctx, "each has its answer", `[...document.querySelectorAll(".results li")].map((l) => l.textContent).join("|") === "blood to HOSP-BICHAT done|blood to HOSP-COCHIN refused: order O-WAITS is no longer pending"`)
	is(t, ctx, "what is refused stays marked", `fleet.model.marked.map((k) => k.id).join() === "DRONE-3,O-WAITS"`)
	shoot(t, ctx, "Refused")
	accessible(t, ctx, "refused")
	commands.refuse("", "")
	press("dialog button", "Try 1 again")
	await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "Hold: 2 of 2 done"`)
	press("#batch button", "Clear marks")
	open(t, ctx, 3)
	press("#panel button", "Acknowledge all 3")
	await(t, ctx, `document.activeElement.closest("dialog") !== null`)
	keys("all known")
	keys("\r")
	await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "Acknowledge: 3 of 3 done"`)
	want := []string{
		`/api/v1/orders/O-HOPELESS/hold {"reason":"storm"}`, `/api/v1/orders/O-WAITS/hold {"reason":"storm"}`, `/api/v1/orders/O-WAITS/hold {"reason":"storm"}`,
		`/api/v1/alerts/acknowledge {"id":"A-RISK","reason":"all known"}`, `/api/v1/alerts/acknowledge {"id":"A-DEPOT","reason":"all known"}`, `/api/v1/alerts/acknowledge {"id":"A-GHOST","reason":"all known"}`,
	}
	if got := commands.all(); !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}

	// Anything by its name.
	palette := func(text string) {
		t.Helper()
		js[any](t, ctx, `document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true, cancelable: true})), 1`)
		await(t, ctx, `document.activeElement.closest("#palette") !== null`)
		keys(text)
		await(t, ctx, fmt.Sprintf(`document.activeElement.value === %q && document.querySelector("#choices [aria-selected=true]") !== null`, text))
	}
	palette("tarnier")
	shoot(t, ctx, "Palette")
	accessible(t, ctx, "Palette")
	keys("\r")
	await(t, ctx, `!document.querySelector("dialog") && fleet.model.selected?.id === "O-FLIES"`)
	palette("pin")
	keys("\r")
	await(t, ctx, `document.querySelector("dialog h2")?.textContent.startsWith("Pin: ")`)
	keys("\x1b")
	await(t, ctx, `!document.querySelector("dialog")`)
	palette("drone-2")
	keys("\r")
	await(t, ctx, `!document.querySelector("dialog") && fleet.model.selected?.id === "DRONE-2"`)
	palette("drones")
	keys("\r")
	await(t, ctx, `!document.querySelector("dialog") && fleet.model.view === "Drones"`)

	// What is shown is kept under a name.
	press(".sort", "Drone")
	press(".sort", "Drone ▲")
	palette("saved v")
	keys("\r")
	await(t, ctx, `document.getElementById("saved-name") !== null`)
	accessible(t, ctx, "Saved")
	js[any](t, ctx, `document.querySelector("dialog input").focus(), 1`)
	keys("night")
	keys("\r")
	await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "Saved night"`)
	open(t, ctx, 0)
	js[any](t, ctx, `fleet.select(null), 1`)
	palette("night")
	keys("\r")
	await(t, ctx, `fleet.model.view === "Drones" && fleet.model.selected?.id === "DRONE-2" && `+rows+` === "DRONE-3,DRONE-2,DRONE-1"`)
}
