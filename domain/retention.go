package domain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Retention says how long new documents are kept, by collection. A collection that is not in it
// keeps its documents as long as ever: orders and missions for ever, the others 90 days.
type Retention struct{ Of map[string]time.Duration }

const (
	retentionDay = 24 * time.Hour
	// retentionYear is that of a leap year, so that nothing is deleted before its years are over.
	retentionYear = 366 * retentionDay
	// maxRetention is what a time.Duration can hold, rounded down.
	maxRetention = 100 * retentionYear
	// minRetention leaves people a week to look at a record.
	minRetention = 7 * retentionDay
	// minEndedRetention is for what a message can begin: Pub/Sub can keep a message for 31
	// days, and an order that is forgotten sooner could be made again by its message.
	minEndedRetention = 31 * retentionDay
)

// retained are the collections whose documents can be deleted, with the least time.
var retained = map[string]time.Duration{
	"events": minRetention, "decisions": minRetention, "cycles": minRetention, "discards": minRetention, "replays": minRetention,
	"refusals": minRetention, "alertAcks": minRetention, "webhookDeliveries": minRetention, "orders": minEndedRetention, "missions": minEndedRetention,
}

// UnmarshalText implements encoding.TextUnmarshaler: events=30y,cycles=30d.
func (r *Retention) UnmarshalText(text []byte) error {
	kept := map[string]time.Duration{}
	for entry := range strings.SplitSeq(string(text), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		least, known := retained[name]
		if !known {
			return fmt.Errorf("has %q; give COLLECTION=TIME with one of %s", name, strings.Join(slices.Sorted(maps.Keys(retained)), ", "))
		}
		if _, twice := kept[name]; twice {
			return fmt.Errorf("names %s twice; give one time", name)
		}
		unit, known := map[string]time.Duration{"d": retentionDay, "y": retentionYear}[value[max(len(value)-1, 0):]]
		n, err := strconv.Atoi(strings.TrimRight(value, "dy"))
		if !known || err != nil || value != strconv.Itoa(n)+value[len(value)-1:] {
			return fmt.Errorf("has %q for %s; give a number of days or years, such as 90d or 30y", value, name)
		}
		switch {
		case n < 0 || time.Duration(n) < least/unit || time.Duration(n)*unit < least:
			return fmt.Errorf("keeps %s for %s; give at least %dd", name, value, least/retentionDay)
		case time.Duration(n) > maxRetention/unit:
			return fmt.Errorf("keeps %s for %s; give at most 100y", name, value)
		}
		kept[name] = time.Duration(n) * unit
	}
	r.Of = kept
	return nil
}

// MarshalText implements encoding.TextMarshaler, in the form that UnmarshalText takes.
func (r Retention) MarshalText() ([]byte, error) {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(r.Of)) {
		entries = append(entries, fmt.Sprintf("%s=%dd", name, r.Of[name]/retentionDay))
	}
	return []byte(strings.Join(entries, ",")), nil
}
