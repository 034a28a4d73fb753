package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// paired compares two series of the same runs, in points.
type paired struct {
	Runs   int     `json:"runs"`
	Mean   float64 `json:"mean"`     // of the differences
	Half   float64 `json:"interval"` // half the width of the 95 % confidence interval of the mean
	Wins   int     `json:"wins"`
	Losses int     `json:"losses"`
}

const confidence = 0.95

// compare compares run by run. The interval is Student's; with fewer than two runs there
// is none, and it is 0.
func compare(ours, theirs []float64) paired {
	p := paired{Runs: len(ours)}
	differences := make([]float64, len(ours))
	for i := range ours {
		differences[i] = ours[i] - theirs[i]
		switch {
		case differences[i] > 0:
			p.Wins++
		case differences[i] < 0:
			p.Losses++
		}
	}
	if p.Runs == 0 {
		return p
	}
	p.Mean = stat.Mean(differences, nil)
	if n := float64(p.Runs); p.Runs > 1 {
		student := distuv.StudentsT{Sigma: 1, Nu: n - 1}
		p.Half = student.Quantile(1-(1-confidence)/2) * stat.StdDev(differences, nil) / math.Sqrt(n)
	}
	return p
}

func (p paired) String() string {
	return fmt.Sprintf("%+.1f ±%.1f %d-%d", p.Mean, p.Half, p.Wins, p.Losses)
}
