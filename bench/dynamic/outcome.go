package main

import (
	"fmt"

	"github.com/dronefleet/dronefleet/sim/devrun"
)

// outcome is how one method served one world.
type outcome struct {
	Planner    string                            `json:"planner"`
	Seed       uint64                            `json:"seed"`
	Priorities map[string]devrun.PrioritySummary `json:"priorities"`
	FlownKm    float64                           `json:"flownKm"`
	Delivered  int                               `json:"delivered"`
	Missions   int                               `json:"missions"`
	Churn      int                               `json:"missionsFailed"`
	Cycles     int                               `json:"cycles"`
	Violations int                               `json:"violations"`
	Behind     bool                              `json:"behind"` // the machine did not keep up
}

var header = fmt.Sprintf("%-5s %-10s %24s %24s %24s %7s %8s %5s %10s %6s", "seed", "planner", "CRITICAL", "HIGH", "STANDARD", "km/del.", "ord/mis.", "churn", "oldest min", "broken")

// String is a row of the table.
func (o outcome) String() string { return o.row(fmt.Sprint(o.Seed)) }

func (o outcome) row(seed string) string {
	class := func(name string) string {
		p := o.Priorities[name]
		return fmt.Sprintf("%d+%d+%d %.1f min", p.OnTime, p.Late, p.Created-p.OnTime-p.Late, p.MeanLatenessSeconds/60)
	}
	oldest := 0.0
	for _, p := range o.Priorities {
		oldest = max(oldest, p.OldestSeconds/60)
	}
	return fmt.Sprintf("%-5s %-10s %24s %24s %24s %7.1f %8.1f %5d %10.0f %6d", seed, o.Planner, class("CRITICAL"), class("HIGH"), class("STANDARD"),
		o.FlownKm/float64(max(o.Delivered, 1)), float64(o.Delivered)/float64(max(o.Missions, 1)), o.Churn, oldest, o.Violations)
}

// total is the row for all worlds of a method.
func total(name string, outcomes []outcome) string {
	sum := outcome{Planner: name, Priorities: map[string]devrun.PrioritySummary{}}
	for _, o := range outcomes {
		if o.Planner != name {
			continue
		}
		sum.FlownKm += o.FlownKm
		sum.Delivered += o.Delivered
		sum.Missions += o.Missions
		sum.Churn += o.Churn
		sum.Violations += o.Violations
		for class, p := range o.Priorities {
			s := sum.Priorities[class]
			s.MeanLatenessSeconds = (s.MeanLatenessSeconds*float64(s.Late) + p.MeanLatenessSeconds*float64(p.Late)) / float64(max(1, s.Late+p.Late))
			s.Created, s.OnTime, s.Late = s.Created+p.Created, s.OnTime+p.OnTime, s.Late+p.Late
			s.OldestSeconds = max(s.OldestSeconds, p.OldestSeconds)
			sum.Priorities[class] = s
		}
	}
	return sum.row("all")
}
