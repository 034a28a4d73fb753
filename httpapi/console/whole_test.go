package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/httpapi/console"
)

// ahead is by how much the clock of the staged State Manager differs from the browser's.
const ahead = 3 * time.Hour

// form is an entity as the stream has it.
type form map[string]any

// staged serves the page with a fleet that does not change, as somebody sees it who may
// recall missions, pin and hold orders, ground drones and acknowledge alerts.
func staged(t *testing.T, entities ...any) (url string, commands *sent) {
	mux := http.NewServeMux()
	for path, file := range console.Files {
		mux.Handle("GET "+path, console.Handler(file, nil))
	}
	mux.HandleFunc("GET /api/v1/session", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name": "ann", "method": "token", "verbs": ["missions recall", "orders pin", "orders hold", "drones ground", "alerts acknowledge"]}`)
	})
	mux.HandleFunc("GET /api/v1/replay", pastOf)
	commands = &sent{}
	mux.HandleFunc("POST /api/v1/", commands.take)
	mux.HandleFunc("GET /api/v1/handover", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(handover(r.FormValue("since"))); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /api/v1/orders/O-FLIES/story", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(story()); err != nil {
			t.Error(err)
		}
	})
	end := make(chan struct{})
	mux.HandleFunc("GET /api/v1/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(name string, data form) {
			data["serverTime"], data["feedDelayMs"] = time.Now().Add(ahead).UTC(), 0
			text, err := json.Marshal(data)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
			http.NewResponseController(w).Flush()
		}
		send("snapshot", form{"last": true, "entities": entities})
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-end:
				return
			case <-ticker.C:
				send("heartbeat", form{})
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return server.URL, commands
}

// sent are the commands that the page has given.
type sent struct {
	mu      sync.Mutex
	list    []string
	refused map[string]string // why, by path
}

func (s *sent) take(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing fails the test
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, r.URL.Path+" "+string(body))
	if why, is := s.refused[r.URL.Path]; is {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"detail": %q}`, why)
		return
	}
	fmt.Fprint(w, "{}")
}

// refuse makes the server refuse requests to a path with a reason; an empty reason ends that.
func (s *sent) refuse(path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = map[string]string{}
	if why != "" {
		s.refused[path] = why
	}
}

func (s *sent) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// incident is a fleet of three drones in trouble: nobody plans, a CRITICAL order waits that
// no drone can bring in time, and a mission was recalled.
func incident() []any {
	now := time.Now().Add(ahead).UTC()
	in := now.Add
	at := func(north, east float64) form { return form{"lat": 48.85 + north, "lon": 2.35 + east} }
	entity := func(kind, id string, more form) any {
		more["id"] = id
		return form{"kind": kind, "id": id, "entity": more}
	}
	order := func(id, priority, status, hospital string, deadline time.Duration, more form) any {
		more["priority"], more["status"], more["requesterId"], more["deadline"] = priority, status, hospital, in(deadline)
		more["createdAt"], more["productType"] = in(-20*time.Minute), "BLOOD"
		if more["deliveryLocation"] == nil {
			more["deliveryLocation"] = at(0.02, 0.02)
		}
		return entity("order", id, more)
	}
	drone := func(id, status string, where form, more form) any {
		more["status"], more["position"], more["batteryPercentage"], more["lastUpdate"] = status, where, 80, in(0)
		return entity("drone", id, more)
	}
	alert := func(id, kind string, rank int, about form, cause, text string) any {
		return entity("alert", id, form{"kind": kind, "rank": rank, "urgent": rank < 5, "entity": about, "cause": cause, "text": text, "acknowledged": nil, "since": in(-time.Minute)})
	}
	return []any{
		entity("depot", "DEPOT-1", form{"name": "North", "position": at(0, 0)}),
		drone("DRONE-1", "DELIVERING", at(0.01, 0.01), form{"currentMissionId": "M-1"}),
		drone("DRONE-2", "IDLE", at(0, 0), form{}),
		drone("DRONE-3", "CHARGING", at(0, 0.005), form{}),
		entity("mission", "M-1", form{
			"droneId": "DRONE-1", "orderIds": []string{"O-FLIES"}, "status": "ACTIVE", "reachedStops": 1, "recalledAt": in(-time.Minute), "unconfirmed": "RECALL",
			"route": []form{
				{"type": "DEPOT_START", "position": at(0, 0)},
				{"type": "HOSPITAL_DELIVERY", "position": at(0.02, 0.02), "relatedOrderId": "O-FLIES", "eta": in(4 * time.Minute)},
			},
		}),
		entity("mission", "M-2", form{"droneId": "DRONE-2", "orderIds": []string{}, "status": "ACTIVE", "reachedStops": 0, "route": []form{}}),
		order("O-HOPELESS", "CRITICAL", "PENDING", "HOSP-BICHAT", 9*time.Minute, form{"earliestArrival": in(17*time.Minute + 30*time.Second), "earliestDroneId": "DRONE-2", "deliveryLocation": at(-0.02, -0.02)}),
		order("O-WAITS", "STANDARD", "PENDING", "HOSP-COCHIN", time.Hour, form{"earliestArrival": in(12 * time.Minute), "deliveryLocation": at(-0.02, 0.02)}),
		order("O-FLIES", "CRITICAL", "IN_PROGRESS", "HOSP-TARNIER", 7*time.Minute, form{"assignedDroneId": "DRONE-1", "assignedMissionId": "M-1"}),
		order("O-DONE", "CRITICAL", "DELIVERED", "HOSP-TARNIER", 0, form{"deliveredAt": in(-10 * time.Minute)}),
		alert("A-RISK", "CRITICAL_AT_RISK", 3, form{"kind": "order", "id": "O-HOPELESS"}, "A-DEPOT", "CRITICAL order O-HOPELESS will be late"),
		alert("A-DEPOT", "DEPOT_WITHOUT_CYCLES", 2, form{"kind": "depot", "id": "DEPOT-1"}, "", "depot DEPOT-1 has had no cycle while orders wait"),
		alert("A-GHOST", "GHOST", 6, form{"kind": "drone", "id": "DRONE-3"}, "", "drone DRONE-3 flies mission M-0, which failed"),
	}
}

// settled waits until the page shows the incident.
func settled(t *testing.T, ctx context.Context) *sent {
	t.Helper()
	url, commands := staged(t, incident()...)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url))
	await(t, ctx, `document.getElementById("state")?.textContent === "Live" && fleet.map.drawn === 3 && fleet.model.who !== null`)
	return commands
}

// is fails the test if an expression in the page is not true.
func is(t *testing.T, ctx context.Context, what, expression string) {
	t.Helper()
	if !js[bool](t, ctx, expression) {
		t.Errorf("%s: not true: %s; the page shows %q", what, expression, js[string](t, ctx, `document.body.innerText.slice(0, 1500)`))
	}
}

// F-UI-03: the page shows what is so, and what is not known yet as such.
func TestConsole_DoesNotMislead(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	settled(t, ctx)
	shoot(t, ctx, "Incident")

	is(t, ctx, "what no drone can bring in time is the first row", `(() => { const [head, first] = document.querySelectorAll("#panel tbody tr");
		return head.textContent === "No drone: 2" && first.textContent.includes("HOSP-BICHAT") && first.textContent.includes("−8\u00a0min") && first.className === "bad" })()`)
	is(t, ctx, "an order on its way is below those without a drone", `[...document.querySelectorAll("#panel tbody tr")].map((r) => r.textContent.match(/No drone|With a drone|BICHAT|COCHIN|TARNIER/)[0]).join() === "No drone,BICHAT,COCHIN,With a drone,TARNIER"`)

	js[any](t, ctx, `(() => { const f = document.getElementById("find"); f.value = "critical"; f.dispatchEvent(new Event("input", {bubbles: true})); return 1 })()`)
	await(t, ctx, `fleet.map.drawn === 1`)
	is(t, ctx, "a filter says what it is and what is left", `document.getElementById("filter").textContent.startsWith("Only “critical”: 2 of 3 orders, 1 of 3 drones")`)
	is(t, ctx, "map and table show the same orders", `["O-HOPELESS", "O-WAITS", "O-FLIES"].every((id) => {
		const o = fleet.live.all.order.get(id), listed = [...document.querySelectorAll("#panel .row")].some((b) => b.title === id);
		return listed === (fleet.map.nearest(...fleet.map.xy(o.deliveryLocation.lat, o.deliveryLocation.lon))?.id === id) })`)
	js[any](t, ctx, `document.querySelector("#filter button").click(), 1`)
	await(t, ctx, `fleet.map.drawn === 3 && !document.getElementById("filter") && document.getElementById("find").value === ""`)

	is(t, ctx, "the worst cause is announced, not its effect", `document.getElementById("critical").textContent === "depot North has had no cycle while orders wait; it explains 1 alert"`)
	is(t, ctx, "the title names it", `document.title === "(2) depot North has had no cycle while orders wait"`)
	open(t, ctx, 3)
	is(t, ctx, "effects stand below their cause", `(() => { const [first, second] = document.querySelectorAll("#rail > li");
		return first.querySelector("p").textContent.includes("North") && first.querySelector("ul").textContent.includes("will be late") && second.textContent.includes("ghost") })()`)
	shoot(t, ctx, "Rail")
	accessible(t, ctx, "Rail")
	js[any](t, ctx, `window.alert = (id, more) => { const a = {...fleet.live.all.alert.get("A-RISK"), id, text: id, ...more}; fleet.live.upsert({kind: "alert", id, entity: a}); fleet.refresh(); }, 1`)
	js[any](t, ctx, `alert("A-FURTHER", {cause: "A-RISK"}), 1`)
	is(t, ctx, "a cause of a cause explains as well", `document.querySelector("#rail > li ul").textContent.includes("A-FURTHER")`)
	js[any](t, ctx, `alert("A-DEPOT", {...fleet.live.all.alert.get("A-DEPOT"), acknowledged: {by: "ann", at: new Date(fleet.live.now()).toISOString(), reason: "x"}}), 1`)
	is(t, ctx, "what was explained when its cause was acknowledged is quiet", `document.getElementById("critical").textContent === ""`)
	js[any](t, ctx, `alert("A-LATER", {since: new Date(fleet.live.now() + 1000).toISOString()}), 1`)
	is(t, ctx, "what an acknowledged cause does later is announced", `document.getElementById("critical").textContent === "A-LATER"`)

	js[any](t, ctx, `fleet.select({kind: "mission", id: "M-1"}), 1`)
	is(t, ctx, "a recall that is not confirmed is shown as such", `document.getElementById("selected").textContent.includes("not yet confirmed by the drone")`)
	is(t, ctx, "and cannot be sent again", `(() => { const b = [...document.querySelectorAll(".actions button")].find((b) => b.textContent === "Recall"); b.click();
		return b.getAttribute("aria-disabled") === "true" && !document.querySelector("dialog") && document.getElementById("said").textContent.includes("recalled at") })()`)

	js[any](t, ctx, `fleet.select({kind: "order", id: "O-HOPELESS"}), 1`)
	is(t, ctx, "the drone that could come first is named", `/Earliest[0-9:]+ by DRONE-2/.test(document.getElementById("selected").textContent)`)

	open(t, ctx, 5)
	is(t, ctx, "an open order that will be late is not on time", `(() => { const cells = [...document.querySelectorAll("#panel tbody tr")].find((r) => r.textContent.startsWith("critical")).cells;
		return [...cells].map((c) => c.textContent).join() === "critical,50 %,1,10\u00a0min,2,1" })()`)
	await(t, ctx, fmt.Sprintf(`document.getElementById("clock").textContent === new Date(Date.now() + %d).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"})`, ahead.Milliseconds()))

	open(t, ctx, 3)
	is(t, ctx, "before the first snapshot nothing counts as none", `(() => { fleet.stream.whole = false; fleet.live.clear(); fleet.refresh(); return 1 })() && new Promise((done) => setTimeout(() =>
		done([...document.querySelectorAll("#strip [data-count] b")].every((b) => b.textContent === "–") && document.getElementById("worst").textContent.includes("Not known yet") && document.getElementById("panel").textContent.includes("Not known yet")), 50))`)
}

// framed is the share of the map's left edge that has the colour of the past, as it is seen.
func framed(t *testing.T, ctx context.Context) float64 {
	t.Helper()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	box := js[[]int](t, ctx, `(() => { const b = document.getElementById("map").getBoundingClientRect(); return [b.x + 2, b.y + 20, b.bottom - 20].map(Math.round) })()`)
	var colour [3]uint32
	if _, err := fmt.Sscanf(js[string](t, ctx, `getComputedStyle(document.documentElement).getPropertyValue("--warn").trim()`), "#%02x%02x%02x", &colour[0], &colour[1], &colour[2]); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for y := box[1]; y < box[2]; y++ {
		r, g, b, _ := picture.At(box[0], y).RGBA()
		if r>>8 == colour[0] && g>>8 == colour[1] && b>>8 == colour[2] {
			seen++
		}
	}
	return float64(seen) / float64(box[2]-box[1])
}

// F-UI-03: the page shows the whole fleet in numbers that narrow it, and its address holds
// what it shows.
func TestConsole_ShowsTheWhole(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	settled(t, ctx)
	number := func(id string) string {
		return fmt.Sprintf(`document.querySelector("[data-count=%s] b").textContent`, id)
	}
	for id, want := range map[string]string{"no-drone": "2", "at-risk": "1", "late": "0", "held": "0", "critical": "2", "standard": "1", "flying": "1", "idle": "1", "charging": "1"} {
		if got := js[string](t, ctx, number(id)); got != want {
			t.Errorf("%s orders or drones: %s, want %s", id, got, want)
		}
	}
	await(t, ctx, `document.querySelector("[data-count=idle] polyline").getAttribute("points") !== ""`)
	js[any](t, ctx, `document.querySelector("[data-count=no-drone]").click(), 1`)
	is(t, ctx, "a number narrows the page", `[...document.querySelectorAll("#panel .row")].map((b) => b.title).join() === "O-HOPELESS,O-WAITS" && document.getElementById("filter").textContent.startsWith("Only no drone: 2 of 3 orders, 0 of 3 drones")`)
	js[any](t, ctx, `document.querySelector("[data-count=no-drone]").click(), 1`)

	// From an order to its drone and to its mission, each by one press.
	press := func(where, name string) {
		t.Helper()
		find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((b) => b.textContent === %q)`, where, name)
		await(t, ctx, `!!`+find)
		js[any](t, ctx, find+`.click(), 1`)
	}
	press("#panel .row", "blood to HOSP-TARNIER")
	press("#selected .ref", "DRONE-1")
	is(t, ctx, "the drone is selected", `fleet.model.selected.kind === "drone" && fleet.model.selected.id === "DRONE-1"`)
	press("#selected .ref", "DRONE-1 with 1 order")
	is(t, ctx, "its mission is selected", `fleet.model.selected.kind === "mission" && fleet.model.selected.id === "M-1"`)
	press("#selected .ref", "blood to HOSP-TARNIER")
	open(t, ctx, 2)
	if address := js[string](t, ctx, `location.hash`); !strings.Contains(address, "view=Missions") || !strings.Contains(address, "order=O-FLIES") {
		t.Errorf("the address is %s", address)
	}

	// The map's centre is part of the address, without a step of the history.
	js[any](t, ctx, `fleet.map.show({lat: 48.86, lon: 2.36}), 1`)
	await(t, ctx, `location.hash.includes("map=48.8600%2C2.3600%2C")`)

	// A row that moves keeps the focus.
	open(t, ctx, 0)
	js[any](t, ctx, `document.querySelector("#panel .row[title=O-WAITS]").focus(), 1`)
	js[any](t, ctx, `(() => { const o = fleet.live.all.order.get("O-WAITS"); fleet.live.upsert({kind: "order", id: o.id, entity: {...o, deadline: new Date(fleet.live.now()).toISOString()}}); fleet.refresh(); return 1 })()`)
	is(t, ctx, "the row has moved with the focus", `document.querySelector("#panel .row").title === "O-WAITS" && document.activeElement.title === "O-WAITS"`)
	open(t, ctx, 2)

	// Follow follows the order's drone.
	js[any](t, ctx, `fleet.follow(true), fleet.live.position(["DRONE-1", 48.9, 2.4, 70, "DELIVERING", fleet.live.now()]), 1`)
	await(t, ctx, `fleet.map.lat === 48.9 && fleet.map.lon === 2.4`)
	js[any](t, ctx, `fleet.follow(false), 1`)

	js[any](t, ctx, `history.back(), 1`)
	await(t, ctx, `fleet.model.view === "Orders" && fleet.model.selected?.id === "O-FLIES"`)
	js[any](t, ctx, `history.go(-2), 1`)
	await(t, ctx, `fleet.model.view === "Orders" && fleet.model.selected?.id === "O-FLIES" && Math.abs(fleet.map.lat - 48.87) < 0.001`)
	js[any](t, ctx, `history.back(), 1`)
	await(t, ctx, `fleet.model.selected?.id === "M-1"`)
	js[any](t, ctx, `document.querySelector("[data-count=critical]").click(), 1`)
	address := js[string](t, ctx, `location.href`)
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	await(t, ctx, `document.getElementById("state")?.textContent === "Live" && fleet.model.selected?.id === "M-1" && document.getElementById("filter")?.textContent.startsWith("Only critical")`)
	await(t, ctx, `document.getElementById("selected").textContent.includes("blood to HOSP-TARNIER")`)
	shoot(t, ctx, "Whole")
	accessible(t, ctx, "the whole")
}

// F-UI-03: an incident is worked by keyboard alone: what is wrong, whom it concerns, taking
// note of it, and a command.
func TestConsole_IncidentByKeyboard(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	commands := settled(t, ctx)
	keys := func(text string) { do(t, ctx, chromedp.KeyEvent(text)) }
	tabTo := func(what string) {
		t.Helper()
		for range 80 {
			keys("\t")
			if js[bool](t, ctx, `document.activeElement.textContent === `+what+` || document.activeElement.title === `+what) {
				return
			}
		}
		t.Fatalf("Tab does not reach %s", what)
	}
	js[any](t, ctx, `document.getElementById("find").focus(), 1`)
	tabTo(`"Show"`)
	keys("\r")
	await(t, ctx, `document.getElementById("selected")?.dataset.id === "DEPOT-1"`)
	tabTo(`"Acknowledge"`)
	keys("\r")
	await(t, ctx, `document.activeElement.closest("dialog") !== null`)
	keys("calling the optimizer's operators")
	keys("\r")
	await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "Acknowledge: done"`)
	await(t, ctx, `document.activeElement.textContent === "Acknowledge"`)

	// The slash finds; what is found is a Tab away.
	slash := func() {
		keys("/")
		await(t, ctx, `document.activeElement.id === "find"`)
		js[any](t, ctx, `document.getElementById("find").select(), 1`) // the driver types the slash as well
	}
	slash()
	keys("bichat")
	await(t, ctx, `document.querySelectorAll("#panel .row").length === 1`)
	tabTo(`"O-HOPELESS"`)
	keys("\r")
	await(t, ctx, `document.getElementById("selected")?.dataset.id === "O-HOPELESS" && document.activeElement.title === "O-HOPELESS"`)
	slash()
	keys("\b")
	tabTo(`"Missions"`)
	keys("\r")
	tabTo(`"M-2"`)
	keys("\r")
	await(t, ctx, `document.getElementById("selected")?.dataset.id === "M-2"`)
	tabTo(`"Recall"`)
	keys("\r")
	await(t, ctx, `document.activeElement.closest("dialog") !== null`)
	keys("blood is needed")
	keys("\r")
	await(t, ctx, `document.getElementById("said").textContent === "Recall: sent; the drone has not confirmed it yet"`)
	want := []string{`/api/v1/alerts/acknowledge {"id":"A-DEPOT","reason":"calling the optimizer's operators"}`, `/api/v1/missions/M-2/recall {"reason":"blood is needed"}`}
	if got := commands.all(); !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}
