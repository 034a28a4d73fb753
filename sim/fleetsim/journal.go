package fleetsim

import (
	"slices"
	"sync"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// Journal records every message that a server confirmed: what the State Manager
// now owes an effect or a reason. It is safe for concurrent use.
//
// Above a bound it folds the older half of the telemetry to the newest message
// of each drone: as a drone's time only rises, an effect of that one implies
// the fate of those before it.
type Journal struct {
	mu        sync.Mutex
	telemetry []invariant.Message
	others    []invariant.Message
	bound     int
}

// journalBound is the number of telemetry messages kept one by one, about
// 150 MB.
const journalBound = 1_000_000

// NewJournal is an empty journal.
func NewJournal() *Journal { return &Journal{bound: journalBound} }

// Confirm records a message that the server accepted.
func (j *Journal) Confirm(m invariant.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m.DroneID == "" {
		j.others = append(j.others, m)
		return
	}
	j.telemetry = append(j.telemetry, m)
	if len(j.telemetry) >= j.bound {
		j.fold()
	}
}

func (j *Journal) fold() {
	half := len(j.telemetry) / 2
	seen := make(map[domain.DroneID]bool)
	var kept []invariant.Message
	for _, m := range slices.Backward(j.telemetry[:half]) {
		if !seen[m.DroneID] {
			seen[m.DroneID] = true
			kept = append(kept, m)
		}
	}
	slices.Reverse(kept)
	j.telemetry = append(kept, j.telemetry[half:]...)
	// A fleet of the bound's size folds to nothing less; look again only
	// after as much has come in once more.
	j.bound = max(journalBound, 2*len(j.telemetry))
}

// Messages are the confirmed messages, telemetry first, each kind in the order
// of confirmation.
func (j *Journal) Messages() []invariant.Message {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Concat(j.telemetry, j.others)
}
