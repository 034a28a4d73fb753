package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// F-CYC-03: the page of a large fleet asks for the drones of its map first, goes on from the last event that it has, and keeps all drones.
func TestConsole_AsksForTheDronesOfItsMapFirst(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	asked := make(chan url.Values, 10)
	address := streaming(t, nil, func(r *http.Request, send func(string, form)) {
		if asked <- r.URL.Query(); r.URL.RawQuery == "" {
			var drones []form
			for i := range 1000 {
				id := fmt.Sprint("DRONE-", i)
				drones = append(drones, form{"kind": "drone", "id": id, "entity": form{"id": id, "status": "IDLE", "position": form{"lat": 48 + float64(i)/1000, "lon": 2.35}, "batteryPercentage": 80, "lastUpdate": time.Now()}})
			}
			send("snapshot", form{"serverTime": time.Now(), "last": true, "entities": drones})
		}
		for r.Context().Err() == nil {
			send("changes", form{"serverTime": time.Now(), "feedDelayMs": 0, "upserts": []form{}})
			time.Sleep(250 * time.Millisecond)
		}
	})
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(address+"#map=48.5,2.35,20000"))
	await(t, ctx, `fleet.map.drawn === 1000`)
	js[any](t, ctx, `window.lost = 0, new MutationObserver(() => { if (document.documentElement.dataset.state !== "live") window.lost++ }).observe(document.documentElement, {attributes: true}), 1`)
	if first := <-asked; len(first) != 0 {
		t.Errorf("asked first for %v", first)
	}
	next := <-asked
	if next.Get("after") != "feed-7" {
		t.Errorf("asked for what comes after %q", next.Get("after"))
	}
	is(t, ctx, "it asks for what the map shows and what is near", fmt.Sprintf(`(() => { const [s, w, n, e] = fleet.map.sees(), near = [%s]; return near[0] < s && near[1] < w && near[2] > n && near[3] > e && near[2] - near[0] < 2.1 * (n - s) })()`, next.Get("near")))
	await(t, ctx, `performance.now() - fleet.stream.heard < 200`)
	is(t, ctx, "it loses no drone and no connection", `fleet.map.drawn === 1000 && window.lost === 0`)
}

// F-CYC-03: a page that is told of some areas only says so, asks for others when the map shows them, and begins with those of its
// map the next time.
func TestConsole_SaysThatItHasSomeAreasOnly(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	asked := make(chan url.Values, 100)
	address := streaming(t, nil, func(r *http.Request, send func(string, form)) {
		asked <- r.URL.Query()
		depot := func(id string) form {
			return form{"kind": "depot", "id": id, "entity": form{"id": id, "name": id, "position": form{"lat": 48.5, "lon": 2.35}}}
		}
		send("snapshot", form{"serverTime": time.Now(), "last": true, "areas": []string{"DEPOT-1"}, "entities": []form{depot("DEPOT-1"), depot("DEPOT-2"), depot("DEPOT-3")}})
		for r.Context().Err() == nil {
			send("changes", form{"serverTime": time.Now(), "feedDelayMs": 0, "upserts": []form{}})
			time.Sleep(250 * time.Millisecond)
		}
	})
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(address+"#map=48.5,2.35,20000"))
	await(t, ctx, `document.querySelector("#areas")?.textContent === "Only what belongs to 1 of 3 depots: those near the map"`)
	if first := <-asked; len(first) != 0 {
		t.Errorf("asked first for %v", first)
	}
	for q := range asked { // small as the fleet looks
		if q.Get("near") != "" && q.Get("after") != "" {
			break
		}
	}
	do(t, ctx, chromedp.Reload())
	for q := range asked {
		if q.Get("near") == "" {
			t.Errorf("asks for %v, and not for what is near", q)
		}
		if q.Get("after") == "" {
			var box [4]float64
			if _, err := fmt.Sscanf(q.Get("near"), "%f,%f,%f,%f", &box[0], &box[1], &box[2], &box[3]); err != nil || box[0] > 48.48 || box[0] < 48.46 || box[3] < 2.4 || box[3] > 2.5 {
				t.Errorf("asks first for what is near %v: %v", box, err)
			}
			break
		}
	}
}
