package capacity

import (
	"fmt"
	"strings"
)

// Tables renders the generated part of docs/capacity.md.
func Tables() string {
	var b strings.Builder
	fleets := []Fleet{Typical(1000, 1), Typical(1000, 5), Typical(10_000, 1), Typical(100_000, 1)}

	b.WriteString("What a day uses, and what a month of 30 days costs at list price:\n\n")
	b.WriteString("| drones | reports/s each | reads/day | writes/day | deletes/day | messages/day | Firestore calls/day | Pub/Sub TiB/month |")
	for _, p := range Lists {
		fmt.Fprintf(&b, " $/day, %s | $/month |", p.Name)
	}
	b.WriteString("\n|-:|-:|-:|-:|-:|-:|-:|-:|" + strings.Repeat("-:|-:|", len(Lists)) + "\n")
	for _, f := range fleets {
		u := Total(f.Day())
		fmt.Fprintf(&b, "| %s | %g | %s | %s | %s | %s | %s | %.1f |", grouped(float64(f.Drones)), f.Hz,
			millions(u.Reads), millions(u.Writes), millions(u.Deletes), millions(u.Messages), millions(u.RPCs), u.Bytes*30/(1<<40))
		for _, p := range Lists {
			firestore, pubsub := p.Cost(u)
			fmt.Fprintf(&b, " %s | %s |", grouped(firestore+pubsub), grouped(30*(firestore+pubsub)))
		}
		b.WriteString("\n")
	}

	f := fleets[0]
	fmt.Fprintf(&b, "\nWhere it goes, for 1,000 drones at 1 report/s, at the prices of %s:\n\n", Lists[0].Name)
	b.WriteString("| part | reads/day | writes/day | deletes/day | Firestore calls/day | $/month |\n|-|-:|-:|-:|-:|-:|\n")
	for _, p := range f.Day() {
		firestore, pubsub := Lists[0].Cost(p.times(30))
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", p.Name, millions(p.Reads), millions(p.Writes), millions(p.Deletes), millions(p.RPCs), grouped(firestore+pubsub))
	}

	b.WriteString("\nMeasured by `go run ./bench/telemetry`, per report, with 1,000 drones that change their status once a minute:\n\n")
	b.WriteString("| reports/s each | calls | reads | writes |\n|-:|-:|-:|-:|\n")
	for _, hz := range []float64{1, 5} {
		m := Measured[hz]
		fmt.Fprintf(&b, "| %g | %.4f | %.4f | %.4f |\n", hz, m.RPCs, m.Reads, m.Writes)
	}

	a := f
	fmt.Fprintf(&b, "\nAssumed: %g orders per drone and day, %g to a mission; %g changes of a drone's status a day; %.0f %% of the drones idle, %.0f %% on a mission; "+
		"a depot for 1,000 drones and %d warehouses for each; a State Manager for 10,000 drones, two at least; all drones report around the clock.\n",
		a.OrdersPerDroneDay, a.OrdersPerMission, a.ChangesPerDroneDay, 100*a.Idle, 100*a.OnMission, a.Warehouses/a.Depots)
	return b.String()
}

// millions is a count in millions with as many digits as it is worth.
func millions(n float64) string {
	switch m := n / 1e6; {
	case m == 0:
		return "-"
	case m < 0.95:
		return fmt.Sprintf("%.2f M", m)
	case m < 99.5:
		return fmt.Sprintf("%.1f M", m)
	default:
		return grouped(m) + " M"
	}
}

// grouped is a whole number with commas.
func grouped(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, parts...), ",")
}
