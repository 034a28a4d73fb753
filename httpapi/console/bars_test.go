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

// streaming serves the page with a stream that tell sends until the request ends. below is nil for no map.
func streaming(t *testing.T, below *console.BaseMap, tell func(r *http.Request, send func(name string, data form))) (url string) {
	mux := http.NewServeMux()
	for path, file := range console.Files {
		mux.Handle("GET "+path, console.Handler(file, below))
	}
	mux.HandleFunc("GET "+console.MapPath, below.About)
	mux.HandleFunc("GET "+console.PMTilesPath, below.Archive)
	mux.HandleFunc("GET /api/v1/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tell(r, func(name string, data form) {
			text, err := json.Marshal(data)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "event: %s\nid: feed-7\ndata: %s\n\n", name, text)
			http.NewResponseController(w).Flush()
		})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

// crowd serves the page with n drones that all report once a second, each tenth with an alert: more than a fleet can be
// simulated on the machine that draws it.
func crowd(t *testing.T, n int, below *console.BaseMap) (url string) {
	at := func(i int) (lat, lon float64) {
		angle := float64(i) + float64(time.Now().UnixMilli())/20000
		return 48.85 + 0.05*math.Sin(angle) + 1e-5*float64(i), 2.35 + 0.08*math.Cos(angle)
	}
	statuses := []string{"IDLE", "MOVING", "MOVING", "DELIVERING", "CHARGING", "UNKNOWN"}
	return streaming(t, below, func(r *http.Request, send func(string, form)) {
		for first := 0; first < n; first += 500 {
			var entities []any
			for i := first; i < min(n, first+500); i++ {
				lat, lon := at(i)
				id := fmt.Sprintf("DRONE-%05d", i)
				entities = append(entities, form{"kind": "drone", "id": id, "entity": form{"id": id, "status": statuses[i%len(statuses)], "batteryPercentage": 80,
					"position": form{"lat": lat, "lon": lon}, "lastUpdate": time.Now().UTC()}})
				if i%10 == 0 {
					entities = append(entities, form{"kind": "alert", "id": "DUE:" + id, "entity": form{"id": "DUE:" + id, "kind": "DRONE_DUE_SOON",
						"entity": form{"kind": "drone", "id": id}, "text": "drone " + id + " is due soon", "rank": 14, "since": time.Now().UTC()}})
				}
			}
			send("snapshot", form{"serverTime": time.Now().UTC(), "last": first+500 >= n, "entities": entities})
		}
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for quarter := 0; ; quarter++ {
			select {
			case <-r.Context().Done():
				return
			case <-ticker.C:
			}
			var rows []any
			for i := quarter % 4; i < n; i += 4 {
				lat, lon := at(i)
				rows = append(rows, []any{fmt.Sprintf("DRONE-%05d", i), lat, lon, 80, statuses[i%len(statuses)], time.Now().UnixMilli()})
			}
			send("changes", form{"serverTime": time.Now().UTC(), "feedDelayMs": 0, "positions": rows})
		}
	})
}

// shift is the stream of a shift of 500 drones, from a first to a last quarter of a second, as fast as the page takes it: positions four
// times a second, an order and its mission each 6 s that end half an hour later, a cycle each 10 s and an alert each 30 s.
func shift(first, last int, send func(string, form)) {
	began := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	for quarter := first; quarter < last; quarter++ {
		now := began.Add(time.Duration(quarter) * 250 * time.Millisecond)
		var upserts, rows []any
		deletes := []form{}
		put := func(kind string, n int, entity form) {
			id := fmt.Sprint(kind, "-", n)
			entity["id"] = id
			upserts = append(upserts, form{"kind": kind, "id": id, "entity": entity})
		}
		at := func(i int) form {
			angle := float64(i) + float64(quarter)/80
			return form{"lat": 48.85 + 0.05*math.Sin(angle), "lon": 2.35 + 0.08*math.Cos(angle)}
		}
		for i := quarter % 4; i < 500; i += 4 {
			if quarter < 4 || i%100 == quarter%100 {
				put("drone", i, form{"status": []string{"MOVING", "IDLE"}[quarter/400%2], "position": at(i), "batteryPercentage": 80, "lastUpdate": now})
			}
			rows = append(rows, []any{fmt.Sprint("drone-", i), at(i)["lat"], at(i)["lon"], 80, "MOVING", now.UnixMilli()})
		}
		every := func(seconds, keep int, kinds []string, begin func(n int)) {
			if quarter%(4*seconds) != 0 {
				return
			}
			n := quarter / (4 * seconds)
			begin(n)
			for _, kind := range kinds {
				if n >= keep {
					deletes = append(deletes, form{"kind": kind, "id": fmt.Sprint(kind, "-", n-keep)})
				}
			}
		}
		every(6, 300, []string{"order", "mission"}, func(n int) {
			drone, order := fmt.Sprint("drone-", n%500), fmt.Sprint("order-", n)
			put("order", n, form{"status": "ASSIGNED", "priority": "HIGH", "requesterId": fmt.Sprint("HOSPITAL-", n%50), "assignedDroneId": drone, "assignedMissionId": fmt.Sprint("mission-", n),
				"createdAt": now, "deadline": now.Add(time.Hour), "deliveryLocation": at(n % 50)})
			put("mission", n, form{"status": "ACTIVE", "droneId": drone, "orderIds": []string{order}, "reachedStops": 0, "startTime": now,
				"route": []form{{"type": "HOSPITAL_DELIVERY", "relatedOrderId": order, "position": at(n % 50), "eta": now.Add(20 * time.Minute)}}})
		})
		every(10, 120, []string{"cycle"}, func(n int) {
			put("cycle", n, form{"depotId": "D", "outcome": "PUBLISHED", "startedAt": now, "endedAt": now, "applied": 1, "refused": form{}, "unserved": []form{}, "unservedTotal": 0})
		})
		every(30, 10, []string{"alert"}, func(n int) {
			put("alert", n, form{"kind": "CONTACT_LOST", "entity": form{"kind": "drone", "id": fmt.Sprint("drone-", n)}, "text": fmt.Sprint("drone drone-", n, " is silent"), "rank": 6, "since": now})
		})
		send("changes", form{"serverTime": now, "feedDelayMs": 0, "upserts": upserts, "deletes": deletes, "positions": rows})
	}
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

// F-UI-01: the page's memory is flat over a shift of an hour: it has the same after the stream of the last half of an hour as before it.
func TestConsole_MemoryIsFlat(t *testing.T) {
	if !*bars {
		t.Skip("run with -bars")
	}
	ctx := page(t, chromedp.Flag("js-flags", "--expose-gc"), chromedp.Flag("enable-precise-memory-info", true))
	const minute = 4 * 60 // quarters of a second
	next := make(chan int)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(streaming(t, nil, func(r *http.Request, send func(string, form)) {
		send("snapshot", form{"serverTime": time.Now().UTC(), "last": true, "entities": []form{}})
		for now := 0; ; {
			select {
			case <-r.Context().Done():
				return
			case to := <-next:
				shift(now, to, send)
				now = to
			case <-time.After(time.Second):
				send("heartbeat", form{"feedDelayMs": 0})
			}
		}
	})))
	used := map[int]float64{}
	for _, now := range []int{5, 35, 50, 65, 95} {
		began := time.Now()
		next <- now * minute
		await(t, ctx, fmt.Sprintf(`fleet.live.marks.size === 500 && Math.max(...[...fleet.live.marks.values()].map((m) => m.at)) >= Date.UTC(2026, 2, 1, 6, %d) - 1000`, now))
		used[now] = js[float64](t, ctx, `(async () => { await new Promise((r) => setTimeout(r, 1500)); gc(); return performance.memory.usedJSHeapSize / 1e6 })()`)
		t.Logf("after %d minutes of the fleet: %.1f MB, sent within %.1f s; %.0f orders", now, used[now], time.Since(began).Seconds(), js[float64](t, ctx, `fleet.live.all.order.size`))
	}
	// Orders are kept for half an hour, so the first ones went before minute 35.
	if grew := used[95] - used[35]; grew > 1 {
		t.Errorf("the page grew by %.1f MB in an hour", grew)
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

// F-UI-04: a replay of a real fleet of 2,000 drones has all of them at each moment that Firestore knows, and plays without stuttering.
func TestConsole_ReplaysThousandsOfDrones(t *testing.T) {
	if !*bars {
		t.Skip("run with -bars")
	}
	const fleetSize = 2000
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: fleetSize, OrdersPerMinute: 60, Speed: 1, HTTPAddr: "127.0.0.1:0"})
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(f.url))
	await(t, ctx, fmt.Sprintf(`fleet.map.drawn === %d`, fleetSize))
	time.Sleep(2 * time.Minute) // of the fleet, to replay
	began := time.Now()
	js[any](t, ctx, `document.getElementById("quarter").click(), 1`)
	await(t, ctx, `!!fleet.model.past`)
	first := time.Since(began)
	await(t, ctx, `!fleet.replay.loading`)
	t.Logf("the first moments are shown after %.1f s, all are read after %.1f s", first.Seconds(), time.Since(began).Seconds())
	if missing := js[string](t, ctx, `fleet.replay.missing`); missing != "" {
		t.Errorf("a part could not be read: %s", missing)
	}
	for _, back := range []int{90, 45, 0} {
		got := js[[]float64](t, ctx, fmt.Sprintf(`(() => { fleet.seek(fleet.replay.span.to - %d * 1000); const s = fleet.store; return [s.all.drone.size, s.marks.size, s.all.order.size, (s.now() - fleet.replay.span.to) / 1000] })()`, back))
		t.Logf("%d s before the end: %.0f drones, %.0f of them on the map, %.0f orders, shown %.0f s", back, got[0], got[1], got[2], got[3])
		if got[0] != fleetSize || got[1] != fleetSize {
			t.Errorf("%d s before the end the replay has %.0f drones, %.0f of them on the map", back, got[0], got[1])
		}
	}
	p95 := js[[]float64](t, ctx, `(async () => {
		fleet.seek(fleet.replay.span.to - 110e3); fleet.replay.speed = 10; fleet.replay.play(true);
		const gaps = []; let last = await new Promise(requestAnimationFrame); fleet.map.took.length = 0;
		for (const began = last; last - began < 10e3;) { const now = await new Promise(requestAnimationFrame); gaps.push(now - last); last = now; }
		const p95 = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
		return [p95(gaps), p95(fleet.map.took), gaps.length, fleet.replay.at - fleet.replay.span.to] })()`)
	t.Logf("at 10×: p95 of frames %.0f ms, of drawing alone %.1f ms, %.0f frames; it ended %.0f s before the end", p95[0], p95[1], p95[2], -p95[3]/1000)
	if p95[0] > 50 {
		t.Errorf("p95 of frames of a replay is %.0f ms, want at most 50", p95[0])
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
