package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// story is what is recorded of O-FLIES.
func story() form {
	now := time.Now().Add(ahead).UTC()
	event := func(minute int, kind, id, from, to string, state, more form) form {
		e := form{"time": now.Add(time.Duration(minute-30) * time.Minute), "entity": kind, "id": id, "revision": minute + 1, "from": from, "to": to, "cause": "TELEMETRY", "state": state}
		for field, value := range more {
			e[field] = value
		}
		return e
	}
	on := form{"assignedDroneId": "DRONE-1", "assignedMissionId": "M-1", "held": false, "deadline": now.Add(7 * time.Minute), "priority": "CRITICAL"}
	return form{
		"events": []form{
			event(0, "order", "O-FLIES", "", "PENDING", form{"held": false, "priority": "CRITICAL"}, nil),
			event(1, "order", "O-FLIES", "PENDING", "PENDING", form{"held": true, "priority": "CRITICAL"}, form{"by": "bob", "reason": "surgeon asked (by bob)"}),
			event(2, "order", "O-FLIES", "PENDING", "PENDING", form{"held": false, "priority": "CRITICAL"}, form{"by": "bob", "reason": "surgeon is ready (by bob)"}),
			event(3, "order", "O-FLIES", "PENDING", "ASSIGNED", on, nil),
			event(3, "mission", "M-1", "", "ACTIVE", form{"recalled": false, "reachedStops": 0, "orders": 1}, nil),
			event(3, "drone", "DRONE-1", "IDLE", "MOVING", form{"missionAcked": false}, nil),
			event(4, "drone", "DRONE-1", "MOVING", "MOVING", form{"missionAcked": true}, nil),
			event(5, "order", "O-FLIES", "ASSIGNED", "IN_DELIVERY", on, nil),
			event(6, "order", "O-FLIES", "IN_DELIVERY", "IN_DELIVERY", on, nil), // bookkeeping
			event(6, "mission", "M-1", "ACTIVE", "ACTIVE", form{"recalled": false, "reachedStops": 1, "orders": 1}, nil),
			event(7, "mission", "M-1", "ACTIVE", "ACTIVE", form{"recalled": true, "reachedStops": 1, "orders": 1}, form{"by": "ann", "reason": "storm"}),
		},
		"decisions": []form{{"outcome": "REJECTED", "reason": "ORDER_NOT_PENDING", "droneId": "DRONE-2", "orderIds": []string{"O-FLIES"}, "appliedAt": now.Add(-26*time.Minute - 30*time.Second)}},
		"steps":     []form{{"at": now, "cause": "TELEMETRY", "what": "order O-FLIES: PENDING -> ASSIGNED; attempts=1", "related": "drone DRONE-1"}},
	}
}

// F-UI-11: stories and cycles are told in a dispatcher's words; what the audit recorded is behind a toggle.
func TestConsole_TellsStoriesInWords(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	now := time.Now().Add(ahead).UTC()
	cycle := form{"id": "C-1", "depotId": "DEPOT-1", "outcome": "PUBLISHED", "drones": 3, "orders": 4, "missions": 1, "assigned": 2, "startedAt": now.Add(-time.Minute), "endedAt": now.Add(-time.Minute),
		"holder": "optimizer-1", "fence": "0007", "readMs": 1, "solveMs": 2, "publishMs": 3, "applied": 2, "refused": form{}, "unserved": []form{{"orderId": "O-WAITS", "reason": "no_drone_free"}}, "unservedTotal": 1}
	url, _ := staged(t, append(incident(), form{"kind": "cycle", "id": "C-1", "entity": cycle})...)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"#view=Story&order=O-FLIES"))
	await(t, ctx, `document.querySelector("#panel .technical") !== null && fleet.model.who !== null && fleet.store.all.order.size > 0`)
	js[any](t, ctx, `fleet.refresh(), 1`)
	eta := js[string](t, ctx, `[...document.querySelectorAll("#selected dt")].find((d) => d.textContent === "ETA").nextSibling.textContent`)
	const about = "blood to HOSP-TARNIER"
	want := []string{
		"ann recalled DRONE-1: storm",
		"DRONE-1 left its depot (stop 1 of 2)",
		"DRONE-1 took " + about + " aboard, arrival now " + eta,
		"DRONE-1 confirmed its mission",
		"The plan for DRONE-2 to bring " + about + " was refused: order not pending",
		"DRONE-1 flies",
		"DRONE-1 got a mission with 1 order",
		"DRONE-1 was sent for " + about + ", arrival now " + eta,
		"bob released " + about + ": surgeon is ready",
		"bob held " + about + ": surgeon asked",
		about + " was ordered",
	}
	if got := js[[]string](t, ctx, `[...document.querySelectorAll("#panel table.fixed")].find((t) => t.caption.textContent.startsWith("What happened")).innerText.split("\n").filter((l) => /^\d/.test(l)).map((l) => l.split("\t")[1])`); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the story is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	is(t, ctx, "what is recorded is behind a toggle", `(() => { const p = document.getElementById("panel"), closed = !p.innerText.includes("attempts=1"); p.querySelector(".technical").open = true; return closed && p.innerText.includes("attempts=1") })()`)
	shoot(t, ctx, "Story-in-words")
	accessible(t, ctx, "Story in words")

	open(t, ctx, 4)
	is(t, ctx, "what a cycle did", fmt.Sprintf(`document.querySelector("#panel .lane p").textContent.endsWith(%q) && document.querySelector("#panel table.fixed tbody").textContent.includes("2 orders got a drone")`, " 2 orders got a drone; 1 order not served: 1 no drone free"))
	is(t, ctx, "locks and times are behind a toggle", `!document.querySelector("#panel .lane").innerText.includes("optimizer-1") && document.querySelector("#panel .lane").textContent.includes("Lock held by optimizer-1 with fence 7: snapshot 1 ms")`)
	shoot(t, ctx, "Cycles-in-words")
	accessible(t, ctx, "Cycles in words")
}
