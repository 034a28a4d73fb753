package input_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/internal/input"
)

func TestNearest_OnlyWhereItHelps(t *testing.T) {
	names := []string{"id", "name", "position", "capacity", "lat", "telemetry-window"}
	for given, want := range map[string]string{
		"capcity": "capacity", "Name": "name", "ID": "id", "nmae": "name", "latt": "lat", "posiiton": "position",
		"telemtry-windw": "telemetry-window", "telmtry-windw": "", "lxt": "lat", "lxy": "",
		"x": "", "no": "", "i": "", "idx": "", "lng": "", "": "", "color": "",
	} {
		if got := input.Nearest(given, names); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
