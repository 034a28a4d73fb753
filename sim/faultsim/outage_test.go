package faultsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

// reports tells whether something breaks the invariant or requirement.
func (r Result) reports(rule string) bool {
	return slices.ContainsFunc(r.findings(), func(f string) bool { return strings.HasPrefix(f, rule+" ") })
}

// F-ACK-01, F-FLOW-01: an outage of Firestore of three minutes, longer than any
// lease, loses nothing, dead-letters nothing and fills no memory. What is
// nacked comes again: a product that acks instead loses it.
func TestOutageOfMinutes(t *testing.T) {
	needsEmbedded(t)
	if testing.Short() {
		t.Skip("takes a whole simulation; run without -short")
	}
	outage := strike{
		at: 10 * time.Second, lasts: 3 * time.Minute, what: strikeFirestoreOutage,
		rule: &fsfault.Rule{Owner: productOwner, Do: fsfault.Fail(codes.Unavailable)},
	}
	for _, row := range []struct {
		name     string
		saboteur saboteur
		caught   string
	}{
		{"nothing is lost", saboteur{}, ""},
		{"a nack sent as an ack loses messages", saboteur{ackNacks: true}, "I9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Config{
				Seed: *seed, Duration: 5 * time.Second, Strikes: []strike{outage}, Log: logger(t), Sabotage: row.saboteur.dialOptions(),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("orders %v, %d refused calls, dead letters %v, %d MiB", r.Orders, r.Faults[strikeFirestoreOutage], r.DeadLetters, r.MaxHeap>>20)
			if row.caught != "" {
				if !r.reports(row.caught) {
					t.Errorf("%s did not report it; found %v", row.caught, r.findings())
				}
				return
			}
			for _, f := range r.findings() {
				t.Error(f)
			}
			if r.Faults[strikeFirestoreOutage] == 0 {
				t.Error("there was no outage")
			}
			if r.MaxHeap > maxHeap {
				t.Errorf("the heap grew to %d MiB", r.MaxHeap>>20)
			}
		})
	}
}
