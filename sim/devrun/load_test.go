package devrun

import (
	"math"
	"strings"
	"testing"
)

// F-API-02: the summary says what the fleet could carry, and whether more is ordered.
func TestSummary_SaysWhatTheFleetCouldCarry(t *testing.T) {
	for name, c := range map[string]struct {
		ordersPerMinute float64
		km              float64
		assigned        int
		slots           int
		capacity        float64
		overloaded      bool
	}{
		// 40 drones / (4.5 km * 1.45 min/km + 2 * 0.05 min)
		"too few orders to measure":     {4, 20, 10, 0, 6.04, false},
		"time to spare, longer flights": {4, 1920, 256, 0, 6.04, false},
		// 3.5 km an order: 40 / (3.5 * 1.45 + 0.1)
		"at full load": {12, 3500, 1000, 0, 7.73, true},
		// F-CHG-01. 5 * 10 % a minute / (4.5 km * 2.5 %/km)
		"few slots":    {6, 0, 0, 5, 4.44, true},
		"enough slots": {4, 0, 0, 7, 6.04, false},
	} {
		r := loadOf(c.ordersPerMinute, 40, charging{c.slots, 10}, c.km, c.assigned)
		if math.Abs(r.CapacityPerMinute-c.capacity) > 0.01 {
			t.Errorf("%s: capacity %.2f, want %.2f", name, r.CapacityPerMinute, c.capacity)
		}
		if told := strings.Contains(r.print(), "the backlog grows"); told != c.overloaded {
			t.Errorf("%s: printed %q", name, r.print())
		}
	}
	// F-KIT-02
	if text := loadOf(4, 0, charging{0, 10}, 0, 0).print(); !strings.Contains(text, "no simulated drones") {
		t.Errorf("without drones: printed %q", text)
	}
}
