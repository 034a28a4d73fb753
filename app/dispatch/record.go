package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// maxUnservedBytes is the room for unserved orders in a cycle's document, of the
// 1 MiB that Firestore allows; the rest of the record fits in what remains. An entry
// takes unservedBytes beside its two texts, and obstacleBytes for each count.
const (
	maxUnservedBytes = 700 << 10
	unservedBytes    = 32
	obstacleBytes    = 20
	// moreObstacleBytes is room for counts even where the list is full.
	moreObstacleBytes = 100 << 10
)

// unservedOrders puts a plan's unserved orders as a record has them, the most
// urgent first.
func unservedOrders(p cyclePlan) []domain.UnservedOrder {
	byUrgency := make([]int, len(p.unserved))
	for i := range byUrgency {
		byUrgency[i] = i
	}
	slices.SortStableFunc(byUrgency, func(a, b int) int {
		return cmp.Compare(p.problem.Orders[p.unserved[b].Index].Priority, p.problem.Orders[p.unserved[a].Index].Priority)
	})
	list := make([]domain.UnservedOrder, len(byUrgency))
	for k, i := range byUrgency {
		u := p.unserved[i]
		list[k] = domain.UnservedOrder{OrderID: domain.OrderID(u.OrderID), Reason: u.String(), Obstacles: p.obstacles[i]}
	}
	return list
}

// listUnserved notes the unserved orders, as many as fit a document, and how many more there are.
// Obstacles follow, from the first order on, while there is room: orders with their reasons come
// first.
func listUnserved(c *domain.Cycle, unserved []domain.UnservedOrder) {
	room := maxUnservedBytes
	for i, u := range unserved {
		if room -= len(u.OrderID) + len(u.Reason) + unservedBytes; room < 0 {
			c.Detail = fmt.Sprintf("%d more unserved orders are not listed", len(unserved)-i)
			break
		}
		u.Obstacles = domain.Obstacles{}
		c.Unserved = append(c.Unserved, u)
	}
	room = max(0, room) + moreObstacleBytes
	for i := range c.Unserved {
		o := unserved[i].Obstacles
		if room -= o.Kinds() * obstacleBytes; room < 0 {
			return
		}
		c.Unserved[i].Obstacles = o
	}
}

// maxLeftOut is how many left-out documents a cycle's record lists, and maxLeftOutBytes how much
// it says of each: an error may quote a field that is nearly as long as a document.
const (
	maxLeftOut      = 100
	maxLeftOutBytes = 1600
)

// leaveOut notes a document that was left out of the plan, and why.
func leaveOut(c *domain.Cycle, what string) {
	if len(c.LeftOut) < maxLeftOut {
		c.LeftOut = append(c.LeftOut, strings.ToValidUTF8(what[:min(len(what), maxLeftOutBytes)], ""))
	}
}

// objective sums a plan up for auditors.
func objective(o solver.Objective, kept int) string {
	return fmt.Sprintf("unserved: %s; %.1f km; drones kept for CRITICAL orders: %d", o.UnservedByPriority(), o.DistanceKm, kept)
}

// intervalsPerRound is the number of intervals after which every depot has run a
// cycle and its decisions are applied.
const intervalsPerRound = 3

// countUnserved counts, by priority, the unserved orders that have been pending for a time. An
// order may be handed over to another area. If it is still pending after a few cycles, no area
// serves it, perhaps because its document cannot be planned.
func countUnserved(unserved []solver.Unserved, snap domain.Snapshot, pending time.Duration) map[string]int64 {
	counts := map[string]int64{}
	for _, p := range domain.Priorities {
		counts[p.String()] = 0
	}
	for _, u := range unserved {
		if o := &snap.Orders[u.Index]; snap.ReadTime.Sub(o.PendingSince) >= pending {
			counts[o.Priority.String()]++
		}
	}
	return counts
}

// obstacle is what must be corrected before a depot's cycles see everything.
type obstacle struct {
	leftOut []string // by the plan
	failure string   // to read the snapshot
}

// recordTimeout is how long storing a cycle's record may take.
const recordTimeout = 5 * time.Second

// quietEvery is the least time between two records of an area's cycles without orders: each record
// is a write.
const quietEvery = time.Minute

// record logs the cycle and stores its record. A cycle without orders, or one that could not read
// the snapshot, has a record of its own only if its obstacles have changed. Otherwise one
// uncorrected obstacle would fill the audit trail.
func (r *Runner) record(ctx context.Context, c domain.Cycle, memory *Memory) {
	level := slog.LevelInfo
	if c.Outcome == domain.CycleFailed || c.Outcome == domain.CycleLeaseLost {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "cycle", slog.String("cycle_id", string(c.ID)), slog.String("outcome", string(c.Outcome)),
		slog.String("depot_id", string(c.DepotID)), slog.String("fence", c.Fence),
		slog.Int("drones", c.Drones), slog.Int("orders", c.Orders), slog.Int("missions", c.Missions), slog.Int("amended", c.Amended), slog.Int("standby", c.Standby),
		slog.Int("assigned", c.Assigned), slog.Int("handed_over", c.HandedOver), slog.Int("exchanged", c.Exchanged), slog.String("objective", c.Objective),
		slog.Duration("solve", c.SolveTook), slog.String("detail", c.Detail))
	recorded, _ := r.blocked.Load(c.DepotID)
	known, _ := recorded.(obstacle)
	found := obstacle{leftOut: known.leftOut}
	switch {
	case c.Outcome == domain.CycleEmpty || c.Outcome == domain.CyclePublished: // other cycles may not have seen everything
		found.leftOut = c.LeftOut
	case c.Outcome == domain.CycleFailed && c.SnapshotTime.IsZero():
		found.failure = c.Detail
	}
	unchanged := slices.Equal(found.leftOut, known.leftOut) && found.failure == known.failure
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if unchanged && c.Orders == 0 && c.Outcome == domain.CycleEmpty {
		r.recordQuiet(ctx, c, memory)
		return
	}
	if unchanged && c.Orders == 0 && found.failure != "" {
		return
	}
	if err := r.store.RecordCycle(ctx, c); err != nil {
		r.log.WarnContext(ctx, "cycle not recorded", slog.Any("err", err))
		return
	}
	r.blocked.Store(c.DepotID, found)
}

// recordQuiet counts a cycle without orders, and stores the number when it is time.
func (r *Runner) recordQuiet(ctx context.Context, c domain.Cycle, memory *Memory) {
	memory.quiet++
	if !memory.quietAt.IsZero() && r.clock.Since(memory.quietAt) < quietEvery {
		return
	}
	if err := r.store.RecordQuietCycles(ctx, c, memory.quiet); err != nil {
		r.log.WarnContext(ctx, "cycles without orders not recorded; the next one tries again", slog.Any("err", err))
		return
	}
	memory.quiet, memory.quietAt = 0, r.clock.Now()
}
