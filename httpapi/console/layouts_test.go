package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// misplaced lists which parts of the page lie upon another one, leave the page or are cut.
const misplaced = `(() => {
	const box = (e) => e.getBoundingClientRect(), seen = (e) => { const b = box(e); return b.width > 0 && b.height > 0 && getComputedStyle(e).visibility === "visible"; };
	const parts = [...document.querySelectorAll("header, #strip, #worst, #numbers, #map, #aux, #side, #wall, #tabs, #panel, #replay")].filter(seen), wrong = [];
	const floats = getComputedStyle(document.getElementById("aux") ?? document.body).gridArea.startsWith("map"); // over the map, where there are two columns
	for (const [i, a] of parts.entries()) {
		if (box(a).left < -1 || box(a).right > innerWidth + 1) wrong.push(a.id + " leaves the page");
		if (a.id !== "tabs" && a.scrollWidth > a.clientWidth + 1 && getComputedStyle(a).overflowX === "visible") wrong.push(a.id + " is cut");
		for (const b of parts.slice(i + 1)) {
			if (a.contains(b) || floats && a.id === "map" && b.id === "aux") continue;
			const x = Math.min(box(a).right, box(b).right) - Math.max(box(a).left, box(b).left), y = Math.min(box(a).bottom, box(b).bottom) - Math.max(box(a).top, box(b).top);
			if (x > 1 && y > 1) wrong.push((a.id || "header") + " lies upon " + b.id);
		}
	}
	if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls sideways");
	return wrong })()`

// size is the width and height of a part of the page.
func size(t *testing.T, ctx context.Context, id string) (width, height float64) {
	t.Helper()
	both := js[[]float64](t, ctx, fmt.Sprintf(`(() => { const b = document.getElementById(%q).getBoundingClientRect(); return [b.width, b.height] })()`, id))
	return both[0], both[1]
}

// F-UI-09: three columns, two, or a sheet below the map: nothing lies upon what one needs, and
// the map is large enough at 390, 1280 and 2560 px, also at 200 %.
func TestConsole_FitsTheScreen(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	settled(t, ctx)
	for _, tt := range []struct {
		name          string
		width, height int64
		mapW, mapH    float64 // at least
		rail, scrolls bool
	}{
		{"2560", 2560, 1440, 900, 1000, true, false},
		{"1280", 1280, 800, 600, 550, false, false},
		{"1280 at 200 %", 640, 400, 600, 240, false, true},
		{"2560 at 200 %", 1280, 720, 600, 450, false, false},
		{"390", 390, 844, 390, 160, false, false},
	} {
		do(t, ctx, chromedp.EmulateViewport(tt.width, tt.height))
		for _, selected := range []string{`null`, `{kind: "order", id: "O-HOPELESS"}`} {
			js[any](t, ctx, `fleet.select(`+selected+`), 1`)
			for _, view := range []int{0, 1, 3, 7} {
				open(t, ctx, view)
				js[any](t, ctx, `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
				if wrong := js[[]string](t, ctx, misplaced); len(wrong) > 0 {
					t.Errorf("%s, %s, selected %s: %s", tt.name, views[view], selected, strings.Join(wrong, "; "))
				}
				if overflows := js[bool](t, ctx, `document.documentElement.scrollHeight > innerHeight`); overflows != tt.scrolls {
					t.Errorf("%s, %s: the page scrolls: %t, want %t", tt.name, views[view], overflows, tt.scrolls)
				}
				if tt.width == 390 {
					for _, small := range js[[]string](t, ctx, `[...document.querySelectorAll("button, input, select, summary")].filter((e) => e.checkVisibility({visibilityProperty: true}) && !e.closest(".timeline, .skip") && (e.getBoundingClientRect().height < 43.5 || e.getBoundingClientRect().width < 43.5)).map((e) => e.outerHTML.slice(0, 80) + JSON.stringify(e.getBoundingClientRect()))`) {
						t.Errorf("390, %s: too small for a finger: %s", views[view], small)
					}
				}
			}
			open(t, ctx, 0)
			if w, h := size(t, ctx, "map"); w < tt.mapW || h < tt.mapH {
				t.Errorf("%s, selected %s: the map has %.0f by %.0f px, want at least %.0f by %.0f", tt.name, selected, w, h, tt.mapW, tt.mapH)
			}
			if rail := js[bool](t, ctx, `document.querySelector("#aux #rail") !== null`); rail != tt.rail {
				t.Errorf("%s: the alerts have a column: %t", tt.name, rail)
			}
			shoot(t, ctx, fmt.Sprintf("Layout-%s-%t", tt.name, selected != "null"))
		}
	}

	// The sheet is raised and lowered.
	js[any](t, ctx, `fleet.select(null), 1`)
	_, half := size(t, ctx, "side")
	is(t, ctx, "a phone shows the first rows", `(() => { const panel = document.getElementById("panel").getBoundingClientRect(), row = document.querySelector("#panel button.row").getBoundingClientRect(); return row.bottom < panel.bottom })()`)
	press := func(label string) {
		js[any](t, ctx, fmt.Sprintf(`document.querySelector('[aria-label=%q]').click(), 1`, label))
	}
	press("Raise the tables")
	if _, full := size(t, ctx, "side"); full < half+150 || !strings.Contains(js[string](t, ctx, `location.hash`), "sheet=full") {
		t.Errorf("the sheet has %.0f px raised, %.0f before", full, half)
	}
	is(t, ctx, "the raised sheet cuts nothing", misplaced+`.length === 0 && [...document.querySelectorAll("#replay .times")].every((e) => e.scrollWidth <= e.clientWidth)`)
	shoot(t, ctx, "Sheet-full")
	press("Lower the tables")
	press("Lower the tables")
	if _, h := size(t, ctx, "map"); h < 450 {
		t.Errorf("the map has %.0f px above the lowered sheet", h)
	}
	shoot(t, ctx, "Sheet-down")
	press("Raise the tables")

	// The wall has no controls, the worst is on top and readable across a room.
	for _, wide := range []int64{1280, 2560} {
		do(t, ctx, chromedp.EmulateViewport(wide, wide*9/16))
		js[any](t, ctx, `document.getElementById("towall")?.click(), 1`)
		is(t, ctx, "no controls", `location.hash.includes("wall") && [...document.querySelectorAll("button, input, select, a, summary")].every((e) => !e.checkVisibility())`)
		is(t, ctx, "the worst first", `(() => { const [first, ...others] = document.querySelectorAll("#wall li"); return first.textContent.startsWith("depot North has had no cycle") && others.some((o) => o.textContent.includes("HOSP-BICHAT")) })()`)
		is(t, ctx, "large", fmt.Sprintf(`parseFloat(getComputedStyle(document.querySelector("#numbers b")).fontSize) >= %d / 43`, wide))
		if wrong := js[[]string](t, ctx, misplaced); len(wrong) > 0 {
			t.Errorf("the wall, %d: %s", wide, strings.Join(wrong, "; "))
		}
		shoot(t, ctx, fmt.Sprint("Wall-", wide))
	}
	accessible(t, ctx, "Wall")
	do(t, ctx, chromedp.KeyEvent("\x1b"))
	await(t, ctx, `!location.hash.includes("wall") && document.getElementById("side") !== null && fleet.map.canvas.isConnected`)
}
