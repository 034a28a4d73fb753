package meter

import "maps"

// Firestore sums up the round trips to Firestore.
type Firestore struct {
	RPCs   int64 `json:"rpcs"`
	Reads  int64 `json:"reads"`  // documents returned, and lookups that found none
	Writes int64 `json:"writes"` // documents written
}

// Cost is a price in round trips and documents.
type Cost struct {
	RPCs   float64 `json:"rpcs"`
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
}

// FirestoreTotals sums over all operations.
func (m *Meter) FirestoreTotals() Firestore {
	var t Firestore
	for _, f := range m.FirestoreByOperation() {
		t.RPCs += f.RPCs
		t.Reads += f.Reads
		t.Writes += f.Writes
	}
	return t
}

// FirestoreByOperation sums per operation, as WithOperation named it.
func (m *Meter) FirestoreByOperation() map[string]Firestore {
	m.mu.Lock()
	counts := maps.Clone(m.firestore)
	m.mu.Unlock()
	out := map[string]Firestore{}
	for k, c := range counts {
		f := out[k.operation]
		f.RPCs += c.calls.Value()
		f.Reads += c.reads.Value()
		f.Writes += c.writes.Value()
		out[k.operation] = f
	}
	return out
}

// CostPerThousand returns the cost so far of a thousand settled messages of each kind.
// A nacked message adds to the cost but not to the count, because it comes again.
func (m *Meter) CostPerThousand() map[string]Cost {
	messages := map[string]int64{}
	for s, n := range m.Settled() {
		if s.Outcome != Nacked {
			messages[s.Kind] += n
		}
	}
	out := map[string]Cost{}
	for operation, f := range m.FirestoreByOperation() {
		if n := float64(messages[operation]); n > 0 {
			out[operation] = Cost{RPCs: float64(f.RPCs) * 1000 / n, Reads: float64(f.Reads) * 1000 / n, Writes: float64(f.Writes) * 1000 / n}
		}
	}
	return out
}
