package capacity

// Fleet is a fleet at work, around the clock.
type Fleet struct {
	Drones int
	Hz     float64 // reports per drone and second
	Depots int     // each has its own solve cycle

	OrdersPerDroneDay  float64
	OrdersPerMission   float64
	ChangesPerDroneDay float64 // of a drone's status
	Idle               float64 // share of the drones that are IDLE
	OnMission          float64 // share of the drones that have a mission
	Warehouses         int
	Replicas           int // State Managers
}

// Typical is a fleet of so many drones with the assumptions that the table
// states.
func Typical(drones int, hz float64) Fleet {
	depots := max(drones/1000, 1)
	return Fleet{
		Drones: drones, Hz: hz, Depots: depots,
		OrdersPerDroneDay: 20, OrdersPerMission: 2, ChangesPerDroneDay: 100,
		Idle: 0.3, OnMission: 0.4, Warehouses: 5 * depots, Replicas: max(2, drones/10_000),
	}
}

// Usage is what a day costs, in documents, calls and bytes.
type Usage struct {
	Reads, Writes, Deletes float64
	RPCs                   float64 // calls to Firestore
	Messages               float64 // published
	Bytes                  float64 // published and delivered, as Pub/Sub bills them
}

func (u Usage) plus(v Usage) Usage {
	return Usage{u.Reads + v.Reads, u.Writes + v.Writes, u.Deletes + v.Deletes, u.RPCs + v.RPCs, u.Messages + v.Messages, u.Bytes + v.Bytes}
}

// times is n of the same.
func (u Usage) times(n float64) Usage {
	return Usage{u.Reads * n, u.Writes * n, u.Deletes * n, u.RPCs * n, u.Messages * n, u.Bytes * n}
}

// Part is the share of one kind of work.
type Part struct {
	Name string
	Usage
}

const (
	day = 86_400 // seconds

	sweepEvery = 5.0  // seconds; one State Manager of all
	cycleEvery = 10.0 // seconds, for each depot
	probeEvery = 10.0 // seconds, for each State Manager: /readyz

	censusEvery = 15.0 // seconds, for each State Manager: drones and orders by status, for metrics

	// CoalesceEvery is how often the document of a drone that only moves is
	// written, in seconds.
	CoalesceEvery = 1.0

	// PublishBytes is the least that Pub/Sub bills for a publish request; each
	// drone publishes its reports alone.
	PublishBytes = 1000.0
	// DeliveredBytes is what a delivered report counts: payload, attributes,
	// ordering key, id and time. Deliveries share requests.
	DeliveredBytes = 200.0
	// A lease costs reads and writes to take, to renew and to give back.
	lockReads, lockWrites = 4, 3

	// otherBytes is what an order, a decision or a command counts, both ways.
	otherBytes = 2500.0
)

// PerMessage is what one report costs when drones only move and now and then
// change their status.
type PerMessage struct{ RPCs, Reads, Writes float64 }

// Measured are the rows that "go run ./bench/telemetry" prints for 1,000 drones,
// by reports per drone and second; each drone changes its status once a minute.
// Reads are those of the first report of each drone, so a long run has fewer.
var Measured = map[float64]PerMessage{
	1: {RPCs: 0.1405, Reads: 0.0333, Writes: 1.0896},
	5: {RPCs: 0.0185, Reads: 0.0067, Writes: 0.2258},
}

// PositionWrites is how often a drone's document is written in a second because
// it moved.
func PositionWrites(hz float64) float64 { return min(hz, 1/CoalesceEvery) }

// Day is what a fleet costs in a day, by part.
func (f Fleet) Day() []Part {
	n := float64(f.Drones)
	orders := n * f.OrdersPerDroneDay
	missions := orders / f.OrdersPerMission
	k := f.OrdersPerMission
	messages := n * f.Hz * day
	changes := n * f.ChangesPerDroneDay
	return []Part{
		{"positions", Usage{
			Writes: n * PositionWrites(f.Hz) * day, RPCs: messages * f.rpcsPerMessage(),
			Messages: messages, Bytes: messages * (PublishBytes + DeliveredBytes),
		}},
		// The document again, and the event, which a TTL policy deletes later.
		{"changes of status", Usage{Writes: 2 * changes, Deletes: changes, RPCs: changes}},
		{"orders", Usage{Reads: 1, Writes: 2, Deletes: 1, RPCs: 3, Messages: 1, Bytes: otherBytes}.times(orders)},
		// As firestoretx.AssignMission says, with a warehouse for each order, and the mark
		// that the command is out.
		{"decisions", Usage{
			Reads: 3 + k + k, Writes: 2*(3+k) + 1 + 1, Deletes: 1 + 2 + k, RPCs: 4,
			Messages: 2, Bytes: 2 * otherBytes,
		}.times(missions)},
		// Each stop, the acknowledgement and the end read the binding and write
		// the entities that change, with an event each.
		{"missions", Usage{
			Reads: (2*k + 2) * (2 + k), Writes: 2*k*4 + 6, Deletes: 2*k + 3, RPCs: 4 * (2*k + 2),
		}.times(missions)},
		{"sweeps", Usage{
			Reads: f.SweepReads() + lockReads, Writes: lockWrites, RPCs: 15,
		}.times(day / sweepEvery)},
		// With the look at the lock's counter for the cycle's first decision.
		{"cycles", Usage{
			Reads: f.SnapshotReads() + lockReads + 2, Writes: lockWrites + 2, Deletes: 1, RPCs: 20,
		}.times(float64(f.Depots) * day / cycleEvery)},
		// An optimizer looks for depots that were added.
		{"depots", Usage{Reads: float64(f.Depots), RPCs: 1}.times(day / cycleEvery)},
		{"census", Usage{Reads: f.CensusReads(), RPCs: CensusRPCs}.times(float64(f.Replicas) * day / censusEvery)},
		{"probes", Usage{Reads: 5, RPCs: 5}.times(float64(f.Replicas) * day / probeEvery)},
	}
}

// waiting is the orders that no drone has yet.
func (f Fleet) waiting() float64 { return f.underWay() / 4 }

// underWay is the orders of missions.
func (f Fleet) underWay() float64 { return float64(f.Drones) * f.OnMission * f.OrdersPerMission }

// SweepReads is what one sweep reads: every bound or idle drone, every
// active mission, every open order, every depot. Commands that are owed are few.
func (f Fleet) SweepReads() float64 {
	n := float64(f.Drones)
	return 2*n*f.OnMission + n*f.Idle + f.underWay() + f.waiting() + float64(f.Depots)
}

// SnapshotReads is what the snapshot of one depot's cycle reads: its idle
// drones, those in flight with their missions and orders, the orders that it plans, and all
// depots and warehouses.
func (f Fleet) SnapshotReads() float64 {
	ofDepot := float64(f.Drones)*(f.Idle+2*f.OnMission) + f.underWay() + f.waiting()
	return ofDepot/float64(f.Depots) + float64(f.Depots+f.Warehouses)
}

// CensusRPCs is what a census takes: 15 counts, and the oldest order of each of 3
// priorities.
const CensusRPCs = 18

// CensusReads is what a census is billed: one read for each query, whatever it finds,
// and one for every 1,000 documents counted.
func (f Fleet) CensusReads() float64 {
	return CensusRPCs + (float64(f.Drones)+f.waiting()+f.underWay())/1000
}

// rpcsPerMessage is the measured figure of the nearest rate. More drones share a
// commit no worse than 1,000 do.
func (f Fleet) rpcsPerMessage() float64 {
	if f.Hz >= 3 {
		return Measured[5].RPCs
	}
	return Measured[1].RPCs
}

// Total sums parts.
func Total(parts []Part) Usage {
	var u Usage
	for _, p := range parts {
		u = u.plus(p.Usage)
	}
	return u
}

// Prices are a list's, in US dollars.
type Prices struct {
	Name                   string
	Reads, Writes, Deletes float64 // for 100,000 documents
	PubSubTiB              float64
}

// Cost is what usage costs.
func (p Prices) Cost(u Usage) (firestore, pubsub float64) {
	return (u.Reads*p.Reads + u.Writes*p.Writes + u.Deletes*p.Deletes) / 100_000, u.Bytes / (1 << 40) * p.PubSubTiB
}

// Lists are the price lists of the table; docs/capacity.md says where they are
// from. Free quotas are left out.
var Lists = []Prices{
	{Name: "multi-region (nam5, eur3)", Reads: 0.06, Writes: 0.18, Deletes: 0.02, PubSubTiB: 40},
	{Name: "one region (us-central1)", Reads: 0.03, Writes: 0.09, Deletes: 0.01, PubSubTiB: 40},
}
