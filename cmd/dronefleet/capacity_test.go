package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/connect"
)

func TestCapacity_PrintsAFleetOfItsSize(t *testing.T) {
	t.Parallel()
	var summary struct {
		Fleet  struct{ Drones, Areas, Optimizers int }
		Breaks []struct{ What string } `json:"breaksFirst"`
	}
	stdout, _ := dronefleet.Run(t, connect.Config{}, 0, "capacity", "--drones=20000", "--areas=12", "--ownership=lock", "--output=json")
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil {
		t.Fatal(err)
	}
	if f := summary.Fleet; f.Drones != 20_000 || f.Areas != 12 || f.Optimizers != 2 || len(summary.Breaks) == 0 {
		t.Errorf("the summary is of %+v", summary)
	}
	if stdout, _ = dronefleet.Run(t, connect.Config{}, 0, "capacity", "--drones=20000"); !strings.HasPrefix(stdout, "20,000 drones in 20 areas") {
		t.Errorf("the text begins with %.80s", stdout)
	}
}
