package capacity

import (
	"fmt"
	"strings"
)

// Rising is an indexed field whose values only rise. An index on them takes about
// MaxRising writes a second, whatever field stands before it in a composite index: values that
// are written at one time hit one place for each value of that field, so such an index is no
// worse than the time alone.
type Rising struct {
	Collection, Field string
	// PerSecond is the mean over a day; nil where only people write.
	PerSecond func(Fleet) float64
	Note      string
}

const (
	// MaxRising is what an index on rising values takes in a second.
	MaxRising = 500
	// PeakToMean is how much more a fleet writes at its peak than on average.
	PeakToMean = 2

	eventsPerMission = 11
	refusalsASecond  = 5 // of each State Manager, at most
)

// daily is a number for each drone and day, as a rate.
func daily(n func(Fleet) float64) func(Fleet) float64 {
	return func(f Fleet) float64 { return float64(f.Drones) * n(f) / day }
}

var (
	ordersADay   = daily(func(f Fleet) float64 { return f.OrdersPerDroneDay })
	missionsADay = daily(func(f Fleet) float64 { return f.OrdersPerDroneDay / f.OrdersPerMission })
)

// RisingFields are all of them; a test compares them with the index configuration.
var RisingFields = []Rising{
	{"events", "time", daily(func(f Fleet) float64 {
		return f.ChangesPerDroneDay + f.OrdersPerDroneDay + eventsPerMission*f.OrdersPerDroneDay/f.OrdersPerMission
	}), "one for each order, 11 for each mission, and the changes of status"},
	{"orders", "createdAt", ordersADay, ""},
	{"orders", "deadline", ordersADay, ""},
	{"orders", "deliveredAt", ordersADay, ""},
	{"decisions", "appliedAt", missionsADay, ""},
	{"missions", "startTime", missionsADay, ""},
	{"missions", "endTime", missionsADay, ""},
	{"cycles", "startedAt", func(f Fleet) float64 { return float64(f.Depots) / cycleEvery }, ""},
	{"refusals", "refusedAt", func(f Fleet) float64 { return float64(f.Replicas) * refusalsASecond }, "at most: 5 a second for each State Manager"},
	{"discards", "discardedAt", nil, "at most 8 at a time"},
	{"replays", "replayedAt", nil, "at most 8 at a time"},
	{"placeChanges", "changedAt", nil, ""},
	{"maintenance", "at", nil, ""},
	{"lockBreaks", "brokenAt", nil, ""},
	{"alertAcks", "at", nil, ""},
	{"keys", "createdAt", nil, ""},
	{"keys", "revokedAt", nil, ""},
}

// RisingTable renders the table of rising values.
func RisingTable() string {
	var b strings.Builder
	b.WriteString("| field | writes a second at 10,000 drones, mean over a day | at 100,000 drones | |\n|-|-:|-:|-|\n")
	for _, r := range RisingFields {
		few, many, note := "-", "-", "people write it"
		if r.PerSecond != nil {
			few, many, note = rate(r.PerSecond(Typical(10_000, 1))), rate(r.PerSecond(Typical(100_000, 1))), ""
		}
		if r.Note != "" {
			note = strings.TrimPrefix(note+", "+r.Note, ", ")
		}
		fmt.Fprintf(&b, "| `%s` of `%s` | %s | %s | %s |\n", r.Field, r.Collection, few, many, note)
	}
	return b.String()
}

// rate is a number with as many digits as it is worth.
func rate(n float64) string {
	if n < 9.95 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}
