package domain_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// F-ORD-05
func TestObstacles_String(t *testing.T) {
	for want, o := range map[string]domain.Obstacles{
		"":                                       {},
		"0 free; 28 busy":                        {Busy: 28},
		"2 free: 2 cold chain":                   {Free: 2, ColdChain: 2},
		"3 free: 1 warehouse, 1 range, 1 unused": {Free: 3, Warehouse: 1, Range: 1, Unused: 1},
		"12 free: 2 payload, 1 battery, 4 taken, 5 reserve (9 late); 28 busy": {
			Free: 12, Busy: 28, Payload: 2, Battery: 1, Taken: 4, Reserve: 5, Deadline: 9,
		},
	} {
		if got := o.String(); got != want || o.Counted() != (want != "") {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}
