package storeserver

import (
	"slices"
	"testing"
	"time"
)

// Compare measures pairs of acquisition and release beside the same on a bare store. They
// take short turns, so that other load meets both, and it reports the medians of the turns.
func Compare(b *testing.B, perTurn int, bare, lock func()) {
	var bareTurns, lockTurns []float64
	turn := func(pair func()) float64 {
		start := time.Now()
		for range perTurn {
			pair()
		}
		return float64(perTurn) / time.Since(start).Seconds()
	}
	turn(bare)
	turn(lock) // scripts are loaded, statements prepared
	b.ResetTimer()
	for range (b.N + perTurn - 1) / perTurn {
		bareTurns = append(bareTurns, turn(bare))
		lockTurns = append(lockTurns, turn(lock))
	}
	b.ReportMetric(median(lockTurns), "pairs/s")
	b.ReportMetric(median(bareTurns), "bare-pairs/s")
	b.ReportMetric(median(lockTurns)/median(bareTurns), "ratio")
}

// median sorts list, which must not be empty, and returns the element in the middle.
func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
