package manager

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

// backlogOld is more than a message waits in normal operation.
const backlogOld = 30 * time.Second

// kindProcess and kindTopic are what alerts about a manager are about.
const (
	kindProcess live.Kind = "process"
	kindTopic   live.Kind = "topic"
)

// Now is the fleet's time.
func (m *Manager) Now() time.Time { return m.clock.Now() }

// Alerts lists what dispatchers should know of this manager: a wrong clock, messages that
// wait for long, and messages that it refused for good since it began.
func (m *Manager) Alerts() (alerts []live.Alert) {
	// Occasion: an acknowledgement holds for the day.
	today := m.Now().UTC().Format(time.DateOnly)
	if last := m.measured.Load(); last != nil && last.Level == lock.ClockBlock {
		alerts = append(alerts, live.Alert{
			Kind: live.AlertClockOff, About: live.Key{Kind: kindProcess, ID: "clock"}, Occasion: today,
			Text: fmt.Sprintf("the clock of a State Manager is off by %s, so it does not sweep; synchronise it (NTP)", last.Offset.Round(time.Millisecond)),
		})
	}
	backlogs := m.Meter.Backlogs()
	for _, topic := range slices.Sorted(maps.Keys(backlogs)) {
		if backlogs[topic].Age() > backlogOld {
			alerts = append(alerts, live.Alert{
				Kind: live.AlertBacklogOld, About: live.Key{Kind: kindTopic, ID: topic}, Occasion: today,
				Text: fmt.Sprintf("messages of %s wait for more than %s; Firestore is slow or unreachable, or more State Managers are needed", topic, backlogOld),
			})
		}
	}
	refused := map[string]int64{}
	for s, n := range m.Meter.Settled() {
		if s.Outcome == meter.DeadLetter {
			refused[s.Kind] += n
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(refused)) {
		alerts = append(alerts, live.Alert{
			Kind: live.AlertRefusedForGood, About: live.Key{Kind: kindTopic, ID: topic}, Occasion: fmt.Sprint(refused[topic]),
			Text: fmt.Sprintf("%d messages of %s were refused for good since this State Manager began; see the dead letters", refused[topic], topic),
		})
	}
	return alerts
}
