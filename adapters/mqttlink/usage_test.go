package mqttlink

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-GW-06: a drone that sends too much is held back, and no other; a clock that jumps holds
// nobody back.
func TestUsages_HoldBackOneDrone(t *testing.T) {
	var u usages
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	for i := range maxReports + 10 {
		if got, want := u.report("D-1", now, now), i < maxReports; got != want {
			t.Fatalf("report %d: %t", i, got)
		}
	}
	if !u.report("D-2", now, now) || !u.answer("D-1", now) {
		t.Error("another drone or an answer is held back")
	}
	for i := range maxLate + 10 { // what was kept during an outage
		if got, want := u.report("D-1", now, now.Add(-2*usagePeriod)), i < maxLate; got != want {
			t.Fatalf("late report %d: %t", i, got)
		}
	}
	for _, jump := range []time.Duration{usagePeriod, -time.Hour} {
		if now = now.Add(jump); !u.report("D-1", now, now) {
			t.Errorf("still held back after %s", jump)
		}
	}
}

// F-GW-06: the broker keeps a command for the rest of its life, whatever the gateway's clock
// says, and lets it reach a connected drone, which judges for itself.
func TestCommandExpiry_TrustsNoClock(t *testing.T) {
	published := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		life, now, want time.Duration
	}{
		"at once":         {time.Minute, 0, time.Minute},
		"later":           {time.Minute, 20 * time.Second, 40 * time.Second},
		"expired":         {time.Minute, 2 * time.Minute, leastExpiry},
		"clock behind":    {time.Minute, -time.Hour, time.Minute},
		"clock ahead":     {time.Minute, time.Hour, leastExpiry},
		"never":           {0, 0, revocationExpiry},
		"published later": {-time.Second, 0, leastExpiry},
	} {
		command := domain.Command{}
		if c.life != 0 {
			command.ExpiresAt = published.Add(c.life)
		}
		if got := commandExpiry(command, published.Add(c.now), published); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTopic_IsOfOneDrone(t *testing.T) {
	for topic, want := range map[string]domain.DroneID{
		"fleet/D-1/telemetry": "D-1", "fleet//telemetry": "", "fleet/D-1/x/telemetry": "", "other/D-1/telemetry": "", "fleet/D 1/telemetry": "D 1",
	} {
		if got, _, ok := readTopic(topic); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", topic, got, ok)
		}
	}
	if topic, err := topicOf("D-1", missionsTopic); err != nil || topic != "fleet/D-1/missions" {
		t.Errorf("%q, %v", topic, err)
	}
	for _, id := range []domain.DroneID{"D+1", "#"} {
		if topic, err := topicOf(id, missionsTopic); err == nil {
			t.Errorf("%q has topic %q", id, topic)
		}
	}
}
