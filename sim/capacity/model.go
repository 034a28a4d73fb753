package capacity

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/ownership"
)

// How the product works today, where a sample cannot show it.
const (
	sweepEvery  = 5 * time.Second // of one State Manager; the others try to get its lock
	allEvery    = time.Hour       // it sweeps everything
	idleLate    = 2 * time.Second // dueAt of an idle drone may be so late
	dueAtOnce   = 30              // depots of one query for what is due
	cycleEvery  = 10 * time.Second
	searchLimit = 8 * time.Second
	extendEvery = 5 * time.Second       // of a lock that is held, a third of its time
	censusEvery = 15 * time.Second      // of the sweeper
	probeEvery  = 10 * time.Second      // of each State Manager
	checkEvery  = 10 * time.Second      // of the followed places, by each process
	learnEvery  = 5 * time.Minute       // of each area, by each process that runs its cycles
	gather      = 20 * time.Millisecond // a change of status waits for others
	commitTick  = 50 * time.Millisecond // positions that are due in one tick share a commit
	maxBatch    = 250                   // drones of one commit
	shards      = 4                     // of a State Manager on two processors
	tapBatch    = 1000                  // reports of one pull of the live feed
	tapPause    = 100 * time.Millisecond
	tapCalls    = 8 // pulls side by side while reports wait
	probeReads  = 5
	processors  = 2 // of each process
	// searchesAtOnce is the bound of a process that owns areas.
	searchesAtOnce = 1
	minPublished   = 1000.0
	// A gateway publishes reports of one key together that come within a time; it adds the name of
	// their drone.
	gatewayKeys   = 32
	gatewayGather = 20 * time.Millisecond
	gatewayBytes  = 30.0
	// messageOverhead is what Pub/Sub counts beside payload and attributes: key, id and time.
	messageOverhead   = 47
	warehousesPerArea = 5
	// flightReads is how many orders cycles read of a mission in flight. In the samples decisions grow
	// with waiting orders, so the two could not be told apart.
	flightReads = 2
	// depotsOfCycle is a cycle's reads of its depot and of the warehouses deleted lately.
	depotsOfCycle = 2
)

// Fleet is a fleet at work, around the clock.
type Fleet struct {
	Drones     int     `json:"drones"`
	Areas      int     `json:"areas"` // one depot each
	Hz         float64 `json:"reportsPerSecond"`
	Managers   int     `json:"stateManagers"`
	Optimizers int     `json:"optimizers"`
	// Gateways are those that drones connect to; 0 if each publishes to Pub/Sub by itself.
	Gateways int `json:"gateways"`
	// Owned says that optimizers own areas, which is --ownership members. Otherwise whichever
	// takes an area's lock runs its next cycle.
	Owned bool `json:"areasAreOwned"`
	// Sharded says that the database has the indexes of large fleets.
	Sharded bool `json:"shardedIndexes"`

	OrdersPerDroneDay float64 `json:"ordersPerDroneDay"`
	OrdersPerMission  float64 `json:"ordersPerMission"`
	// ChangesPerDroneDay are changes of a drone's status, those of its missions included.
	ChangesPerDroneDay float64 `json:"changesPerDroneDay"`
	// Shares of the drones that are idle, and on a mission, and open orders for each drone.
	Idle  float64 `json:"idle"`
	Bound float64 `json:"onMission"`
	Open  float64 `json:"openOrders"`
	// Peak is how much more orders a fleet has at its peak than on average.
	Peak float64 `json:"peak"`
}

// Typical is a fleet with the assumptions that the tables state. Without areas it has one for every
// thousand drones. Where optimizers own areas there is one for each area.
func Typical(drones, areas int, owned bool) Fleet {
	f := Fleet{
		Drones: drones, Areas: cmp.Or(areas, areasOf(drones)), Hz: 1, Managers: max(2, drones/10_000), Optimizers: 2, Owned: owned,
		Sharded:           drones > shardFrom,
		OrdersPerDroneDay: 20, OrdersPerMission: 2, ChangesPerDroneDay: 100, Idle: 0.3, Bound: 0.4, Open: 1, Peak: 3,
	}
	if owned {
		f.Optimizers = max(2, f.Areas)
	}
	return f
}

// waiting is the open orders for each drone that no mission has.
func (f Fleet) waiting() float64 { return max(0, f.Open-f.Bound*f.OrdersPerMission) }

// areasOf is an area for a thousand drones.
func areasOf(drones int) int { return max(1, drones/1000) }

// Work is what a fleet does in a time: the units with which counts grow.
type Work struct {
	Seconds float64
	// Reports are all reports, Near those from near a stop ahead, which are all written, and Commits
	// the commits of those that are written.
	Reports, Near, Commits float64
	Orders, Decisions      float64
	// MoreChanges are changes of status that no mission makes.
	MoreChanges float64
	// Sweeps of what is due, those of everything, and the sum over the latter of idle drones, bound
	// drones, open orders and depots.
	Sweeps, SweepsAll, SweptIdle, SweptBound, SweptOpen, SweptAreas float64
	// Cycles, those that search, and the sums over them of idle and bound drones and waiting orders.
	Cycles, Searches, ReadIdle, ReadBound, ReadWaiting float64
	Taken                                              float64 // locks, for a cycle each
	Looks                                              float64
	Censuses, Watches, WatchedAreas, Checks, LostTries float64
	// Idle, Bound and Open are means: drones, and open orders.
	Idle, Bound, Open float64

	idle, bound, open float64 // sums over seconds
}

type unit func(Work) float64

// Units that several laws use.
var (
	reports   unit = func(w Work) float64 { return w.Reports }
	near      unit = func(w Work) float64 { return w.Near }
	commits   unit = func(w Work) float64 { return w.Commits }
	decisions unit = func(w Work) float64 { return w.Decisions }
	orders    unit = func(w Work) float64 { return w.Orders }
	sweeps    unit = func(w Work) float64 { return w.Sweeps }
	cycles    unit = func(w Work) float64 { return w.Cycles }
	looks     unit = func(w Work) float64 { return w.Looks }
	idleTime  unit = func(w Work) float64 { return w.Idle * w.Seconds }
	boundTime unit = func(w Work) float64 { return w.Bound * w.Seconds }
)

// laws say with which units the counts of a kind grow: the structure of the model. A law without
// a collection is that of all others.
var laws = map[Kind][]unit{
	{workTelemetry, "drones"}:     {reports, near},
	{workTelemetry, droneDue}:     {idleTime, boundTime}, // as long as they report
	{workTelemetry, ""}:           {commits, decisions},
	{workTelemetry, "events"}:     {decisions, orders},
	{workTelemetry, "*"}:          {decisions},
	{workOrders, "*"}:             {orders},
	{workDecisions, "*"}:          {decisions, orders},
	{workOutbox, "*"}:             {decisions},
	{workSweep, "orders"}:         {orders},
	{workSweep, ""}:               {sweeps, decisions},
	{workSweep, "*"}:              {decisions},
	{workSweepAll, "drones"}:      {func(w Work) float64 { return w.SweptIdle }, func(w Work) float64 { return w.SweptBound }},
	{workSweepAll, "missions"}:    {func(w Work) float64 { return w.SweptBound }},
	{workSweepAll, "orders"}:      {func(w Work) float64 { return w.SweptOpen }},
	{workSweepAll, "depots"}:      {func(w Work) float64 { return w.SweptAreas }},
	{workSweepAll, "*"}:           {func(w Work) float64 { return w.SweepsAll }},
	{workCycle, "drones"}:         {func(w Work) float64 { return w.ReadIdle }, func(w Work) float64 { return w.ReadBound }},
	{workCycle, "missions"}:       {decisions}, // once for each of its changes
	{workCycle, "orders"}:         {func(w Work) float64 { return w.ReadWaiting + flightReads*w.Decisions }},
	{workCycle, "locks"}:          {func(w Work) float64 { return w.Taken }},
	{workCycle, "fence_counters"}: {func(w Work) float64 { return w.Taken }},
	{workCycle, "*"}:              {cycles},
	{workLearn, "learned"}:        {looks},
	{workLearn, "orders"}:         {orders},
	{workLearn, "missions"}:       {decisions},
	{workLearn, "*"}:              {looks},
	{workCensus, "*"}:             {func(w Work) float64 { return w.Censuses }},
	{workDepots, "depots"}:        {func(w Work) float64 { return w.WatchedAreas }},
	{workDepots, "cycles"}:        {func(w Work) float64 { return w.WatchedAreas }},
	{workDepots, "*"}:             {func(w Work) float64 { return w.Watches }},
	{workPlaces, "*"}:             {func(w Work) float64 { return w.Checks }},
	{workLost, "*"}:               {func(w Work) float64 { return w.LostTries }},
}

// Times of an index that begins with an area.
const (
	droneDue = "drones.dueAt"
	orderDue = "orders.dueAt"
)

// timesLaw says with which units the writes of a time grow.
func timesLaw(field string) []unit {
	if field == droneDue { // as long as they report
		return []unit{idleTime, boundTime}
	}
	switch collection, _, _ := strings.Cut(field, "."); collection {
	case firestoretx.Cycles:
		return []unit{cycles}
	case firestoretx.Orders:
		return []unit{orders}
	case firestoretx.Events:
		return []unit{decisions, orders}
	}
	return []unit{decisions}
}

// timesASecond is how often a time is written, or a range of an index, in the mean.
func (m Model) timesASecond(field string, w Work) (n float64) {
	for k, cost := range m.times[field] {
		n += cost * timesLaw(field)[k](w) / w.Seconds
	}
	index, values, _ := strings.Cut(field, "/")
	switch {
	case index == "events.time", values == "cause=TELEMETRY":
		n += w.MoreChanges / w.Seconds
	case strings.HasPrefix(values, "entity=drone,"): // as those that were counted are spread
		n *= 1 + w.MoreChanges/w.Seconds/m.timesASecond(changes, w)
	}
	return n * m.unended(index, values)
}

// unended is how much more often a range is written than the samples show, if it is at the end of orders or
// missions: the samples end while many of theirs are under way.
func (m Model) unended(index, values string) float64 {
	begin, end := "orders.createdAt", "orders.deliveredAt"
	if strings.HasPrefix(index, firestoretx.Missions+".") {
		begin, end = "missions.startTime", "missions.endTime"
	}
	collection, last, _ := strings.Cut(end, ".")
	if !strings.HasPrefix(index, collection+".") || len(m.times[end]) == 0 || m.times[end][0] == 0 {
		return 1
	}
	final := strings.HasSuffix(index, last) || slices.Contains([]string{"status=DELIVERED", "status=COMPLETED"}, values)
	if !final {
		return 1
	}
	return max(1, m.times[begin][0]/m.times[end][0])
}

// lawOf are the units of a kind.
func lawOf(k Kind) []unit {
	if law, ok := laws[k]; ok {
		return law
	}
	return laws[Kind{k.Work, "*"}]
}

// Model is what each unit costs.
type Model struct {
	costs     map[Kind][]Count     // one for each unit of the kind's law
	times     map[string][]float64 // writes of a time, for each unit of its collection's
	documents map[string]float64   // bytes of a document as it is read, by collection
	messages  map[string]float64   // bytes, by topic
	calls     map[string]float64   // of one cycle
	near      float64              // reports of a mission from near its stops
	event     float64              // units of an event, from its creation to its deletion
	largest   int
}

// fields are a count's numbers, to compute with.
func (c *Count) fields() [7]*float64 {
	return [7]*float64{&c.Calls, &c.Reads, &c.Writes, &c.Deletes, &c.Sent, &c.Received, &c.Units}
}

// Fit finds the costs of units that give the counts of the samples.
func Fit(samples []Sample) Model {
	m := Model{costs: map[Kind][]Count{}, times: map[string][]float64{}, documents: map[string]float64{}, messages: map[string]float64{}, calls: map[string]float64{}}
	var all Work
	missions := 0.0
	var events, entries Count
	read := map[string]Count{}
	for _, s := range samples {
		all.Cycles += s.Work.Cycles
		all.Near += s.Work.Near
		missions += (s.Times["missions.startTime"] + s.Times["missions.endTime"]) / 2 // some are half flown
		m.largest = max(m.largest, s.LargestRequest)
		events = events.plus(s.Counts[Kind{workTelemetry, firestoretx.Events}])
		entries = entries.plus(s.Counts[Kind{workTelemetry, firestoretx.Events + otherEntries}])
		for p, c := range s.Counts {
			m.costs[p] = make([]Count, len(lawOf(p)))
			if p.Collection != "" {
				read[p.Collection] = read[p.Collection].plus(Count{Reads: c.Reads, Received: c.Received})
			}
		}
		for field := range s.Times {
			m.times[field] = nil
		}
		for topic, size := range s.PubSub {
			m.messages[topic] = max(m.messages[topic], size)
		}
	}
	m.near = all.Near / max(1, missions)
	m.event = (events.Units + entries.Units) / max(1, events.Writes)
	for field := range m.times {
		var y []float64
		x := make([][]float64, len(timesLaw(field)))
		for _, s := range samples {
			y = append(y, s.Times[field])
			for k, u := range timesLaw(field) {
				x[k] = append(x[k], u(s.Work))
			}
		}
		m.times[field] = solve(x, y)
	}
	for collection, c := range read {
		m.documents[collection] = c.Received / max(1, c.Reads)
	}
	for _, s := range samples {
		m.calls[workCycle] += s.Counts[Kind{workCycle, ""}].Calls / max(1, all.Cycles)
	}
	for p := range m.costs {
		for i := range (&Count{}).fields() {
			var y []float64
			x := make([][]float64, len(lawOf(p)))
			for _, s := range samples {
				c := s.Counts[p]
				y = append(y, *c.fields()[i])
				for k, u := range lawOf(p) {
					x[k] = append(x[k], u(s.Work))
				}
			}
			for k, cost := range solve(x, y) {
				*m.costs[p][k].fields()[i] = cost
			}
		}
	}
	return m
}

// solve finds costs of one or two units, none negative, that explain y best.
func solve(x [][]float64, y []float64) []float64 {
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	alone := func(k int) float64 {
		if n := dot(x[k], x[k]); n > 0 {
			return dot(x[k], y) / n
		}
		return 0
	}
	if len(x) == 1 {
		return []float64{alone(0)}
	}
	aa, ab, bb, ay, by := dot(x[0], x[0]), dot(x[0], x[1]), dot(x[1], x[1]), dot(x[0], y), dot(x[1], y)
	det := aa*bb - ab*ab
	if det <= 1e-9*aa*bb {
		return []float64{alone(0), 0}
	}
	a, b := (ay*bb-by*ab)/det, (by*aa-ay*ab)/det
	switch {
	case a < 0:
		return []float64{0, alone(1)}
	case b < 0:
		return []float64{alone(0), 0}
	}
	return []float64{a, b}
}

// Of is what work costs.
func (m Model) Of(w Work) map[Kind]Count {
	parts := map[Kind]Count{}
	for p, costs := range m.costs {
		for k, u := range lawOf(p) {
			parts[p] = parts[p].plus(costs[k].times(u(w)))
		}
	}
	return parts
}

// byWork adds the counts of each work.
func byWork(parts map[Kind]Count) map[string]Count {
	sums := map[string]Count{}
	for _, p := range slices.SortedFunc(maps.Keys(parts), compareKinds) { // in one order, so that digits repeat
		sums[p.Work] = sums[p.Work].plus(parts[p])
	}
	return sums
}

func compareKinds(a, b Kind) int {
	return cmp.Or(cmp.Compare(a.Work, b.Work), cmp.Compare(a.Collection, b.Collection))
}

// day is the work of a day of a fleet whose sweeps, cycles and commits are as timed.
func (m Model) day(f Fleet, t Timing) Work {
	const seconds = 24 * 60 * 60
	n, areas, managers := float64(f.Drones), float64(f.Areas), float64(f.Managers)
	w := Work{Seconds: seconds, Idle: f.Idle * n, Bound: f.Bound * n, Open: f.Open * n}
	w.Orders = n * f.OrdersPerDroneDay
	w.Decisions = w.Orders / f.OrdersPerMission
	w.Reports, w.Near = n*seconds, w.Decisions*m.near       // one a second, as the samples report
	slower := min(1, f.Hz/max(1e-9, m.writtenASecond(w)/n)) // each of fewer reports is written
	w.Reports, w.Near = w.Reports*slower, w.Near*slower
	w.Commits = m.writtenASecond(w) * seconds / t.Batch
	w.MoreChanges = max(0, n*f.ChangesPerDroneDay-m.timesASecond(changes, w)*seconds)
	w.Sweeps = seconds / sweepEvery.Seconds() * f.sweepers() * math.Ceil((areas/f.sweepers()+1)/dueAtOnce) // with more depots one asks more often
	w.SweepsAll = seconds / allEvery.Seconds()
	w.SweptIdle, w.SweptBound, w.SweptOpen, w.SweptAreas = w.SweepsAll*w.Idle, w.SweepsAll*w.Bound, w.SweepsAll*w.Open, w.SweepsAll*areas
	w.Cycles = t.Cycles * areas * seconds
	if !f.Owned {
		w.Taken = w.Cycles
	}
	perArea := w.Cycles / areas
	w.ReadIdle, w.ReadBound, w.ReadWaiting = perArea*w.Idle, perArea*w.Bound, perArea*f.waiting()*n
	w.Looks = t.Looks * seconds
	w.Censuses = seconds / censusEvery.Seconds()
	w.Watches = managers * seconds / cycleEvery.Seconds()
	w.WatchedAreas = w.Watches * areas
	w.Checks = (managers + float64(f.Optimizers)) * seconds / checkEvery.Seconds()
	w.LostTries = t.LostTries * seconds
	return w
}

// sweepers is how many State Managers sweep what is due. With few depots it is one.
func (f Fleet) sweepers() float64 {
	if f.Areas <= dueAtOnce {
		return 1
	}
	return float64(f.Managers)
}

// members is how many processes write heartbeats.
func (f Fleet) members() (n float64) {
	if f.Owned {
		n = float64(f.Optimizers)
	}
	if f.sweepers() > 1 {
		n += float64(f.Managers)
	}
	return n
}

// Day is what a fleet uses in a day.
func (m Model) Day(f Fleet, t Timing) map[Kind]Count {
	w := m.day(f, t)
	parts := m.Of(w)
	add := func(work, collection string, c Count) {
		at := Kind{work, collection}
		parts[at] = parts[at].plus(c)
	}
	managers := float64(f.Managers)
	// What no sample counts: a read for every 1,000 documents counted, the sweeper's lock, changes of
	// status beside missions, probes.
	add(workCensus, "", Count{Reads: w.Censuses * (float64(f.Drones) + w.Open) / 1000})
	add(workSweep, "locks", Count{Calls: 1, Writes: 1, Units: 1}.times(w.Seconds/extendEvery.Seconds()))
	add(workTelemetry, "events", Count{Calls: 1, Writes: 1, Deletes: 1, Units: m.event}.times(w.MoreChanges))
	if n := f.members(); n > 0 { // they poll each other, and count each other with each heartbeat
		beats, polls := n*w.Seconds/ownership.Heartbeat.Seconds(), n*w.Seconds/ownership.Poll.Seconds()
		add(workMembers, "members", Count{Calls: 2*beats + 2*polls, Writes: beats, Units: beats, Reads: 2*polls + beats*math.Ceil(n/1000)})
	}
	if f.Owned { // the locks are extended
		add(workCycle, "locks", Count{Calls: 1, Writes: 1, Units: 1}.times(float64(f.Areas)*w.Seconds/extendEvery.Seconds()))
	} else { // once, while it searches
		add(workCycle, "locks", Count{Calls: 1, Writes: 1, Units: 1}.times(w.Cycles))
	}
	add(workProbes, "", Count{Calls: probeReads, Reads: probeReads}.times(managers*w.Seconds/probeEvery.Seconds()))
	return parts
}

// writtenASecond is how many reports are written.
func (m Model) writtenASecond(w Work) (n float64) {
	at := Kind{workTelemetry, "drones"}
	for k, cost := range m.costs[at] {
		n += cost.Writes * lawOf(at)[k](w) / w.Seconds
	}
	return n
}

// PubSub is what a day counts at Pub/Sub, published and delivered.
func (m Model) PubSub(f Fleet) (bytes float64) {
	n := float64(f.Drones)
	missions := n * f.OrdersPerDroneDay / f.OrdersPerMission
	reports := 1.0 // of a request
	if f.Gateways > 0 {
		reports += n * f.Hz / float64(f.Gateways) / gatewayKeys * gatewayGather.Seconds()
	}
	for topic, sent := range map[string]float64{
		workTelemetry: n * f.Hz * 24 * 60 * 60, workOrders: n * f.OrdersPerDroneDay, workDecisions: missions, "missions": missions,
	} {
		size := m.messages[topic]
		together := 1.0
		if topic == workTelemetry && f.Gateways > 0 {
			size, together = size+gatewayBytes, reports
		}
		bytes += sent * (max(size, minPublished/together) + size)
	}
	return bytes
}

//go:embed counts.json
var stored []byte

// Stored is the model of the samples in counts.json, which a test renews.
func Stored() (Model, error) {
	var samples []Sample
	if err := json.Unmarshal(stored, &samples); err != nil {
		return Model{}, fmt.Errorf("counts.json: %w", err)
	}
	return Fit(samples), nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Kind) MarshalText() ([]byte, error) { return []byte(p.Work + "/" + p.Collection), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Kind) UnmarshalText(text []byte) error {
	var found bool
	if p.Work, p.Collection, found = strings.Cut(string(text), "/"); !found {
		return fmt.Errorf("kind %q has no slash", text)
	}
	return nil
}

// Total adds the counts of all kinds.
func Total(parts map[Kind]Count) (total Count) {
	for _, p := range slices.SortedFunc(maps.Keys(parts), compareKinds) {
		total = total.plus(parts[p])
	}
	return total
}
