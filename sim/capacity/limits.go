package capacity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/ownership"
	"github.com/dronefleet/dronefleet/deploy"
)

// What Firestore documents.
const (
	// maxRising is how many writes a second an index on rising values takes.
	maxRising = 500
	// maxDocument is the guidance for sustained writes of one document.
	maxDocument = 1
	maxRequest  = 10 << 20
	// A new database begins with rampStart operations a second, and rampFactor times as many
	// every five minutes.
	rampStart, rampFactor = 500, 1.5
)

// shardFrom is the fleet from which docs/auditing.md tells to use sharded indexes.
const shardFrom = 70_000

// Rate is writes a second, of the hottest document of a kind or of an indexed field.
type Rate struct {
	What   string  `json:"what"`
	Mean   float64 `json:"mean"`
	Peak   float64 `json:"peak"`
	Limit  float64 `json:"limit"`
	Factor float64 `json:"ofLimit"`
}

func rated(what string, mean, peak, limit float64) Rate {
	return Rate{what, mean, mean * peak, limit, mean * peak / limit}
}

// hottest are the documents that are written most, for each kind.
func (m Model) hottest(f Fleet, t Timing) []Rate {
	w := m.day(f, t)
	cost := func(work, collection string) float64 {
		c := m.costs[Kind{work, collection}]
		if len(c) == 0 {
			return 0
		}
		return c[0].Writes + c[0].Deletes
	}
	// A drone's document is written by its reports, near a stop by each, and by decisions.
	decided := cost(workDecisions, "drones") * w.Decisions / w.Seconds / float64(f.Drones)
	drone := m.writtenASecond(w)/float64(f.Drones) + decided
	locks := 1 / extendEvery.Seconds()
	if !f.Owned {
		locks = t.Cycles * (1 + cost(workCycle, "locks"))
	}
	rates := []Rate{
		rated("`drones/{id}`", drone, (f.Hz+decided)/drone, maxDocument),
		rated("`locks/statemanager:sweeper`", 1/extendEvery.Seconds(), 1, maxDocument),
		rated("`locks/optimizer:cycle:{area}`", locks, 1, maxDocument),
		rated("`control/{area}`", w.Decisions/float64(f.Areas)/w.Seconds, 1, maxDocument), // at most one for each decision
	}
	slices.SortStableFunc(rates, func(a, b Rate) int { return cmp.Compare(b.Factor, a.Factor) })
	return rates
}

// rising are the indexed times, the fastest first: of each index the range that is written most. In a sharded
// fleet, ranges of each shard.
func (m Model) rising(f Fleet, t Timing) []Rate {
	file := deploy.FirestoreIndexes
	if f.Sharded {
		file = deploy.ShardedFirestoreIndexes
	}
	exempt := exemptFields(file)
	shards := map[string]float64{} // of each index
	for _, x := range compositeIndexes(file) {
		shards[x.name()] = x.shards
	}
	w := m.day(f, t)
	fastest := map[string]Rate{} // of each index
	for _, key := range slices.Sorted(maps.Keys(m.times)) {
		name, values, composite := strings.Cut(key, "/")
		mean, inAreas := m.timesASecond(key, w), name == droneDue || name == orderDue
		if inAreas {
			mean /= float64(f.Areas)
		} else if !composite && !exempt[name] {
			shards[name] = 1
		}
		over := shards[name]
		if inAreas {
			over = 1
		}
		if key == changes || over == 0 || mean == 0 {
			continue
		}
		collection, fields, _ := strings.Cut(name, ".")
		peak := f.Peak
		if collection == firestoretx.Cycles || name == droneDue {
			peak = 1
		}
		r := rated(rangeName(collection, fields[strings.LastIndex(fields, ",")+1:], values, inAreas, over), mean/over, peak, maxRising)
		if r.Factor > fastest[name].Factor {
			fastest[name] = r
		}
	}
	if n := f.members(); n > 0 {
		fastest["members.beatAt"] = rated("`beatAt` of `members`", n/ownership.Heartbeat.Seconds(), 1, maxRising)
	}
	return slices.SortedStableFunc(maps.Values(fastest), func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.Factor, a.Factor), cmp.Compare(a.What, b.What))
	})
}

// rangeName is a range of an index for people.
func rangeName(collection, field, values string, inAreas bool, shards float64) string {
	name := fmt.Sprintf("`%s` of `%s`", field, collection)
	switch {
	case inAreas:
		name += ", in one `dueArea`"
	case values != "":
		name += ", where `" + strings.ReplaceAll(values, ",", "`, `") + "`"
	}
	if shards > 1 {
		name += ", in one `shard`"
	}
	return name
}

// exemptFields are the fields without an index, as "collection.field".
func exemptFields(indexes []byte) map[string]bool {
	var file struct {
		FieldOverrides []struct {
			CollectionGroup, FieldPath string
			Indexes                    []any
		}
	}
	if err := json.Unmarshal(indexes, &file); err != nil {
		panic(err) // a test of deploy reads it as well
	}
	exempt := map[string]bool{}
	for _, o := range file.FieldOverrides {
		exempt[o.CollectionGroup+"."+o.FieldPath] = len(o.Indexes) == 0
	}
	return exempt
}

// Break is the size from which something no longer keeps up.
type Break struct {
	What   string `json:"what"`
	Drones int    `json:"drones"`
	Then   string `json:"then"`
	// Locked is the size with --ownership lock.
	Locked int `json:"dronesIfAreasAreNotOwned"`
}

// limit is something that a larger fleet reaches: its load is 1 there.
type limit struct {
	what, then string
	load       func(Fleet) float64
}

// Breaks are the sizes at which limits are reached by a fleet that grows by areas of a thousand
// drones, the smallest first.
func (m Model) Breaks(p Platform) []Break {
	feed := p.FeedRate()
	limits := []limit{
		{"optimizers: each runs every area, and one takes most locks", "a search gets a quarter of a processor, at most", func(f Fleet) float64 {
			f.Areas = min(f.Areas, 100) // more does not help
			f.Optimizers = min(f.Optimizers, f.Areas)
			var t Timing
			m.timeCycles(f, p, &t)
			return 0.25 / t.Share
		}},
		{"live feed of the whole fleet: one process decodes every report", "viewers fall behind without end", func(f Fleet) float64 { return float64(f.Drones) * f.Hz / feed }},
		{"sweeper: one process sweeps everything in an hour", "dueAt that another tool left wrong is noticed later", func(f Fleet) float64 {
			return float64(f.Drones) * (f.Idle + 4*f.Bound + f.Open) * p.PerRead / allEvery.Seconds()
		}},
		{"commits: a batch of 250 drones", "a request is larger than 10 MiB", func(Fleet) float64 { return float64(m.largest) / maxRequest }},
	}
	first := map[string]bool{}
	for _, r := range m.rising(Typical(1000, 1, true), Timing{Batch: 1, Cycles: 0.1}) {
		_, of, _ := strings.Cut(r.What, " of ")
		of, _, _ = strings.Cut(of, ", where")
		if first[of] || of == "`cycles`" || of == "`members`" { // an area has one every ten seconds, an optimizer as well: 5,000 areas
			continue
		}
		first[of] = true
		then := "writes wait for the index"
		if strings.Contains(of, "dueArea") {
			then += "; that many drones of one depot"
		}
		limits = append(limits, limit{"index: " + r.What, then, func(f Fleet) float64 { return r.Factor * float64(f.Drones) / 1000 }})
	}
	var breaks []Break
	for _, l := range limits {
		owned, locked := reach(l.load, true), reach(l.load, false)
		if locked+owned > 0 {
			breaks = append(breaks, Break{l.what, owned, l.then, locked})
		}
	}
	size := func(b Break) int { return min(cmp.Or(b.Drones, b.Locked), cmp.Or(b.Locked, b.Drones)) }
	slices.SortStableFunc(breaks, func(a, b Break) int { return cmp.Compare(size(a), size(b)) })
	return breaks
}

// largest is the largest fleet of the model.
const largest = 1_000_000

// reach is the size at which a load reaches 1, to three digits; 0 if the largest fleet does not.
func reach(load func(Fleet) float64, owned bool) int {
	of := func(drones int) float64 { return load(Typical(drones, 0, owned)) }
	low, high := 100, largest
	if of(high) < 1 {
		return 0
	}
	for high-low > low/2000 {
		if middle := (low + high) / 2; of(middle) < 1 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
