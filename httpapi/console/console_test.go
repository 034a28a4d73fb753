package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/httpapi/ratelimit"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var screenshots = flag.String("screenshots", "", "write a picture of each view to this folder")

var bars = flag.Bool("bars", false, "measure the page, and fail where it is too slow")

// drones is the size of the simulated fleet.
const drones = 40

// running is a simulated fleet.
type running struct {
	url   string // of its API
	hosts connect.Config
	stop  func()
}

// fleet runs a simulated fleet until the test ends.
func fleet(t *testing.T, cfg devrun.Config) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	cfg.DrainTimeout = 100 * time.Millisecond // nobody reads its report; a killed State Manager holds messages for long
	cfg.Hz, cfg.Seed, cfg.SolveLimit, cfg.Strategy, cfg.Out, cfg.Log = 1, 1, 100*time.Millisecond, solver.Strategies["greedy"], in, slog.New(slog.DiscardHandler)
	var ended sync.WaitGroup
	ended.Go(func() {
		_, err := devrun.Run(ctx, cfg)
		in.CloseWithError(fmt.Errorf("the fleet ended: %w", err))
	})
	r := running{stop: func() { cancel(); ended.Wait() }}
	t.Cleanup(r.stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		for prefix, value := range map[string]*string{
			"HTTP API on ": &r.url, "export DRONEFLEET_PROJECT=": &r.hosts.Project,
			connect.FirestoreHost + "=": &r.hosts.FirestoreHost, connect.PubSubHost + "=": &r.hosts.PubSubHost,
		} {
			if _, found, is := strings.Cut(lines.Text(), prefix); is {
				*value, _, _ = strings.Cut(found, " ")
			}
		}
		if r.hosts.PubSubHost != "" {
			go io.Copy(io.Discard, out)
			t.Cleanup(r.staysWithinLimits(t))
			return r
		}
	}
	t.Fatal(lines.Err())
	return r
}

// staysWithinLimits fails a test during which a request was refused because of the
// default limits (F-API-10). A fleet that the test has stopped is not asked.
func (r running) staysWithinLimits(t *testing.T) func() {
	return func() {
		resp, err := http.Get(r.url + "/metrics")
		if err != nil {
			return
		}
		defer resp.Body.Close()
		metrics, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		for _, budget := range ratelimit.Budgets {
			if want := fmt.Sprintf("\ndronefleet_http_limited_total{budget=%q} 0\n", budget); !strings.Contains(string(metrics), want) {
				t.Errorf("the page was refused for its %s", budget)
			}
		}
	}
}

// chromium starts a browser.
func chromium(profile string, more ...chromedp.ExecAllocatorOption) (ctx context.Context, stop func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, func() {}, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	ctx, stopBrowser := chromedp.NewContext(allocator)
	return ctx, func() { stopBrowser(); stopAllocator() }, chromedp.Do(ctx)
}

// shared is a browser for all tests that need no options: starting one takes longer than
// most of them. TestMain stops it.
type shared struct {
	once    sync.Once
	profile string
	ctx     context.Context
	stop    func()
	err     error
}

var browser shared

func (s *shared) start() {
	if s.profile, s.err = os.MkdirTemp("", "console-test"); s.err == nil {
		s.ctx, s.stop, s.err = chromium(s.profile)
	}
}

func (s *shared) end() {
	if s.stop != nil {
		s.stop()
	}
	_ = os.RemoveAll(s.profile) // a temporary folder
}

// page opens a window of the shared browser, or with options a browser. Whatever the
// browser complains about fails the test, except for a connection that the test breaks.
func page(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	if !*bars {
		longtest.Only(t, "drives a browser")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed")
	}
	var ctx context.Context
	if len(more) > 0 {
		own, stop, err := chromium(t.TempDir(), more...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		ctx = own
	} else {
		browser.once.Do(browser.start)
		if browser.err != nil {
			t.Fatal(browser.err)
		}
		// Windows hide one another's tabs, but not each other.
		window, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
		t.Cleanup(cancel)
		ctx = window
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
				t.Errorf("the browser says: %s", e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			t.Errorf("the page failed: %s", e.ExceptionDetails.Exception.Description)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// js is the value of an expression in the page.
func js[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// await waits until an expression is true in the page. It may name what is not there yet.
func await(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	tolerant := `(() => { try { return ` + expression + ` } catch { return false } })()`
	for began := time.Now(); !js[bool](t, ctx, tolerant); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("not true: %s; the page shows %q", expression, js[string](t, ctx, `document.body.innerText.slice(0, 400)`))
		}
	}
}

// shoot writes a picture of the page, if asked to.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// accessible fails the test for what axe-core finds on the page as it is, by all of its
// rules or some, if axe-core is installed: "is accessible" is skipped where it is not.
func accessible(t *testing.T, ctx context.Context, what string, rules ...string) {
	t.Helper()
	path := os.Getenv("AXE_JS")
	if path == "" {
		return
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !js[bool](t, ctx, `"axe" in window`) {
		js[any](t, ctx, string(source)+";1")
	}
	options := `{resultTypes: ["violations"]}`
	if len(rules) > 0 {
		options = fmt.Sprintf(`{resultTypes: ["violations"], runOnly: %q}`, rules)
	}
	for _, violation := range js[[]string](t, ctx, `axe.run(`+options+`).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200) + n.failureSummary).slice(0, 3).join(" | ")))`) {
		t.Errorf("%s: %s", what, violation)
	}
}

var views = []string{"Orders", "Drones", "Missions", "Alerts", "Cycles", "Numbers", "Story", "Timeline", "Handover"}

func open(t *testing.T, ctx context.Context, view int) {
	t.Helper()
	js[any](t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#tabs button")].find((b) => b.textContent === %q).click(), 1`, views[view]))
}

// F-UI-01: the console, in a browser, against a fleet.
func TestConsole_InABrowser(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: drones, OrdersPerMinute: 6, Speed: 5, HTTPAddr: "127.0.0.1:0"})
	url := f.url
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url))
	await(t, ctx, fmt.Sprintf(`document.getElementById("state").textContent === "Live" && fleet.map.drawn === %d`, drones))

	t.Run("draws what the store holds", func(t *testing.T) {
		resp, err := http.Get(url + "/api/v1/drones")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var stored struct{ Drones []struct{ ID string } }
		if err := json.NewDecoder(resp.Body).Decode(&stored); err != nil {
			t.Fatal(err)
		}
		shown := js[[]string](t, ctx, `[...fleet.store.marks.keys()]`)
		if len(shown) != len(stored.Drones) || len(shown) != drones {
			t.Errorf("%d drones drawn, %d stored", len(shown), len(stored.Drones))
		}
		await(t, ctx, `fleet.store.all.cycle.size > 0 && fleet.store.all.mission.size > 0`)
		// A drone that moves leaves a trail: its reports arrive without its document.
		await(t, ctx, `[...fleet.store.marks.values()].some((m) => m.trail.length > 6)`)
	})
	t.Run("is worked by keyboard alone", func(t *testing.T) {
		open(t, ctx, 1)
		await(t, ctx, fmt.Sprintf(`document.querySelectorAll("#panel tbody tr").length === %d`, drones))
		js[any](t, ctx, `document.getElementById("canvas").focus(), fleet.select(null), 1`)
		for range 60 {
			do(t, ctx, chromedp.KeyEvent("\t"))
			if js[string](t, ctx, `document.activeElement.className`) == "row" {
				break
			}
		}
		do(t, ctx, chromedp.KeyEvent("\r"))
		await(t, ctx, `fleet.model.selected?.kind === "drone" && document.getElementById("selected").dataset.id === fleet.model.selected.id && document.querySelectorAll("tr[data-selected]").length === 1`)
	})
	t.Run("is worked by mouse", func(t *testing.T) {
		js[any](t, ctx, `fleet.select(null), fleet.map.fit(), 1`)
		at := js[[]float64](t, ctx, `new Promise((r) => requestAnimationFrame(() => {
			const b = fleet.map.canvas.getBoundingClientRect(), [m] = fleet.store.marks.values(), [x, y] = fleet.map.xy(m.lat, m.lon);
			r([b.x + x, b.y + y]) }))`)
		do(t, ctx, chromedp.MouseClickXY(at[0], at[1]))
		await(t, ctx, `fleet.model.selected !== null && document.getElementById("selected").dataset.id === fleet.model.selected.id`)
		before := js[float64](t, ctx, `fleet.map.scale`)
		js[any](t, ctx, `document.getElementById("in").click(), 1`)
		await(t, ctx, fmt.Sprintf(`fleet.map.scale > %f`, before))
		// Find narrows the map and the table alike.
		find := func(text string) string {
			return fmt.Sprintf(`(() => { const f = document.getElementById("find"); f.value = %s; f.dispatchEvent(new Event("input")); return 1 })()`, text)
		}
		js[any](t, ctx, find(`[...fleet.store.all.drone.keys()][0]`))
		await(t, ctx, `fleet.map.drawn === 1 && document.querySelectorAll("#panel tbody tr").length === 1`)
		js[any](t, ctx, find(`""`))
		await(t, ctx, fmt.Sprintf(`fleet.map.drawn === %d`, drones))
	})
	t.Run("tells statuses apart without colour", func(t *testing.T) {
		// The legend has every shape; two that differ in few pixels look alike.
		alike := js[[]string](t, ctx, `(() => {
			const masks = [...document.querySelectorAll("#shapes li")].map((li) => {
				const d = li.querySelector("canvas").getContext("2d").getImageData(0, 0, 18, 18).data;
				return [li.textContent, [...Array(18 * 18).keys()].map((i) => d[4 * i + 3] > 127)] });
			return masks.flatMap(([a, x], i) => masks.slice(i + 1).filter(([, y]) => x.filter((on, j) => on !== y[j]).length < 8).map(([b]) => a + " and " + b)) })()`)
		if n := js[int](t, ctx, `document.querySelectorAll("#shapes li").length`); n != 9 || len(alike) > 0 {
			t.Errorf("%d shapes; alike: %v", n, alike)
		}
	})
	t.Run("moves nothing by itself", func(t *testing.T) {
		prefer := func(features ...*emulation.MediaFeature) {
			if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
				t.Fatal(err)
			}
		}
		prefer(&emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
		for i, view := range views {
			open(t, ctx, i)
			if n := js[int](t, ctx, `document.getAnimations().length`); n != 0 {
				t.Errorf("%s: %d animations", view, n)
			}
		}
		prefer()
	})
	t.Run("shows which decisions were refused, and why", func(t *testing.T) {
		open(t, ctx, 4)
		await(t, ctx, `document.querySelector("#panel .lane").textContent.includes(" applied")`)
		js[any](t, ctx, `(() => {
			const c = structuredClone([...fleet.store.all.cycle.values()].sort((a, b) => a.startedAt < b.startedAt ? 1 : -1)[0]); c.id = "REFUSED"; c.depotId = document.querySelector("#panel .lane h2").title; c.startedAt = new Date(fleet.store.now()).toISOString(); c.applied = 3; c.refused = {ORDER_NOT_PENDING: 2, STALE_FENCE: 1};
			fleet.store.upsert({kind: "cycle", id: c.id, entity: c}); fleet.show("Cycles"); return 1 })()`)
		for _, where := range []string{`#panel .lane`, `#panel table:not(.fixed) tbody tr`} {
			if text := js[string](t, ctx, fmt.Sprintf(`document.querySelector(%q).textContent`, where)); !strings.Contains(text, "3 applied; refused: 2 order not pending, 1 stale fence") {
				t.Errorf("%s says %q", where, text)
			}
		}
		if js[int](t, ctx, `document.querySelectorAll("#panel .refused").length`) == 0 {
			t.Error("the time line has no mark")
		}
		js[any](t, ctx, `[...document.querySelector("#panel .lane").querySelectorAll(".refused")].at(-1).parentElement.dispatchEvent(new MouseEvent("click")), 1`)
		await(t, ctx, `fleet.model.selected?.id === "REFUSED" && document.querySelector("#selected").textContent.includes("Refused2 order not pending, 1 stale fence")`)
		js[any](t, ctx, `fleet.store.delete({kind: "cycle", id: "REFUSED"}), fleet.select(null), 1`)
	})
	t.Run("says why an order waits, and what would change", func(t *testing.T) { // F-ORD-06
		// For every open order, also for those that a drone has, the card asks at once.
		await(t, ctx, `[...fleet.store.all.order.values()].some((o) => o.status === "ASSIGNED")`)
		js[any](t, ctx, `fleet.select({kind: "order", id: [...fleet.store.all.order.values()].find((o) => o.status === "ASSIGNED").id}), 1`)
		js[any](t, ctx, `[...document.querySelectorAll(".actions button")].find((b) => b.textContent === "Why?").click(), 1`)
		await(t, ctx, `/^As of .*(Its mission: drone D\d+, on a mission under way, delivers at|It is aboard)/.test(document.querySelector("#panel .why [role=status]")?.textContent ?? "")`)
		shoot(t, ctx, "Why-assigned")
		await(t, ctx, `fleet.store.all.order.size > 0`)
		js[any](t, ctx, `fleet.select({kind: "order", id: [...fleet.store.all.order.keys()].at(-1)}), 1`)
		open(t, ctx, 6)
		js[any](t, ctx, `(() => { const w = document.querySelector("#panel .why"); w.querySelector("select").value = "addDrones=3"; w.querySelector("button").click(); return 1 })()`)
		await(t, ctx, `document.querySelector("#panel .why p:not(.note)") !== null`)
		text := js[string](t, ctx, `document.querySelector("#panel .why [role=status]").textContent`)
		if !strings.HasPrefix(text, "As of ") || strings.Contains(text, "undefined") || strings.Contains(text, "NaN") {
			t.Errorf("it says %q", text)
		}
		shoot(t, ctx, "Why-1440")
		js[any](t, ctx, `fleet.select(null), 1`)
	})
	t.Run("shows overlap and a stuck depot at a glance", func(t *testing.T) {
		rows := js[[]string](t, ctx, `(() => {
			const s = fleet.store, ago = (sec) => new Date(s.now() - sec * 1e3).toISOString(), c = [...s.all.cycle.values()][0];
			s.upsert({kind: "depot", id: "STUCK", entity: {...[...s.all.depot.values()][0], id: "STUCK"}});
			for (const [id, began, ended] of [["ONE", 300, 200], ["TWO", 250, 150], ["THREE", 140, 130]]) s.upsert({kind: "cycle", id, entity: {...c, id, depotId: "STUCK", startedAt: ago(began), endedAt: ago(ended)}});
			s.upsert({kind: "alert", id: "A", entity: {id: "A", kind: "DEPOT_WITHOUT_CYCLES", entity: {kind: "depot", id: "STUCK"}, text: "stuck", rank: 2, urgent: true, acknowledged: null}});
			fleet.show("Cycles");
			const lane = document.querySelector("#panel .lane.stuck");
			return [...lane.querySelectorAll("rect")].map((r) => r.getAttribute("y")).concat(lane.querySelector("p").textContent) })()`)
		if len(rows) != 4 || rows[0] == rows[1] || rows[0] != rows[2] || !strings.HasPrefix(rows[3], "No cycle for 2\u00a0min while orders wait") {
			t.Errorf("rows of the bars, and text: %q", rows)
		}
		js[any](t, ctx, `["ONE", "TWO", "THREE"].forEach((id) => fleet.store.delete({kind: "cycle", id})), fleet.store.delete({kind: "depot", id: "STUCK"}), fleet.store.delete({kind: "alert", id: "A"}), 1`)
	})
	t.Run("sounds on demand, at once and for each new alert that cannot wait", func(t *testing.T) {
		tones := js[[]int](t, ctx, `(() => {
			let tones = 0;
			const node = {gain: {}, frequency: {}, connect: (next) => next, start: () => tones++, stop() {}}, real = window.AudioContext;
			window.AudioContext = class { currentTime = 0; createOscillator() { return node } createGain() { return node } close() {} resume() {} };
			const show = (id, kind) => { fleet.store.upsert({kind: "alert", id, entity: {id, kind, entity: {kind: "order", id: "none"}, text: id, rank: 1, urgent: kind === "CRITICAL_LATE", acknowledged: null}}); fleet.select(null); return tones };
			const silent = show("S1", "CRITICAL_LATE");
			document.getElementById("sound").click();
			const heard = [silent, show("S2", "CRITICAL_LATE"), show("S2", "CRITICAL_LATE"), show("S3", "GHOST")];
			document.getElementById("sound").click();
			window.AudioContext = real;
			["S1", "S2", "S3"].forEach((id) => fleet.store.delete({kind: "alert", id}));
			return [...heard, show("S4", "CRITICAL_LATE"), fleet.store.delete({kind: "alert", id: "S4"}) ?? 0] })()`)
		if want := []int{0, 2, 2, 2, 2, 0}; !slices.Equal(tones, want) {
			t.Errorf("tones after each alert: %v, want %v", tones, want)
		}
	})
	t.Run("shows hostile text as text", func(t *testing.T) {
		hostile := `<script>window.harmed = 1</script><img src=x onerror="window.harmed = 1">` + "\u202e" + strings.Repeat("W", 60)
		id, _ := json.Marshal(hostile)
		js[any](t, ctx, fmt.Sprintf(`(() => {
			const d = structuredClone([...fleet.store.all.drone.values()][0]); d.id = %s; d.shortName = d.id; d.status = "EMERGENCY"; d.grounded = true; d.groundedReason = d.id;
			fleet.store.upsert({kind: "drone", id: d.id, entity: d}); fleet.show("Drones");
			document.querySelector("#panel button.row").click(); return 1 })()`, id))
		text, heading := js[string](t, ctx, `document.querySelector("#panel button.row").textContent`), js[string](t, ctx, `document.querySelector("#selected h2").textContent`)
		harmed := js[bool](t, ctx, `"harmed" in window || document.querySelectorAll("#panel img, #panel script, #selected img").length > 0`)
		fits := js[bool](t, ctx, `document.documentElement.scrollWidth <= innerWidth`)
		if text != hostile || heading != "drone "+hostile || harmed || !fits {
			t.Errorf("row %q, heading %q, harmed %t, fits %t", text, heading, harmed, fits)
		}
		js[any](t, ctx, fmt.Sprintf(`fleet.store.delete({kind: "drone", id: %s}), fleet.select(null), 1`, id))
	})
	t.Run("fits every width", func(t *testing.T) {
		await(t, ctx, `fleet.store.all.mission.size > 0`)
		for _, width := range []int64{390, 768, 1440, 2560} {
			do(t, ctx, chromedp.EmulateViewport(width, 900))
			for i, view := range views {
				open(t, ctx, i)
				if !js[bool](t, ctx, `document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight`) {
					t.Errorf("%s overflows a page %d px wide", view, width)
				}
				if width >= 1440 && !js[bool](t, ctx, `[...document.querySelectorAll("#panel .scroll")].every((s) => s.scrollWidth <= s.clientWidth)`) {
					t.Errorf("the table of %s scrolls sideways on a page %d px wide", view, width)
				}
				shoot(t, ctx, fmt.Sprint(view, "-", width))
			}
		}
		do(t, ctx, chromedp.EmulateViewport(1440, 900))
	})
	if *screenshots != "" {
		// For the README: a mission under way, after a while.
		await(t, ctx, `fleet.store.all.cycle.size > 5 && [...fleet.store.all.mission.values()].some((m) => m.status === "ACTIVE" && m.reachedStops > 1)`)
		js[any](t, ctx, `fleet.select({kind: "mission", id: [...fleet.store.all.mission.values()].find((m) => m.status === "ACTIVE" && m.reachedStops > 1).id}), fleet.map.fit(), document.querySelector("#legend").open = true, 1`)
		for i, view := range views {
			for _, theme := range []string{"light", "dark"} {
				js[any](t, ctx, fmt.Sprintf(`fleet.theme(%q), 1`, theme))
				open(t, ctx, i)
				await(t, ctx, `!document.querySelector("#panel").innerText.includes("Reading")`)
				shoot(t, ctx, view+"-"+theme)
			}
		}
		do(t, ctx, chromedp.EmulateViewport(390, 844))
		open(t, ctx, 4)
		shoot(t, ctx, "Cycles-390-dark")
		do(t, ctx, chromedp.EmulateViewport(1440, 900))
		open(t, ctx, 1)
		js[any](t, ctx, `fleet.select(null), document.querySelector("#legend").open = false, 1`)
		js[any](t, ctx, `document.getElementById("quarter").click(), 1`)
		await(t, ctx, `!!fleet.model.past && !fleet.replay.loading`)
		js[any](t, ctx, `fleet.seek(fleet.replay.span.to - 20e3), 1`)
		shoot(t, ctx, "Replay")
		js[any](t, ctx, `document.getElementById("live").click(), 1`)
	}
	t.Run("is accessible", func(t *testing.T) {
		if os.Getenv("AXE_JS") == "" {
			t.Skip("axe-core is not installed; AXE_JS names its axe.min.js")
		}
		// Themes differ in their colours only.
		for theme, rules := range map[string][]string{"light": nil, "dark": {"color-contrast"}} {
			js[any](t, ctx, fmt.Sprintf(`fleet.theme(%q), 1`, theme))
			for i, view := range views {
				open(t, ctx, i)
				accessible(t, ctx, view+", "+theme, rules...)
			}
		}
	})
}

// F-UI-01: other sites cannot frame the page, and it can use nothing of theirs.
func TestHandler_KeepsOtherSitesOut(t *testing.T) {
	url := fleet(t, devrun.Config{Drones: 2, Speed: 10, HTTPAddr: "127.0.0.1:0"}).url
	for _, path := range []string{"/", "/console/console.js", "/console/console.css"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || len(body) == 0 || len(body) > 200_000 {
			t.Fatalf("%s: %s, %d bytes, %v", path, resp.Status, len(body), err)
		}
		policy := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q lacks %q", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || resp.Header.Get("X-Frame-Options") != "DENY" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, resp.Header)
		}
		req, err := http.NewRequest(http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("If-None-Match", resp.Header.Get("ETag"))
		again, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		again.Body.Close()
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %s", path, again.Status)
		}
	}
}
