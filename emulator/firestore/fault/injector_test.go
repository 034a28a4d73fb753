package fault

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
)

var commit = Call{RPC: "Commit", Owner: "worker", Names: []string{"projects/p/databases/d/documents/drones/a"}}

func TestInjector_MatchesByConditions(t *testing.T) {
	cases := []struct {
		name string
		rule Rule
		at   Stage
		want bool
	}{
		{"anything", Rule{}, Before, true},
		{"other stage", Rule{At: After}, Before, false},
		{"its rpc", Rule{RPC: "Commit"}, Before, true},
		{"other rpc", Rule{RPC: "Rollback"}, Before, false},
		{"its owner", Rule{Owner: "worker"}, Before, true},
		{"other owner", Rule{Owner: "boss"}, Before, false},
		{"path", Rule{NamePrefix: "drones/"}, Before, true},
		{"full name", Rule{NamePrefix: "projects/p/"}, Before, true},
		{"other path", Rule{NamePrefix: "orders/"}, Before, false},
		{"a save has no request", Rule{RPC: "Rollback", At: BeforeSave}, BeforeSave, true},
	}
	for _, c := range cases {
		i := New(1)
		i.Add(c.rule)
		if got := len(i.Decide(commit, c.at)) == 1; got != c.want {
			t.Errorf("%s: acts %v, want %v", c.name, got, c.want)
		}
	}
}

// Equal seeds give equal draws, and counts limit a rule.
func TestInjector_CountsAndDraws(t *testing.T) {
	draw := func(seed uint64) []bool {
		i := New(seed)
		rule := i.Add(Rule{Probability: 0.3, Do: Fail(codes.Internal)})
		var acts []bool
		for range 1000 {
			acts = append(acts, len(i.Decide(commit, Before)) > 0)
		}
		if n := rule.Fired(); n < 200 || n > 400 {
			t.Errorf("seed %d: acted %d of 1000 times with probability 0.3", seed, n)
		}
		return acts
	}
	if !slices.Equal(draw(1), draw(1)) {
		t.Error("equal seeds drew differently")
	}
	if slices.Equal(draw(1), draw(2)) {
		t.Error("different seeds drew equally")
	}
	i := New(1)
	nth, twice := i.Add(Rule{Nth: 3}), i.Add(Rule{Times: 2})
	for range 5 {
		i.Decide(commit, Before)
	}
	if nth.Fired() != 1 || twice.Fired() != 2 {
		t.Errorf("nth acted %d times, twice %d; want 1 and 2", nth.Fired(), twice.Fired())
	}
	nth.Remove()
	nth.Remove()
	twice.Remove()
	if i.Active() || (*Injector)(nil).Active() {
		t.Error("active without rules")
	}
}

func TestGate_BlocksUntilOpened(t *testing.T) {
	g := NewGate()
	done := make(chan error, 1)
	go func() { done <- g.Wait(t.Context()) }()
	if err := g.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Wait(cancelled); err == nil {
		t.Error("a closed gate let a cancelled caller pass")
	}
	g.Open()
	g.Open()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
