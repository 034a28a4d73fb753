package pairs

import (
	"slices"
	"testing"
	"time"
)

// Compare runs pairs of acquisition and release, and the same of a bare store, in short turns:
// what else the machine does meets both. The medians of the turns are reported.
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

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
