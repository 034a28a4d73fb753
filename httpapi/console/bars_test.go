package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// crowd serves the console with a stream of n drones that all report once a second, each tenth with an alert: more
// than a fleet can be simulated on the machine that draws it. below is nil for no map.
func crowd(t *testing.T, n int, below *console.BaseMap) string {
	mux := http.NewServeMux()
	for path, file := range console.Files {
		mux.Handle("GET "+path, console.Handler(file, below))
	}
	mux.HandleFunc("GET "+console.MapPath, below.About)
	mux.HandleFunc("GET "+console.PMTilesPath, below.Archive)
	end := make(chan struct{})
	mux.HandleFunc("GET /api/v1/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(name string, data map[string]any) {
			data["serverTime"], data["feedDelayMs"] = time.Now().UTC(), 0
			text, err := json.Marshal(data)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
			http.NewResponseController(w).Flush()
		}
		at := func(i int) (lat, lon float64) {
			angle := float64(i) + float64(time.Now().UnixMilli())/20000
			return 48.85 + 0.05*math.Sin(angle) + 1e-5*float64(i), 2.35 + 0.08*math.Cos(angle)
		}
		statuses := []string{"IDLE", "MOVING", "MOVING", "DELIVERING", "CHARGING", "UNKNOWN"}
		for first := 0; first < n; first += 500 {
			var drones []any
			for i := first; i < min(n, first+500); i++ {
				lat, lon := at(i)
				id := fmt.Sprintf("DRONE-%05d", i)
				drones = append(drones, map[string]any{"kind": "drone", "id": id, "entity": map[string]any{"id": id, "status": statuses[i%len(statuses)], "batteryPercentage": 80,
					"position": map[string]any{"lat": lat, "lon": lon}, "lastUpdate": time.Now().UTC()}})
			}
			for i := first; i < min(n, first+500); i += 10 {
				id := fmt.Sprintf("DRONE-%05d", i)
				drones = append(drones, map[string]any{"kind": "alert", "id": "DRONE_DUE_SOON:" + id, "entity": map[string]any{"id": "DRONE_DUE_SOON:" + id, "kind": "DRONE_DUE_SOON",
					"entity": map[string]any{"kind": "drone", "id": id}, "text": "drone " + id + " is due soon", "rank": 14, "since": time.Now().UTC()}})
			}
			send("snapshot", map[string]any{"last": first+500 >= n, "entities": drones})
		}
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for quarter := 0; ; quarter++ {
			select {
			case <-r.Context().Done():
				return
			case <-end:
				return
			case <-ticker.C:
			}
			var rows []any
			for i := quarter % 4; i < n; i += 4 {
				lat, lon := at(i)
				rows = append(rows, []any{fmt.Sprintf("DRONE-%05d", i), lat, lon, 80, statuses[i%len(statuses)], time.Now().UnixMilli()})
			}
			send("changes", map[string]any{"upserts": []any{}, "positions": rows})
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return server.URL
}

// F-UI-01: while the map moves over vector tiles, frames take 20 ms with 2,000 drones at 1 Hz and 50 ms with 10,000. The
// same without a map tells how busy the machine is.
func TestConsole_DrawsLargeFleets(t *testing.T) {
	if !*bars {
		t.Skip("run with -bars")
	}
	below, err := console.OpenBaseMap(console.BaseMapConfig{PMTiles: city().write(t, func([]byte) {})})
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	for _, tt := range []struct {
		drones int
		most   float64
	}{{2000, 20}, {10_000, 50}} {
		for name, m := range map[string]*console.BaseMap{"no map": nil, "vector map": below} {
			ctx := page(t)
			do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(crowd(t, tt.drones, m)))
			await(t, ctx, fmt.Sprintf(`fleet.map.drawn === %d`, tt.drones))
			for _, zoom := range []string{"crowds", "each drone"} {
				// A frame is the time from one picture to the next while the map moves.
				p95 := js[[]float64](t, ctx, fmt.Sprintf(`(async () => {
				fleet.map.fit(); await new Promise((r) => setTimeout(r, 1000));
				if (%t) fleet.map.scale = Math.max(3001, fleet.map.scale);
				fleet.map.moved = true;
				const gaps = []; let last = await new Promise(requestAnimationFrame);
				fleet.map.took.length = 0;
				for (const began = last; last - began < 10e3;) {
					const turn = (last - began) / 1000;
					fleet.map.pan(4 * Math.cos(turn), 3 * Math.sin(turn));
					const now = await new Promise(requestAnimationFrame);
					gaps.push(now - last); last = now;
				}
				const p95 = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
				return [p95(gaps), p95(fleet.map.took), gaps.length] })()`, zoom == "each drone"))
				t.Logf("%s, %d drones, %s: p95 of frames %.0f ms, of drawing alone %.1f ms, %.0f frames", name, tt.drones, zoom, p95[0], p95[1], p95[2])
				if p95[0] > tt.most {
					t.Errorf("%s, %d drones, %s: p95 of frames %.0f ms, want at most %.0f", name, tt.drones, zoom, p95[0], tt.most)
				}
			}
			// Everything but the map is drawn once a second, in one go.
			for _, view := range []string{"Drones", "Timeline"} {
				open(t, ctx, slices.Index(views, view))
				js[any](t, ctx, `fleet.narrow([], "depot"), fleet.narrow([], "drone"), 1`)
				page := js[float64](t, ctx, `(() => { const took = []; for (let i = 0; i < 40; i++) { const began = performance.now(); fleet.refresh(); took.push(performance.now() - began); }
					return took.sort((a, b) => a - b)[38] })()`)
				t.Logf("%s, %d drones: p95 of drawing the page with a filter, %s: %.1f ms", name, tt.drones, view, page)
			}
		}
	}
}

// F-UI-01: the page's memory is flat over fifteen minutes.
func TestConsole_MemoryIsFlat(t *testing.T) {
	if !*bars {
		t.Skip("run with -bars")
	}
	ctx := page(t, chromedp.Flag("js-flags", "--expose-gc"), chromedp.Flag("enable-precise-memory-info", true))
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(crowd(t, 2000, nil)))
	var used []float64
	for range 16 {
		used = append(used, js[float64](t, ctx, `gc(), performance.memory.usedJSHeapSize / 1e6`))
		t.Logf("minute %d: %.1f MB", len(used)-1, used[len(used)-1])
		time.Sleep(time.Minute)
	}
	if grew := used[15] - used[5]; grew > 3 {
		t.Errorf("the page grew by %.1f MB in ten minutes", grew)
	}
}

// F-UI-04: a replay of 2,000 drones needs a bounded amount of memory, which leaving the past frees.
func TestConsole_ReplayMemoryIsBounded(t *testing.T) {
	if !*bars {
		t.Skip("run with -bars")
	}
	ctx := page(t, chromedp.Flag("js-flags", "--expose-gc"), chromedp.Flag("enable-precise-memory-info", true))
	settled(t, ctx)
	used := func() float64 {
		t.Helper()
		return js[float64](t, ctx, `gc(), performance.memory.usedJSHeapSize / 1e6`)
	}
	before := used()
	// Every drone flies; each whole moment also has 200 orders.
	js[any](t, ctx, `window.fetch = async (path) => {
		const q = new URLSearchParams(path.split("?")[1]), moments = [], ids = Array.from({length: 2000}, (_, i) => "DRONE-" + i);
		for (let at = Date.parse(q.get("from")); at <= Date.parse(q.get("to")); at += 1000 * q.get("every")) {
			const when = new Date(at).toISOString(), lat = 48.8 + (at % 1e6) / 1e7, lon = (i) => 2.3 + i / 1e4;
			const drones = ids.map((id, i) => ({kind: "drone", id, entity: {id, status: "MOVING", position: {lat, lon: lon(i)}, batteryPercentage: 80, speedKmh: 60, lastUpdate: when, seenAt: when, homeDepotId: "DEPOT-1", currentMissionId: "MISSION-" + i, missionAcked: true, shortName: "D" + i, payloadCapacityKg: 5, maxFlightTimeMinutes: 40, revision: i}}));
			const orders = ids.slice(0, 200).map((id) => ({kind: "order", id: "O-" + id, entity: {id: "O-" + id, status: "PENDING", priority: "HIGH", deliveryLocation: {lat, lon: 2.3}, createdAt: when, deadline: when}}));
			moments.push(moments.length ? {readTime: when, whole: false, upserts: [], deletes: [], positions: ids.map((id, i) => [id, lat, lon(i), 80, "MOVING", at])} : {readTime: when, whole: true, upserts: [...drones, ...orders], deletes: [], positions: []});
		}
		return new Response(JSON.stringify({moments, events: []}));
	}; document.getElementById("quarter").click(), 1`)
	await(t, ctx, `!!fleet.model.past && !fleet.replay.loading`)
	replay := used() - before
	took := js[float64](t, ctx, `(() => { const {from, to} = fleet.replay.span, took = []; for (let i = 0; i < 40; i++) { const began = performance.now(); fleet.replay.seek(i % 2 ? from + i * 10e3 : to - i * 10e3); took.push(performance.now() - began); }
		return took.sort((a, b) => a - b)[38] })()`)
	js[any](t, ctx, `document.getElementById("live").click(), 1`)
	await(t, ctx, `fleet.store === fleet.live`)
	left := used() - before
	t.Logf("a replay of 15 minutes takes %.1f MB; %.1f MB stay after it; p95 of jumps %.0f ms", replay, left, took)
	if replay > 60 || left > 5 {
		t.Errorf("a replay takes %.1f MB and leaves %.1f MB, want at most 60 and 5", replay, left)
	}
}

// way is when a report passed each point between a drone and the page, in Unix ms.
type way struct{ measured, published, delivered, streamed, heard, drawn float64 }

// ways are followed for some of the drones, by drone and time of measurement.
type ways struct {
	mu  sync.Mutex
	all map[string]*way
}

// reportKey names a report; "" for one that is not followed.
func reportKey(drone string, measured int64) string {
	if !strings.HasSuffix(drone, "0") && !strings.HasSuffix(drone, "5") {
		return ""
	}
	return fmt.Sprint(drone, "@", measured)
}

func (w *ways) note(drone string, measured int64, set func(*way)) {
	key := reportKey(drone, measured)
	if key == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[key] == nil {
		w.all[key] = &way{measured: float64(measured)}
	}
	set(w.all[key])
}

// followPublished notes when Pub/Sub took each report, and when it handed it to a
// subscriber that asks for reports as the live feed does.
func (w *ways) followPublished(t *testing.T, ctx context.Context, clients *connect.Clients) {
	const id = "telemetry-bars"
	if err := pubsubio.CreateTemporary(ctx, clients.PubSub, id, pubsubio.TopicTelemetry); err != nil {
		t.Fatal(err)
	}
	name := "projects/" + clients.PubSub.Project() + "/subscriptions/" + id
	go func() {
		for ctx.Err() == nil {
			resp, err := clients.PubSub.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{Subscription: name, MaxMessages: 1000})
			if err != nil || len(resp.GetReceivedMessages()) == 0 {
				continue
			}
			now := float64(time.Now().UnixMilli())
			var acks []string
			for _, m := range resp.GetReceivedMessages() {
				acks = append(acks, m.GetAckId())
				if r, err := wire.DecodeTelemetry(m.GetMessage().GetData(), m.GetMessage().GetAttributes()); err == nil {
					w.note(string(r.DroneID), r.Timestamp.UnixMilli(), func(w *way) {
						w.published, w.delivered = float64(m.GetMessage().GetPublishTime().AsTime().UnixMilli()), now
					})
				}
			}
			if err := clients.PubSub.SubscriptionAdminClient.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: name, AckIds: acks}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

// followStream notes when each report reaches a client of the stream.
func (w *ways) followStream(t *testing.T, ctx context.Context, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/stream?kinds=drone", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			now := float64(time.Now().UnixMilli())
			var changes struct{ Positions [][6]any }
			if err := json.Unmarshal([]byte(data), &changes); err != nil {
				t.Error(err)
			}
			for _, p := range changes.Positions {
				w.note(p[0].(string), int64(p[5].(float64)), func(w *way) { w.streamed = now })
			}
		}
	}()
}

// F-UI-01: from a report's publication to its pixel, and where the time goes.
func TestConsole_ShowsReportsSoon(t *testing.T) {
	if !*bars {
		t.Skip("run with -bars")
	}
	const fleetSize = 2000
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: fleetSize, OrdersPerMinute: 10, Speed: 1, HTTPAddr: "127.0.0.1:0"})
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(f.url))
	await(t, ctx, fmt.Sprintf(`fleet.map.drawn === %d`, fleetSize))
	following, stop := context.WithCancel(t.Context())
	defer stop()
	w := &ways{all: map[string]*way{}}
	w.followPublished(t, following, emutest.Connect(t, f.hosts))
	w.followStream(t, following, f.url)
	// A picture is seen when the browser asks for the next one.
	seen := js[[][]any](t, ctx, `(async () => {
		const { map, store } = fleet, draw = map.draw, place = store.position, heard = [], seen = [];
		await new Promise((r) => setTimeout(r, 10e3));
		store.position = function (p) { place.call(this, p); if (/[05]$/.test(p[0])) heard.push([p[0], p[5], Date.now()]); };
		map.draw = function () {
			draw.call(this);
			const these = heard.splice(0);
			requestAnimationFrame(() => { const now = Date.now(); for (const h of these) seen.push([...h, now]); });
		};
		await new Promise((r) => setTimeout(r, 40e3));
		return seen })()`)
	for _, row := range seen {
		w.note(row[0].(string), int64(row[1].(float64)), func(w *way) { w.heard, w.drawn = row[2].(float64), row[3].(float64) })
	}
	stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	var total []float64
	stages := []struct {
		name string
		of   func(*way) float64
		took []float64
	}{
		{name: "measured to published", of: func(w *way) float64 { return w.published - w.measured }},
		{name: "published to a subscriber", of: func(w *way) float64 { return w.delivered - w.published }},
		{name: "published to a client of the stream", of: func(w *way) float64 { return w.streamed - w.published }},
		{name: "there to the page", of: func(w *way) float64 { return w.heard - w.streamed }},
		{name: "the page to its pixel", of: func(w *way) float64 { return w.drawn - w.heard }},
	}
	for _, way := range w.all {
		if way.published == 0 || way.streamed == 0 || way.drawn == 0 {
			continue
		}
		total = append(total, way.drawn-way.published)
		for i := range stages {
			stages[i].took = append(stages[i].took, stages[i].of(way))
		}
	}
	if len(total) < fleetSize {
		t.Fatalf("%d reports were followed, too few", len(total))
	}
	at := func(list []float64, share float64) float64 {
		slices.Sort(list)
		return list[int(share*float64(len(list)-1))]
	}
	for _, s := range stages {
		t.Logf("%-36s p50 %5.0f ms, p99 %5.0f ms", s.name, at(s.took, 0.5), at(s.took, 0.99))
	}
	p99 := at(total, 0.99)
	t.Logf("%d drones, %d reports: published to pixel p50 %.0f ms, p99 %.0f ms, max %.0f ms", fleetSize, len(total), at(total, 0.5), p99, at(total, 1))
	if p99 > 1500 {
		t.Errorf("p99 %.0f ms, want at most 1500", p99)
	}
}
