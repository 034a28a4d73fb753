package capacity

import "testing"

// F-SWP-01: a drone costs at most 300 reads a day of sweeps, and a sweep of a million drones takes at
// most 2 s.
func TestSweep_CostsLittle(t *testing.T) {
	model, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	for _, drones := range []int{1000, 10_000, 100_000, 1_000_000} {
		f := Typical(drones, 0, true)
		timing := model.Time(f, Today)
		day := byWork(model.Day(f, f.nominal(timing)))
		if reads := (day[workSweep].Reads + day[workSweepAll].Reads) / float64(drones); reads > 300 {
			t.Errorf("%d drones: %.0f reads a drone and day", drones, reads)
		} else {
			t.Logf("%d drones: %.0f reads a drone and day", drones, reads)
		}
		for _, wait := range timing.Waits {
			if wait.What == "a sweep" && wait.P99 > 2 {
				t.Errorf("%d drones: a sweep takes %.1f s", drones, wait.P99)
			}
		}
	}
}
