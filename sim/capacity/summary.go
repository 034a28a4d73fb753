package capacity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Summary is what the model says of a fleet. Its JSON form is stable.
type Summary struct {
	Fleet Fleet `json:"fleet"`
	Use   Use   `json:"aDroneAndDay"`
	// Dollars are for a drone and a month of 30 days, by price list.
	Dollars map[string]float64 `json:"dollarsADroneAndMonth"`
	// KeptUp is what the first list would take if sweeps, cycles and learning kept up.
	KeptUp float64 `json:"dollarsIfAllKeptUp"`
	// BehindGateways is what the last list would take if the drones connected to gateways.
	BehindGateways float64 `json:"dollarsBehindGateways"`
	Parts          []Part  `json:"parts"`
	Hottest        []Rate  `json:"hottestDocuments"`
	Rising         []Rate  `json:"risingIndexes"`
	Waits          []Wait  `json:"waits"`
	// Share is how much of a processor the search of an area gets.
	Share  float64 `json:"searchShare"`
	Breaks []Break `json:"breaksFirst"`

	ramp time.Duration
}

// Use is what a drone uses in a day.
type Use struct {
	Reads          float64 `json:"reads"`
	Writes         float64 `json:"writes"`
	Deletes        float64 `json:"deletes"`
	Calls          float64 `json:"calls"`
	FirestoreBytes float64 `json:"firestoreBytes"`
	PubSubBytes    float64 `json:"pubsubBytes"`
}

// Part is the share of one kind of work, for a drone.
type Part struct {
	Work    string  `json:"work"`
	Reads   float64 `json:"reads"` // a day
	Writes  float64 `json:"writes"`
	Deletes float64 `json:"deletes"`
	Calls   float64 `json:"calls"`
	// Dollars are a month's by the first list, Least those by the last, which is the cheapest.
	Dollars float64 `json:"dollars"`
	Least   float64 `json:"dollarsByCheapestList"`
}

const month = 30 // days

// Summary computes everything about a fleet.
func (m Model) Summary(f Fleet, p Platform) Summary {
	t := m.Time(f, p)
	r := m.withCosts(f, t)
	r.Hottest, r.Rising, r.Waits, r.Share, r.Breaks = m.hottest(f, t), m.rising(f, t), t.Waits, t.Share, m.Breaks(p)
	writes := r.Use.Writes * float64(f.Drones) / (24 * 60 * 60)
	if writes > rampStart {
		r.ramp = time.Duration(math.Ceil(math.Log(writes/rampStart)/math.Log(rampFactor))) * 5 * time.Minute
	}
	return r
}

// withCosts is the part of a summary that is about cost, with what it would be if all kept up.
func (m Model) withCosts(f Fleet, t Timing) Summary {
	r := m.use(f, t)
	r.KeptUp = m.use(f, f.nominal(t)).Dollars[Lists[0].Name]
	f.Gateways = cmp.Or(f.Gateways, max(2, f.Drones/10_000))
	r.BehindGateways = m.use(f, t).Dollars[Lists[len(Lists)-1].Name]
	return r
}

// use is the part of a summary that is about cost.
func (m Model) use(f Fleet, t Timing) Summary {
	n := float64(f.Drones)
	parts, pubsub := m.Day(f, t), m.PubSub(f)
	total := Total(parts)
	r := Summary{Fleet: f, Dollars: map[string]float64{}, Use: Use{
		total.Reads / n, total.Writes / n, total.Deletes / n, total.Calls / n, (total.Sent + total.Received) / n, pubsub / n,
	}}
	for _, list := range Lists {
		r.Dollars[list.Name] = (list.Cost(parts, m.documents) + pubsub/(1<<40)*list.PubSubTiB) * month / n
	}
	works := byWork(parts)
	cheapest := Lists[len(Lists)-1]
	cost := func(list Prices, work string) float64 {
		some := maps.Collect(func(yield func(Kind, Count) bool) {
			for at, c := range parts {
				if at.Work == work && !yield(at, c) {
					return
				}
			}
		})
		return list.Cost(some, m.documents) * month / n
	}
	for work, c := range works {
		if c.Calls == 0 {
			continue
		}
		r.Parts = append(r.Parts, Part{work, c.Reads / n, c.Writes / n, c.Deletes / n, c.Calls / n, cost(Lists[0], work), cost(cheapest, work)})
	}
	throughput := pubsub / (1 << 40) * month / n
	r.Parts = append(r.Parts, Part{Work: "Pub/Sub", Dollars: throughput * Lists[0].PubSubTiB, Least: throughput * cheapest.PubSubTiB})
	slices.SortFunc(r.Parts, func(a, b Part) int {
		if c := int(math.Copysign(1, b.Dollars-a.Dollars)); a.Dollars != b.Dollars {
			return c
		}
		return strings.Compare(a.Work, b.Work)
	})
	return r
}

// table is a table in Markdown; a column that is all numbers is aligned to the right.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w *bytes.Buffer) {
	fmt.Fprintf(w, "| %s |\n|", strings.Join(t.head, " | "))
	for i := range t.head {
		number := !slices.ContainsFunc(t.rows, func(row []string) bool {
			return row[i] != "" && row[i] != "-" && !strings.ContainsAny(row[i][:1], "0123456789")
		})
		w.WriteString(map[bool]string{true: "-:|", false: "-|"}[number])
	}
	w.WriteByte('\n')
	for _, row := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	w.WriteByte('\n')
}

// Print writes the report for people.
func (r Summary) Print(w io.Writer) error {
	var b bytes.Buffer
	f := r.Fleet
	fmt.Fprintf(&b, "%s drones in %d areas, %g report/s each, %d State Managers, %d optimizers\n\n", grouped(float64(f.Drones)), f.Areas, f.Hz, f.Managers, f.Optimizers)
	costs := costTable()
	costs.add(r.costRow()...)
	costs.write(&b)
	r.partTable().write(&b)
	rateTable("hottest document", r.Hottest).write(&b)
	rateTable("indexed time", r.Rising).write(&b)
	waits := table{head: []string{"how long", "p50", "p99"}}
	for _, wait := range r.Waits {
		waits.add(wait.What, wait.text(wait.P50), wait.text(wait.P99))
	}
	waits.write(&b)
	fmt.Fprintf(&b, "A search gets %.0f %% of a processor. A new database takes the load after %s.\n\n", 100*r.Share, r.ramp)
	breakTable(r.Breaks).write(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func costTable() table {
	t := table{head: []string{"drones", "areas", "reads", "writes", "deletes", "calls", "Firestore MB", "Pub/Sub MB"}}
	for _, list := range Lists {
		t.head = append(t.head, "$, "+list.Name)
	}
	t.head = append(t.head, "the last, behind gateways", "the first, if all kept up")
	return t
}

func (r Summary) costRow() []string {
	u := r.Use
	row := []string{grouped(float64(r.Fleet.Drones)), fmt.Sprint(r.Fleet.Areas), grouped(u.Reads), grouped(u.Writes), grouped(u.Deletes), grouped(u.Calls),
		fmt.Sprintf("%.1f", u.FirestoreBytes/1e6), fmt.Sprintf("%.1f", u.PubSubBytes/1e6)}
	for _, list := range Lists {
		row = append(row, fmt.Sprintf("%.2f", r.Dollars[list.Name]))
	}
	row = append(row, fmt.Sprintf("%.2f", r.BehindGateways), fmt.Sprintf("%.2f", r.KeptUp))
	return row
}

func (r Summary) partTable() *table {
	t := &table{head: []string{"work", "reads", "writes", "deletes", "calls", "$, " + Lists[0].Name, "$, " + Lists[len(Lists)-1].Name}}
	for _, p := range r.Parts {
		t.add(p.Work, grouped(p.Reads), grouped(p.Writes), grouped(p.Deletes), grouped(p.Calls), fmt.Sprintf("%.3f", p.Dollars), fmt.Sprintf("%.3f", p.Least))
	}
	return t
}

func rateTable(what string, rates []Rate) *table {
	t := &table{head: []string{what, "writes/s, mean", "at the peak", "of the limit"}}
	for _, r := range rates {
		t.add(r.What, digits(r.Mean), digits(r.Peak), fmt.Sprintf("%.0f %%", 100*r.Factor))
	}
	return t
}

func breakTable(breaks []Break) *table {
	t := &table{head: []string{"what breaks", "from drones", "with `--ownership lock`", "then"}}
	for _, b := range breaks {
		t.add(b.What, significant(b.Drones), significant(b.Locked), b.Then)
	}
	return t
}

// Tables renders the generated sections of docs/capacity.md.
func (m Model) Tables(p Platform) map[string]string {
	var cost, parts, waits, rising, breaks, prices bytes.Buffer
	costs := costTable()
	var sizes []Summary
	for _, n := range []int{1000, 10_000, 100_000, largest} {
		r := m.Summary(Typical(n, 0, true), p)
		sizes = append(sizes, r)
		costs.add(r.costRow()...)
	}
	costs.write(&cost)
	before := costTable()
	for _, n := range []int{1000, 10_000, 100_000, largest} {
		f := Typical(n, 0, false)
		before.add(m.withCosts(f, m.Time(f, p)).costRow()...)
	}
	cost.WriteString("With two optimizers and `--ownership lock`:\n\n")
	before.write(&cost)
	sizes[0].partTable().write(&parts)

	w := table{head: []string{"p50 / p99"}}
	for _, r := range sizes {
		w.head = append(w.head, grouped(float64(r.Fleet.Drones))+" drones")
	}
	for i, wait := range sizes[0].Waits {
		row := []string{wait.What}
		for _, r := range sizes {
			wait := r.Waits[i]
			text := wait.text(wait.P50) + " / " + wait.text(wait.P99)
			if wait.Grows {
				text = "grows"
			}
			row = append(row, text)
		}
		w.add(row...)
	}
	shares := []string{"what a search gets of a processor"}
	for _, r := range sizes {
		shares = append(shares, fmt.Sprintf("%.1f %%", 100*r.Share))
	}
	w.add(shares...)
	locked := []string{"likewise, with `--ownership lock`"}
	for _, r := range sizes {
		var t Timing
		m.timeCycles(Typical(r.Fleet.Drones, 0, false), p, &t)
		locked = append(locked, fmt.Sprintf("%.1f %%", 100*t.Share))
	}
	w.add(locked...)
	w.write(&waits)

	least := m.Summary(Typical(shardFrom, 0, true), p)
	fmt.Fprintf(&rising, "At %s drones:\n\n", grouped(shardFrom))
	rateTable("hottest document", least.Hottest).write(&rising)
	rateTable("indexed time", least.Rising).write(&rising)
	fmt.Fprintf(&rising, "At %s drones, with [sharded indexes](auditing.md#fleets-that-write-more-than-500-events-a-second):\n\n", grouped(largest))
	rateTable("hottest document", sizes[3].Hottest).write(&rising)
	rateTable("indexed time", sizes[3].Rising).write(&rising)
	breakTable(sizes[0].Breaks).write(&breaks)

	list := table{head: []string{"price list", "reads", "writes", "deletes", "Pub/Sub, a TiB", "source"}}
	for _, l := range Lists {
		list.add(l.Name, fmt.Sprintf("%g", l.Reads), fmt.Sprintf("%g", l.Writes), fmt.Sprintf("%g", l.Deletes), fmt.Sprintf("%g", l.PubSubTiB), l.Source)
	}
	fmt.Fprintf(&prices, "US dollars for 100,000, looked up on %s:\n\n", pricesOf)
	list.write(&prices)
	sections := map[string]string{}
	for name, b := range map[string]*bytes.Buffer{"cost": &cost, "parts": &parts, "waits": &waits, "rising": &rising, "breaks": &breaks, "prices": &prices} {
		sections[name] = strings.TrimRight(b.String(), "\n") + "\n"
	}
	return sections
}

// text is a quantile for people.
func (w Wait) text(quantile float64) string {
	switch {
	case w.Grows:
		return "grows"
	case quantile < 1:
		return fmt.Sprintf("%.0f ms", quantile*1000)
	}
	return fmt.Sprintf("%.1f s", quantile)
}

// MarshalJSON gives the quantiles in milliseconds.
func (w Wait) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		What  string  `json:"what"`
		P50   float64 `json:"p50Ms"`
		P99   float64 `json:"p99Ms"`
		Grows bool    `json:"grows"`
	}{w.What, math.Round(w.P50 * 1000), math.Round(w.P99 * 1000), w.Grows})
}

// digits is a number with as many digits as it is worth.
func digits(n float64) string {
	switch {
	case n < 0.0095:
		return "0"
	case n < 0.95:
		return fmt.Sprintf("%.2f", n)
	case n < 9.95:
		return fmt.Sprintf("%.1f", n)
	}
	return grouped(n)
}

// significant are the first three digits of a size; 0 is none.
func significant(n int) string {
	if n == 0 {
		return "-"
	}
	unit := math.Pow(10, math.Floor(math.Log10(float64(n)))-2)
	return grouped(math.Round(float64(n)/unit) * unit)
}

// grouped is a whole number with commas.
func grouped(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
