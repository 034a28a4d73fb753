package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// F-OPR-05: whatever operators command, a drone is never both pinned and forbidden, the list is
// bounded, a repeated command changes nothing, and every command can be undone. A decision is
// applied exactly if its drone is allowed.
func TestPinOrder_AndProhibitionsAreObeyed(t *testing.T) {
	const drones = domain.MaxForbiddenDrones + 2
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(contract())
		w.with(openOrder("O1", 0))
		for i := range drones {
			w.with(readyDrone(domain.DroneID(fmt.Sprintf("D%d", i))))
		}
		pinned, forbidden := domain.DroneID(""), map[domain.DroneID]bool{}
		var commands []string
		for range rapid.IntRange(0, 60).Draw(t, "commands") {
			command := rapid.SampledFrom([]string{"pin", "unpin", "forbid", "forbid", "forbid", "allow"}).Draw(t, "command")
			drone := domain.DroneID(fmt.Sprintf("D%d", rapid.IntRange(0, drones).Draw(t, "drone"))) // the last is unknown
			_, known := w.drones[drone]
			want := Reason("")
			switch {
			case command == "unpin":
				if pinned == "" {
					want = ReasonUnchanged
				}
				pinned = ""
			case command == "allow":
				if !forbidden[drone] {
					want = ReasonUnchanged
				}
				delete(forbidden, drone)
			case !known:
				want = ReasonDroneUnknown
			case command == "pin" && pinned == drone, command == "forbid" && forbidden[drone]:
				want = ReasonUnchanged
			case command == "pin" && forbidden[drone]:
				want = ReasonDroneForbidden
			case command == "pin":
				pinned = drone
			case pinned == drone:
				want = ReasonDronePinned
			case len(forbidden) == domain.MaxForbiddenDrones:
				want = ReasonTooManyDrones
			default:
				forbidden[drone] = true
			}
			do := map[string]func() error{
				"pin": func() error { return w.pinOrder("O1", drone) }, "unpin": func() error { return w.unpinOrder("O1") },
				"forbid": func() error { return w.forbidDrone("O1", drone) }, "allow": func() error { return w.allowDrone("O1", drone) },
			}[command]
			commands = append(commands, command+" "+string(drone))
			before := w.orders["O1"]
			if got, _ := ReasonOf(do()); got != want {
				t.Fatalf("%v: %q, want %q", commands, got, want)
			}
			if once := w.orders["O1"]; want == "" {
				if once.Revision != before.Revision+1 {
					t.Fatalf("%v: revision %d after %d", commands, once.Revision, before.Revision)
				}
				if got, _ := ReasonOf(do()); got != ReasonUnchanged || w.orders["O1"].Revision != once.Revision {
					t.Fatalf("%v again: %q, want UNCHANGED", commands, got)
				}
			} else if once.Revision != before.Revision {
				t.Fatalf("%v: refused as %s, and changed", commands, want)
			}
		}
		o := w.orders["O1"]
		if o.PinnedDroneID != pinned || len(o.ForbiddenDroneIDs) != len(forbidden) ||
			slices.ContainsFunc(o.ForbiddenDroneIDs, func(id domain.DroneID) bool { return !forbidden[id] }) {
			t.Fatalf("%v: pinned to %q, forbidden %q; want %q, %v", commands, o.PinnedDroneID, o.ForbiddenDroneIDs, pinned, forbidden)
		}
		drone := domain.DroneID(fmt.Sprintf("D%d", rapid.IntRange(0, drones-1).Draw(t, "of the decision")))
		want := applied
		if pinned != "" && drone != pinned || forbidden[drone] {
			want = string(ReasonDroneNotAllowed)
		}
		if got := w.decide(plan("X", drone, "O1")); got != want {
			t.Fatalf("%v: a decision for %s is %s, want %s", commands, drone, got, want)
		}
		if err := w.err(); err != nil {
			t.Fatal(err)
		}
	})
}

// F-OPR-05: a refusal says what to do about it.
func TestPinOrder_NamesTheWayOut(t *testing.T) {
	w := newWorld(contract())
	orderStates["ASSIGNED"](w)
	w.with(readyDrone("D9"))
	for _, c := range []struct {
		err  error
		says string
	}{
		{w.pinOrder("O1", "D9"), "recall the mission first"},
		{w.forbidDrone("O1", "D1"), "drone D1 flies for it in mission M-X"},
		{w.pinOrder("O1", "D7"), "no drone D7"},
		{w.pinOrder("O1", "D1"), ""},
		{w.forbidDrone("O1", "D1"), `use "orders unpin" first`},
		{w.forbidDrone("O1", "D9"), ""},
		{w.pinOrder("O1", "D9"), `use "orders allow" first`},
	} {
		if got := fmt.Sprint(c.err); c.says == "" && c.err != nil || !strings.Contains(got, c.says) {
			t.Errorf("error %v, want %q in it", c.err, c.says)
		}
	}
}
