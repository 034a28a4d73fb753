package explore

import "testing"

func TestScratch(t *testing.T) {
	for _, w := range Worlds {
		r := Explore(w, Contract(DefaultLimits()), 60, 300_000)
		t.Log(r)
		if r.Violation != nil {
			t.Errorf("%s\n%s", r.Violation, r.Story)
		}
	}
}
