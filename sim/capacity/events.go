package capacity

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/ownership"
	"github.com/dronefleet/dronefleet/domain"
)

// Latency is the time of a call, in seconds.
type Latency struct{ P50, P99 float64 }

// draw draws from a log-normal distribution with these quantiles.
func (l Latency) draw(r *rand.Rand) float64 {
	const z99 = 2.326
	return l.P50 * math.Exp(r.NormFloat64()*math.Log(l.P99/l.P50)/z99)
}

// Platform is how fast Firestore, Pub/Sub and a process are.
type Platform struct {
	Read, Commit, Pull Latency
	PerRead            float64 // seconds of a processor for a document that is read
	PerWrite           float64
	PerReport          float64 // that the live feed receives
}

// Today is a multi-region database and two processors for each process. Google publishes no
// quantiles for Firestore, which stores its documents in Spanner. Reads are as published for
// Spanner, single-digit milliseconds, and a call to it; a commit of a multi-region adds a round
// trip between its regions. What a document takes to read is the processor time of Store.Drones in a
// profile; the other two are assumed.
var Today = Platform{
	Read: Latency{0.010, 0.060}, Commit: Latency{0.035, 0.150}, Pull: Latency{0.025, 0.100},
	PerRead: 27e-6, PerWrite: 20e-6, PerReport: 10e-6,
}

// Wait is how long something takes, in seconds.
type Wait struct {
	What     string
	P50, P99 float64
	// Grows says that it took longer and longer, so that the quantiles mean nothing.
	Grows bool
}

// Timing is how often work is done, for a second, and how long it waits.
type Timing struct {
	Cycles    float64 // of one area
	Looks     float64 // of all optimizers
	LostTries float64
	Batch     float64 // reports of one commit
	// Share is how much of a processor a search gets, of its whole time limit.
	Share float64
	Waits []Wait
}

// simulation runs events in the order of their times.
type simulation struct {
	now    float64
	queue  eventQueue
	random *rand.Rand
}

type event struct {
	at  float64
	seq int
	do  func()
}

type eventQueue struct {
	events []event
	seq    int
}

func (q eventQueue) Len() int { return len(q.events) }
func (q eventQueue) Less(i, j int) bool {
	a, b := q.events[i], q.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (q eventQueue) Swap(i, j int) { q.events[i], q.events[j] = q.events[j], q.events[i] }

// Push implements heap.Interface.
func (q *eventQueue) Push(e any) { q.events = append(q.events, e.(event)) }

// Pop implements heap.Interface.
func (q *eventQueue) Pop() any {
	last := q.events[len(q.events)-1]
	q.events = q.events[:len(q.events)-1]
	return last
}

func (s *simulation) at(time float64, do func()) {
	s.queue.seq++
	heap.Push(&s.queue, event{time, s.queue.seq, do})
}

func (s *simulation) run(until float64) {
	for s.queue.Len() > 0 && s.queue.events[0].at < until {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
}

// newSimulation gives every part random numbers of its own.
func newSimulation(f Fleet, part uint64) *simulation {
	return &simulation{random: rand.New(rand.NewPCG(uint64(f.Drones)<<20+uint64(f.Areas), part))}
}

// nextTick is the first tick of a ticker after now.
func nextTick(now, phase, interval float64) float64 {
	return phase + interval*(math.Floor((now-phase)/interval)+1)
}

// quantiles are those of waits in the order of their ends, in a simulation that lasts so long.
func quantiles(what string, all []float64, lasts float64) Wait {
	if len(all) == 0 {
		return Wait{What: what, Grows: true} // not one has ended
	}
	n := len(all)
	median := func(some []float64) float64 {
		sorted := slices.Sorted(slices.Values(some))
		return sorted[len(sorted)/2]
	}
	early, late := median(all[n/4:n/2+1]), median(all[n*3/4:])
	slices.Sort(all)
	return Wait{what, all[n/2], all[min(n-1, n*99/100)], late > 1 && late > 1.4*early || all[n/2] > lasts/3}
}

// Time simulates the fleet's processes.
func (m Model) Time(f Fleet, p Platform) Timing {
	var t Timing
	m.timeCommits(f, p, &t)
	m.timeSweeps(f, p, &t)
	m.timeCycles(f, p, &t)
	timeFeed(f, p, &t)
	return t
}

// nominal is how often work is done where nothing falls behind: a cycle of each area in every interval.
func (f Fleet) nominal(t Timing) Timing {
	t.Cycles, t.Looks = 1/cycleEvery.Seconds(), f.looks()
	return t
}

// looks is how often the optimizers look at what is new in the areas, for a second.
func (f Fleet) looks() float64 {
	n := float64(f.Areas) / learnEvery.Seconds()
	if !f.Owned {
		n *= float64(f.Optimizers)
	}
	return n
}

// timeSweeps simulates the sweeps. All State Managers but the sweeper try to get its lock.
func (m Model) timeSweeps(f Fleet, p Platform, t *Timing) {
	s := newSimulation(f, 1)
	t.LostTries += float64(f.Managers-1) / sweepEvery.Seconds()
	var took, noticed []float64
	for range 2000 {
		one := m.sweepTakes(f, p, s.random)
		late := idleLate.Seconds() * float64(s.random.IntN(2))                                                                                             // after every other heartbeat
		took, noticed = append(took, one), append(noticed, late+one+s.random.Float64()*sweepEvery.Seconds()+p.Read.draw(s.random)+p.Commit.draw(s.random)) // and its transaction
	}
	t.Waits = append(t.Waits, quantiles("a sweep", took, 600), quantiles("a silent drone, from the limit to its change", noticed, 600))
}

// sweepTakes is how long a sweep takes if no outage has made many drones due.
func (m Model) sweepTakes(f Fleet, p Platform, random *rand.Rand) (seconds float64) {
	const owed, queriesAtOnce = 2, 8
	due := m.Of(Work{Decisions: float64(f.Drones) / f.sweepers() * f.OrdersPerDroneDay / f.OrdersPerMission * sweepEvery.Seconds() / (24 * 60 * 60)})
	seconds = byWork(due)[workSweep].Reads * p.PerRead
	queries := 2 * math.Ceil((float64(f.Areas)/f.sweepers()+1)/dueAtOnce)
	for range int(owed + math.Ceil(queries/queriesAtOnce)) {
		seconds += p.Read.draw(random)
	}
	return seconds
}

// optimizer is a process that runs the cycles of areas.
type optimizer struct {
	phase     float64 // of its tickers
	searching int
	turns     []func()        // that wait for their turn to search
	served    float64         // what a search has got of a processor since the beginning
	counted   float64         // up to when
	looked    map[int]float64 // when it last looked at what is new in an area
}

// advance counts what each search got until now.
func (o *optimizer) advance(now float64) {
	o.served += (now - o.counted) * min(1, processors/float64(max(1, o.searching)))
	o.counted = now
}

// crowded is how much longer work takes because of the searches beside it.
func (o *optimizer) crowded() float64 { return max(1, float64(o.searching+1)/processors) }

// planning simulates optimizers. Where areas are locked for each cycle, all areas of a process begin
// at once, and whoever holds an area's lock keeps the others out. Where members own areas, cycles
// take turns to search.
type planning struct {
	*simulation
	model Model
	fleet Fleet
	p     Platform
	// documents of one cycle, and orders a second of an area
	documents, orders float64
	locked            []bool

	shares, waits []float64
	done, lost    int
}

func (s *planning) calls(n int) (sum float64) {
	for range n {
		sum += s.p.Read.draw(s.random)
	}
	return sum
}

// look is how long an area's cycle waits for what was learned.
func (s *planning) look(o *optimizer, area int) float64 {
	last, looked := o.looked[area]
	if looked && s.now-last < learnEvery.Seconds() {
		return 0
	}
	o.looked[area] = s.now
	return s.calls(6) + 2*s.orders*learnEvery.Seconds()*s.p.PerRead*o.crowded()
}

// begin runs an area's next cycle in a process, and those after it.
func (s *planning) begin(o *optimizer, area int) {
	began := s.now
	next := func() {
		s.at(max(nextTick(began, o.phase, cycleEvery.Seconds()), s.now), func() { s.begin(o, area) }) // a ticker keeps one tick
	}
	switch {
	case s.fleet.Owned && o.searching+1 > searchesAtOnce:
		o.turns = append(o.turns, func() { s.cycle(o, area, 0, next) })
	case s.fleet.Owned:
		s.cycle(o, area, 0, next)
	case s.locked[area]:
		s.lost++
		s.at(s.now+s.calls(1), next)
	default:
		s.locked[area] = true
		s.cycle(o, area, s.calls(1)+s.p.Commit.draw(s.random), func() {
			s.locked[area] = false
			next()
		})
	}
}

// cycle reads, searches and publishes. Where cycles take turns, it reads in its turn.
func (s *planning) cycle(o *optimizer, area int, locking float64, end func()) {
	snapshot := s.now + locking
	read := locking + s.calls(int(s.model.calls[workCycle])) + s.documents*s.p.PerRead*o.crowded()
	search := func() {
		o.advance(s.now)
		before := o.served
		s.at(s.now+searchLimit.Seconds(), func() {
			o.advance(s.now)
			o.searching--
			if len(o.turns) > 0 {
				turn := o.turns[0]
				o.turns = o.turns[1:]
				turn()
			}
			s.shares = append(s.shares, (o.served-before)/searchLimit.Seconds())
			s.at(s.now+3*s.p.Commit.draw(s.random), func() {
				s.done++
				s.waits = append(s.waits, s.now-snapshot)
				end()
			})
		})
	}
	if s.fleet.Owned {
		o.advance(s.now)
		o.searching++
		s.at(s.now+read+s.look(o, area), search)
		return
	}
	s.at(s.now+read+s.look(o, area), func() {
		o.advance(s.now)
		o.searching++
		search()
	})
}

// owners are the optimizers that run each area: all, or the one that the members propose.
func (f Fleet) owners() [][]int {
	every := make([]int, f.Optimizers)
	members := make([]domain.Member, f.Optimizers)
	for k := range members {
		every[k], members[k] = k, domain.Member{ID: domain.MemberID(fmt.Sprintf("member-%04d", k)), Share: 1, ShareBefore: 1}
	}
	areas := make([]domain.Area, f.Areas)
	for a := range areas {
		areas[a] = domain.Area{Depots: []domain.Depot{{ID: domain.DepotID(fmt.Sprintf("DEPOT-%04d", a))}}}
	}
	owners := make([][]int, f.Areas)
	if !f.Owned {
		for a := range owners {
			owners[a] = every
		}
		return owners
	}
	proposed := ownership.Propose(areas, members, begin)
	for a := range owners {
		owners[a] = []int{slices.IndexFunc(members, func(m domain.Member) bool { return m.ID == proposed[areas[a].ID()] })}
	}
	return owners
}

// timeCycles simulates the optimizers.
func (m Model) timeCycles(f Fleet, p Platform, t *Timing) {
	const lasts = 900.0
	n, areas := float64(f.Drones), float64(f.Areas)
	s := &planning{
		simulation: newSimulation(f, 2), model: m, fleet: f, p: p,
		documents: n/areas*(f.Idle+f.Bound+f.waiting()) + depotsOfCycle, orders: n / areas * f.OrdersPerDroneDay / (24 * 60 * 60),
		locked: make([]bool, f.Areas),
	}
	processes := make([]*optimizer, f.Optimizers)
	for k := range processes {
		processes[k] = &optimizer{phase: s.random.Float64() * cycleEvery.Seconds(), looked: map[int]float64{}}
	}
	for area, owners := range f.owners() {
		for _, k := range owners {
			s.at(processes[k].phase, func() { s.begin(processes[k], area) })
		}
	}
	s.run(lasts)
	t.Cycles, t.LostTries = float64(s.done)/areas/lasts, t.LostTries+float64(s.lost)/lasts
	t.Looks = f.looks()
	t.Share = quantiles("", s.shares, lasts).P50
	var commands []float64
	for range 2000 { // an order comes between two snapshots, and its decision is applied after the second
		if len(s.waits) > 0 {
			wait := s.waits[s.random.IntN(len(s.waits))]
			commands = append(commands, s.random.Float64()/max(t.Cycles, 1e-9)+wait+s.p.Pull.draw(s.random)+s.calls(3)+p.Commit.draw(s.random))
		}
	}
	t.Waits = append(t.Waits, quantiles("an order, until its drone has a command", commands, lasts))
}

// shard is one of a State Manager's: it commits what is due, at most a batch, and then what became
// due meanwhile.
type shard struct {
	*simulation
	fleet  Fleet
	p      Platform
	busy   bool
	due    []float64 // since when reports wait that only move their drone
	urgent []float64 // likewise, that change a status
	bumped bool      // a decision has changed the version of a drone
	index  float64   // when the index on the time of events takes the next

	changesMission float64 // the share of urgent reports
	share          float64 // of the fleet's events for one of this shard
	moved, changed []float64
	commits        int
}

// commit commits the next batch.
func (s *shard) commit() {
	urgent, due := s.urgent, s.due[:min(len(s.due), max(0, maxBatch-len(s.urgent)))]
	n := len(urgent) + len(due)
	if s.busy = n > 0; !s.busy {
		return
	}
	s.urgent, s.due = nil, s.due[len(due):]
	took := s.p.Commit.draw(s.random) + float64(n)*s.p.PerWrite
	transacts := s.random.Float64() > math.Pow(1-s.changesMission, float64(len(urgent)))
	if s.bumped { // the commit fails and is divided until that drone is left, which is read with its mission and orders
		took += s.p.Commit.draw(s.random) + s.p.Commit.draw(s.random) + (1+3*s.fleet.Bound)*s.p.PerRead
	}
	if s.bumped || transacts {
		for range 4 {
			took += s.p.Read.draw(s.random)
		}
		took += s.p.Commit.draw(s.random)
	}
	s.bumped = false
	s.index = max(s.index, s.now) + float64(len(urgent))*s.share/maxRising
	took += max(0, s.index-s.now-1) // it takes a short burst
	s.commits++
	s.at(s.now+took, func() {
		for _, since := range due {
			s.moved = append(s.moved, s.now-since+s.random.Float64()*commitTick.Seconds())
		}
		for _, since := range urgent {
			s.changed = append(s.changed, s.now-since+gather.Seconds())
		}
		s.commit()
	})
}

// timeCommits simulates a shard of one State Manager at the fleet's peak.
func (m Model) timeCommits(f Fleet, p Platform, t *Timing) {
	const lasts = 60.0
	tick := commitTick.Seconds()
	w := m.day(f, Timing{Batch: 1})
	all := float64(f.Managers * shards)
	telemetry := m.Of(w)
	urgent := (telemetry[Kind{workTelemetry, "events"}].Writes + w.MoreChanges) / w.Seconds * f.Peak / all
	s := &shard{simulation: newSimulation(f, 3), fleet: f, p: p,
		changesMission: min(1, telemetry[Kind{workTelemetry, "missions"}].Writes/w.Seconds*f.Peak/all/urgent),
		share:          m.timesASecond("events.time", w) * f.Peak / urgent,
	}
	if f.Sharded {
		s.share /= firestoretx.Shards
	}
	rate := m.writtenASecond(w) / all
	bumps := w.Decisions / w.Seconds * f.Peak / all
	var beat func()
	beat = func() {
		for range s.poisson(rate * tick) {
			s.due = append(s.due, s.now)
		}
		for range s.poisson(urgent * tick) {
			s.urgent = append(s.urgent, s.now)
		}
		s.bumped = s.bumped || s.poisson(bumps*tick) > 0
		if !s.busy {
			s.commit()
		}
		s.at(s.now+tick, beat)
	}
	s.at(0, beat)
	s.run(lasts)
	t.Batch = max(1, float64(len(s.moved)+len(s.changed))/float64(max(1, s.commits)))
	t.Waits = append(t.Waits, quantiles("a position, from Pub/Sub to its commit", s.moved, lasts), quantiles("a change of status, likewise", s.changed, lasts))
}

// poisson draws how often something happens that happens mean times on average.
func (s *simulation) poisson(mean float64) int {
	if mean > 50 {
		return int(max(0, math.Round(mean+s.random.NormFloat64()*math.Sqrt(mean))))
	}
	n := 0
	for sum := s.random.ExpFloat64(); sum < mean; sum += s.random.ExpFloat64() {
		n++
	}
	return n
}

// timeFeed simulates the live feed of one process, which pulls the reports of the whole fleet: in several
// calls side by side while reports wait, but one processor decodes them all.
func timeFeed(f Fleet, p Platform, t *Timing) {
	const lasts = 60.0
	s := newSimulation(f, 4)
	rate := float64(f.Drones) * f.Hz
	var seen []float64
	taken, decoded, calls := 0.0, 0.0, 1 // decoded: until when the processor is busy
	var pull func(first bool)
	pull = func(first bool) {
		n := min(rate*s.now-taken, tapBatch)
		oldest := taken / rate
		taken += n
		s.at(s.now+p.Pull.draw(s.random), func() {
			decoded = max(decoded, s.now) + n*p.PerReport
			s.at(decoded, func() {
				seen = append(seen, s.now-oldest)
				acked, full := s.now+p.Pull.draw(s.random)/2, n >= tapBatch/2
				switch {
				case !full && !first:
					calls--
					return
				case !full:
					acked += tapPause.Seconds()
				case first && calls < tapCalls:
					calls++
					s.at(acked, func() { pull(false) })
				}
				s.at(acked, func() { pull(first) })
			})
		})
	}
	s.at(0, func() { pull(true) })
	s.run(lasts)
	t.Waits = append(t.Waits, quantiles("a position, until a viewer of the whole fleet sees it", seen, lasts))
}

// FeedRate is how many reports a second the live feed of a process takes.
func (p Platform) FeedRate() float64 {
	s := &simulation{random: rand.New(rand.NewPCG(1, 5))}
	took := 0.0
	const pulls = 1000
	for range pulls {
		took += p.Pull.draw(s.random)*1.5 + tapBatch*p.PerReport
	}
	return min(tapCalls*pulls*tapBatch/took, 1/p.PerReport)
}
