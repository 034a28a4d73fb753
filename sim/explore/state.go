package explore

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// The model's bounds.
const (
	maxDrones   = 2
	maxOrders   = 3
	maxMissions = 6 // each has one decision
	maxMessages = 6 // under way at once
	maxManagers = 2
	maxDepots   = 3
	maxMembers  = 2
)

// moment is a time of the model: ticks and, for the order within a tick, the number of
// snapshots taken before it.
type moment uint8

func (m moment) time() time.Time {
	return start.Add(time.Duration(m>>3)*tick + time.Duration(m&7)*time.Millisecond)
}

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// state is the whole of the modelled world at one instant. It is a comparable value of
// small numbers, so that two histories which lead to the same world meet in one state.
type state struct {
	Now moment

	// The store.
	Drone   [maxDrones]id
	Order   [maxOrders]id
	Written [maxOrders]moment // when the order's document was last written
	Mission [maxMissions]id
	Ledger  [maxMissions]id
	Fence   [maxDepots]uint8 // in the control document of each area
	Depots  uint8            // a bit each
	Site    uint8            // where the warehouse is: 1 after its move
	Marked  moment           // in the control document: when decisions' snapshots had to be newer

	// Messages under way, ascending, and transactions that have read and not committed.
	Bus  [maxMessages]id
	Open [maxManagers]transaction

	// The world outside.
	Plan     [maxMissions]id              // the decision that would create each mission
	Issued   [maxDepots]uint8             // fences that each area's lock has handed out
	Owner    [maxMembers][maxDepots]uint8 // the fence with which each member believes it owns each area; 0: it does not
	Script   uint8                        // requests published
	Flight   [maxDrones]flight
	Passed   [maxMissions]uint8 // stops that the mission's drone has completed, in truth
	PassedAt [maxMissions]uint8 // tick of the latest
	Course   [maxMissions]uint8 // 1 + the plan whose route the mission's drone flies, in truth; 0: the mission's own

	// What the store has been told.
	Proof     [maxMissions]uint8 // stops of each mission, a bit each, that reports in the store prove
	Newest    [maxDrones]id      // report in the store
	Asked     [maxOrders]id      // newest request in the store, by publish time
	Emergency uint8              // drones that reported one nobody cleared
	Top       [maxDepots]uint8   // highest fence of each area applied
	Stood     [maxMissions]uint8 // sites of the warehouse when each mission was given its orders, a bit for each order
	Anchor    [maxDrones]id      // newest report that its drone can have measured where it says; see claims.go
	Closed    [maxMissions]id    // that report when each mission ended
	Before    [maxMissions]uint8 // stops that the mission's drone can have completed by then
	Possible  [maxMissions]uint8 // stops that the mission's drone can have completed by now
	Had       [maxOrders]uint8   // depots that handed each order over, a bit each; above them, depots that are gone

	Left budgets
}

// transaction is one that a State Manager has begun: its message and its time.
type transaction struct {
	Message id
	At      moment
}

// flight is a drone in truth.
type flight struct {
	Mission uint8 // 1 + the mission it flies; 0 for none
	Route   uint8 // revision of that mission which it names
	Dropped uint8 // orders withdrawn from it, as far as the drone knows
	Ended   uint8 // missions that it will not begin again
	Flags   uint8
}

const (
	reported uint8 = 1 << iota // in this tick
	dead                       // never reports again
	circling                   // never gets anywhere
	faulty                     // until it recovers
	ahead                      // its clock is a tick ahead
	lied                       // the store was told of stops that it need not have completed
)

// budgets bounds what goes wrong in one history.
type budgets struct {
	Cycle    uint8 // decisions that optimizers make
	Amend    uint8 // decisions that change missions under way
	Standby  uint8 // decisions that drones wait
	Forge    uint8 // decisions that no honest optimizer makes
	Old      uint8 // decisions by a holder that lost its lease
	Take     uint8 // areas that members take, whoever believes that it owns them
	Again    uint8 // messages delivered again, and State Managers that die between commit and ack
	Lose     uint8 // reports and commands lost on the way
	Slow     uint8 // transactions during which something else happens
	Abort    uint8 // missions that drones give up
	Odd      uint8 // reports of a drone that hovers, passes a hospital, has a wrong clock or a low battery, or lies
	Fault    uint8 // faults of drones
	Unsent   uint8 // State Managers that die between commit and publishing the command
	Release  uint8 // orders that an operator releases in error
	Recall   uint8 // missions that an operator recalls
	Ground   uint8 // drones that an operator grounds, and may release
	Register uint8 // drones that an operator registers
	Retire   uint8 // drones that an operator retires
	HandOver uint8 // orders that cycles hand over to other areas
	Delete   uint8 // depots that are deleted
	Add      uint8 // depots that are added
	Move     uint8 // moves of the warehouse
	Hold     uint8 // orders that an operator holds
	Pin      uint8 // orders that an operator pins to a drone, or forbids one
}

// insert puts a message on the bus; false if it is full.
func (s *state) insert(m id) bool {
	for i, other := range s.Bus {
		if other == 0 || m < other {
			if s.Bus[maxMessages-1] != 0 {
				return false
			}
			copy(s.Bus[i+1:], s.Bus[i:])
			s.Bus[i] = m
			return true
		}
	}
	return false
}

func (s *state) remove(i int) (m id) {
	m = s.Bus[i]
	copy(s.Bus[i:], s.Bus[i+1:])
	s.Bus[maxMessages-1] = 0
	return m
}

// pastSnapshot dates what is committed after a snapshot after it.
func (s *state) pastSnapshot() {
	if s.Now&7 < 7 {
		s.Now++
	}
}

func (s *state) ticks() uint8 { return uint8(s.Now >> 3) }

// nextPlan is the first unused mission number; -1 if there is none.
func (s *state) nextPlan() int {
	for i, p := range s.Plan {
		if p == 0 {
			return i
		}
	}
	return -1
}

func droneID(i int) domain.DroneID { return domain.DroneID(fmt.Sprintf("D%d", i+1)) }
func orderID(i int) domain.OrderID { return domain.OrderID(fmt.Sprintf("O%d", i+1)) }
func decisionID(i int) domain.DecisionID {
	return domain.DecisionID(fmt.Sprintf("X%d", i+1))
}

func missionID(i int) domain.MissionID { return missionIDs[i] }

var missionIDs = func() (ids [maxMissions]domain.MissionID) {
	for i := range ids {
		ids[i] = domain.MissionIDFor(decisionID(i))
	}
	return ids
}()

// The number of an entity of the model is the last digit of its id; -1 for none.
func number[ID ~string](name ID) int {
	if name == "" {
		return -1
	}
	return int(name[len(name)-1] - '1')
}

// Places, each more than a kilometre from the next.
var (
	depotAt = domain.Position{Lat: 48.80, Lon: 2.30}
	awayAt  = domain.Position{Lat: 48.81, Lon: 2.36}
)

func pickupAt(order int) domain.Position {
	return domain.Position{Lat: 48.90, Lon: 2.30 + float64(order)/10}
}

// hospitalAt is where a version of an order's request wants the parcel.
func hospitalAt(order, version int) domain.Position {
	return domain.Position{Lat: 49.00 + float64(version)/10, Lon: 2.30 + float64(order)/10}
}

func waitsAt(order int) *domain.Position {
	at := pickupAt(order)
	return &at
}
