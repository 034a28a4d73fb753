package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pastOf answers for a staged State Manager how a drone flew east with a CRITICAL order, at a
// hundredth of a degree a minute. The last minutes have an order that is late, the earliest piece is lost.
func pastOf(w http.ResponseWriter, r *http.Request) {
	now := time.Now().Add(ahead)
	at := func(name string) time.Time { t, _ := time.Parse(time.RFC3339Nano, r.FormValue(name)); return t }
	every, _ := strconv.Atoi(r.FormValue("every"))
	if every == 0 {
		every = 15
	}
	if now.Sub(at("from")) > 14*time.Minute {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"detail": "no state is kept for this time; Firestore keeps an hour"}`)
		return
	}
	entity := func(kind, id string, more form) form {
		more["id"] = id
		return form{"kind": kind, "id": id, "entity": more}
	}
	moments, events := []form{}, []form{}
	for t := at("from"); !t.After(at("to")); t = t.Add(time.Duration(every) * time.Second) {
		ago := now.Sub(t)
		lon := 2.35 - ago.Minutes()/100
		m := form{"readTime": t, "whole": len(moments) == 0, "upserts": []form{}, "deletes": []form{}, "positions": []any{[]any{"DRONE-1", 48.85, lon, 80, "MOVING", t.UnixMilli()}}}
		if len(moments) == 0 {
			m["positions"] = []any{}
			m["upserts"] = []form{
				entity("depot", "DEPOT-1", form{"name": "North", "position": form{"lat": 48.85, "lon": 2.2}}),
				entity("drone", "DRONE-1", form{"status": "MOVING", "position": form{"lat": 48.85, "lon": lon}, "batteryPercentage": 80, "lastUpdate": t, "currentMissionId": "M-1"}),
				entity("mission", "M-1", form{"droneId": "DRONE-1", "orderIds": []string{"O-PAST"}, "status": "ACTIVE", "reachedStops": 1, "route": []form{}}),
				entity("order", "O-PAST", form{
					"priority": "CRITICAL", "status": "IN_DELIVERY", "requesterId": "HOSP-NECKER", "productType": "BLOOD", "assignedDroneId": "DRONE-1", "assignedMissionId": "M-1",
					"createdAt": now.Add(-time.Hour), "deadline": now.Add(-5 * time.Minute), "deliveryLocation": form{"lat": 48.85, "lon": 2.36},
				}),
			}
		}
		moments = append(moments, m)
	}
	for _, e := range []form{
		{"at": now.Add(-8 * time.Minute), "kind": "OPERATOR", "entity": form{"kind": "order", "id": "O-PAST"}, "text": "order O-PAST: priority HIGH -> CRITICAL", "by": "ann"},
		{"at": now.Add(-5 * time.Minute), "kind": "ORDER_LATE", "entity": form{"kind": "order", "id": "O-PAST"}, "text": "order O-PAST: late"},
	} {
		if t := e["at"].(time.Time); !t.Before(at("from")) && t.Before(at("to").Add(time.Duration(every)*time.Second)) {
			events = append(events, e)
		}
	}
	_ = json.NewEncoder(w).Encode(form{"serverTime": now, "moments": moments, "events": events}) // what is missing fails the test
}

// F-UI-04: map, tables and selection show one moment of the past, which is played, stepped through by
// keys and events, marked as such, and left by one click or by Back.
func TestConsole_ReplaysThePast(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	settled(t, ctx)
	js[any](t, ctx, `document.getElementById("quarter").click(), 1`)
	await(t, ctx, `!!fleet.model.past && !fleet.replay.loading`)
	is(t, ctx, "words, title and frame say that it is the past", `document.getElementById("state").textContent.startsWith("Past: the fleet as it was at") && document.title.startsWith("Past ") && document.documentElement.dataset.past === ""`)
	is(t, ctx, "a part that is lost is named", `/Nothing is kept from before .*\d\d:\d\d:\d\d\./.test(document.getElementById("replay").textContent)`)
	is(t, ctx, "the table has the past's orders", `document.querySelectorAll("#panel tbody .row").length === 1 && document.getElementById("panel").textContent.includes("HOSP-NECKER")`)
	is(t, ctx, "events stand on the bar by name", `[...document.querySelectorAll(".tick")].map((b) => b.title.replace(/^.*?\d\d:\d\d:\d\d /, "")).join("|") === "order blood to HOSP-NECKER: priority HIGH -> CRITICAL; by ann|order late: blood to HOSP-NECKER"`)

	// Between moments drones are on their way, and slack counts down.
	where := func() float64 { t.Helper(); return js[float64](t, ctx, `fleet.store.marks.get("DRONE-1").lon`) }
	js[any](t, ctx, `window.t0 = fleet.replay.span.from + 32 * 15e3, fleet.seek(t0), 1`)
	before := where()
	js[any](t, ctx, `fleet.seek(t0 + 6e3), 1`)
	if moved := where() - before; moved < 0.0009 || moved > 0.0011 {
		t.Errorf("in 6 s of 15 the drone moved by %f degrees, want 0.001", moved)
	}
	is(t, ctx, "it heads east", `Math.abs(fleet.store.marks.get("DRONE-1").heading - Math.PI / 2) < 0.01`)
	js[any](t, ctx, `fleet.select({kind: "drone", id: "DRONE-1"}), 1`)
	is(t, ctx, "the card shows the past, without commands", `document.getElementById("selected").textContent.includes("blood to HOSP-NECKER") && [...document.querySelectorAll(".actions button")].map((b) => b.textContent).join() === "Story"`)
	js[any](t, ctx, `fleet.seek(t0 - 45e3), fleet.seek(t0 + 6e3), 1`)
	if again := where(); again < before+0.0009 || again > before+0.0011 {
		t.Errorf("after going back and forth the drone is at %f, want %f", again, before+0.001)
	}
	if share := framed(t, ctx); share < 0.3 {
		t.Errorf("%.0f %% of the map's edge has the colour of the past, want a dashed line", 100*share)
	}
	shoot(t, ctx, "Replay")
	accessible(t, ctx, "Replay")

	// Keys: arrows for moments, with Shift for events, Space to play.
	js[any](t, ctx, `document.getElementById("when").focus(), 1`)
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	await(t, ctx, `fleet.replay.at === t0 + 15e3`)
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(chromedp.ModifierShift)))
	await(t, ctx, `document.getElementById("event").textContent.includes("order late: blood to HOSP-NECKER") && Math.abs(fleet.replay.at - fleet.replay.ticks[1].at) < 1000`)
	js[any](t, ctx, `[...document.querySelectorAll("[aria-label=Speed] button")].at(-1).click(), document.getElementById("when").focus(), window.began = fleet.replay.at, 1`)
	do(t, ctx, chromedp.KeyEvent(" "))
	await(t, ctx, `fleet.replay.playing && fleet.replay.at > began + 30e3`)
	do(t, ctx, chromedp.KeyEvent(" "))
	await(t, ctx, `!fleet.replay.playing && document.getElementById("play").textContent === "Play"`)

	// The address has the moment and its interval; Back leaves the past.
	address := js[string](t, ctx, `location.href`)
	shown := js[float64](t, ctx, `Math.round(fleet.replay.at / 1000)`)
	js[any](t, ctx, `fleet.select(null), document.getElementById("live").click(), 1`)
	await(t, ctx, `fleet.store === fleet.live && document.getElementById("state").textContent === "Live" && !document.title.startsWith("Past")`)
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	await(t, ctx, fmt.Sprintf(`!!fleet.model.past && !fleet.replay.loading && Math.round(fleet.replay.at / 1000) === %.0f`, shown))
	js[any](t, ctx, `document.getElementById("live").click(), 1`)
	await(t, ctx, `fleet.store === fleet.live`)
	js[any](t, ctx, `history.back(), 1`)
	await(t, ctx, `!!fleet.model.past`)
	js[any](t, ctx, `history.forward(), 1`)
	await(t, ctx, `fleet.store === fleet.live`)
}
