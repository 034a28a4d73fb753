package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// handover is what a State Manager tells the next shift of the incident.
func handover(since string) form {
	now := time.Now().Add(ahead).UTC()
	alert := func(id, kind, about string, acknowledged any) form {
		return form{"id": id, "kind": kind, "rank": 3, "urgent": true, "entity": form{"kind": "order", "id": about}, "text": "CRITICAL order " + about + " will be late", "acknowledged": acknowledged, "since": now.Add(-time.Minute)}
	}
	order := func(id, priority string, deadline time.Duration, more form) form {
		more["id"], more["priority"], more["status"], more["deadline"], more["deliveryLocation"] = id, priority, "PENDING", now.Add(deadline), form{"lat": 48.8, "lon": 2.3}
		return more
	}
	return form{
		"since": since, "readTime": now,
		"orders": []form{
			order("O-HOPELESS", "CRITICAL", 9*time.Minute, form{"earliestArrival": now.Add(17 * time.Minute)}), order("O-WAITS", "STANDARD", time.Hour, form{}),
			order("O-HELD", "HIGH", time.Hour, form{"held": true, "heldReason": "surgeon asked (by bob)"}),
		},
		"drones": []form{{"id": "DRONE-3", "status": "UNKNOWN", "grounded": true, "groundedReason": "rotor (by bob)", "lastUpdate": now.Add(-time.Hour)}},
		"alerts": []form{alert("A-1", "CRITICAL_AT_RISK", "O-HOPELESS", nil), alert("A-2", "CRITICAL_AT_RISK", "O-HOPELESS", form{"by": "bob", "at": now, "reason": "taxi called"})},
		"steps": []form{
			{"at": now.Add(-time.Hour), "by": "bob", "cause": "OPERATOR", "what": "drone DRONE-3: stays IDLE; grounded=true because rotor"},
			{"at": now.Add(-time.Minute), "by": "bob", "cause": "OPERATOR", "what": "alert CRITICAL_AT_RISK:O-HOPELESS: acknowledged because taxi called"},
		},
		"events": []form{{"time": now.Add(-time.Hour), "entity": "drone", "id": "DRONE-3", "revision": 4, "from": "IDLE", "to": "IDLE", "cause": "OPERATOR", "by": "bob", "reason": "rotor (by bob)", "state": form{"grounded": true}}},
	}
}

// F-UI-12: the next shift reads what is at risk, what to watch and what people did since a time, on the screen or on paper.
func TestConsole_HandsOver(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	url, _ := staged(t, incident()...)
	since := time.Now().Add(ahead - 10*time.Hour).UTC().Truncate(time.Second)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"#view=Handover&since="+since.Format(time.RFC3339)))
	await(t, ctx, `document.querySelector("#panel h2")?.textContent.startsWith("Hand-over at ") === true && fleet.model.who !== null`)
	js[any](t, ctx, `fleet.refresh(), 1`)
	text := js[string](t, ctx, `document.getElementById("panel").innerText.replace(/[\s\u00a0]+/g, " ")`)
	for _, want := range []string{
		"Open orders: 3, of them 1 late or at risk (0 past the deadline), 2 without a drone, 1 held. Drones that take no mission: 1; due soon: 0. Alerts: 1 that nobody has taken note of, 1 acknowledged.",
		"blood to HOSP-BICHAT critical −8 min", "O-HELD high surgeon asked (by bob)", "DRONE-3 silent; grounded: rotor (by bob)", "CRITICAL order blood to HOSP-BICHAT will be late bob taxi called",
		"bob changed DRONE-3, now idle, grounded: rotor", "bob: critical at risk, blood to HOSP-BICHAT: acknowledged because taxi called", "blood to HOSP-COCHIN standard",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q: %s", want, text)
		}
	}
	shoot(t, ctx, "Handover")
	accessible(t, ctx, "Handover")
	js[any](t, ctx, `[...document.querySelectorAll(".choose button")].find((b) => b.textContent === "12 h").click(), 1`)
	await(t, ctx, `Math.abs(fleet.model.since - (fleet.live.now() - 12 * 3600e3)) < 60e3 && location.hash.includes("since=")`)

	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	is(t, ctx, "the paper has the hand-over and nothing else", `(() => { const seen = (id) => document.getElementById(id)?.checkVisibility() ?? false, panel = document.getElementById("panel");
		return ["strip", "worst", "map", "tabs", "replay", "aux"].every((id) => !seen(id)) && !document.querySelector("header").checkVisibility() && panel.scrollHeight <= panel.clientHeight + 1 && panel.getBoundingClientRect().width > innerWidth - 40 })()`)
	shoot(t, ctx, "Handover-print")
}
