package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-REC-01, F-REC-02: times are days or years, by known names, and never so short that a message
// could outlive what it made.
func TestRetention_ReadsTimesByCollection(t *testing.T) {
	const day = 24 * time.Hour
	var r domain.Retention
	if err := r.UnmarshalText([]byte("events=30y, cycles=7d,orders=31d,missions=1y")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"events": 30 * 366 * day, "cycles": 7 * day, "orders": 31 * day, "missions": 366 * day, "decisions": 0} {
		if r.Of[name] != want {
			t.Errorf("%s is kept for %s, want %s", name, r.Of[name], want)
		}
	}
	text, _ := r.MarshalText()
	var again domain.Retention
	if err := again.UnmarshalText(text); err != nil || len(again.Of) != len(r.Of) || again.Of["events"] != r.Of["events"] {
		t.Errorf("%s reads as %v, %v", text, again, err)
	}
	for text, fault := range map[string]string{
		"event=30y": `has "event"; give COLLECTION=TIME with one of alertAcks, cycles`, "drones=30y": `has "drones"`, "": `has ""`, "events": `has "" for events`,
		"events=30": "give a number of days or years", "events=30h": "give a number", "events=1.5y": "give a number", "events=+9d": "give a number", "events=y": "give a number",
		"events=09d": "give a number", "events=6d": "give at least 7d", "orders=30d": "give at least 31d", "missions=7d": "give at least 31d", "events=-1y": "give at least 7d",
		"events=101y": "give at most 100y", "events=9d,events=8d": "names events twice", "events=99999999999999999999d": "give a number",
	} {
		if err := new(domain.Retention).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: error %v, want %q", text, err, fault)
		}
	}
}
