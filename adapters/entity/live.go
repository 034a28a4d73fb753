package entity

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

// CycleForm is the JSON form of a cycle as viewers see it: with the first of the orders
// that it left, how many there were, and what came of its decisions.
type CycleForm struct {
	Cycle
	UnservedTotal int `json:"unservedTotal" doc:"How many orders it left; unserved has the first of them."`
	Results
}

// Results is how a cycle's decisions were judged.
type Results struct {
	Applied int            `json:"applied" doc:"How many of its decisions were applied."`
	Refused map[string]int `json:"refused" doc:"How many of its decisions were refused, by reason."`
}

// unservedShown is how many of a cycle's orders that it left are shown.
const unservedShown = 50

// OfJudgedCycle is the JSON form of a cycle with what came of its decisions.
func OfJudgedCycle(c domain.Cycle, decisions iter.Seq[domain.LedgerEntry]) CycleForm {
	total := len(c.Unserved)
	c.Unserved = c.Unserved[:min(total, unservedShown)]
	return CycleForm{OfCycle(c), total, resultsOf(decisions)}
}

// resultsOf counts how decisions of one cycle were judged.
func resultsOf(decisions iter.Seq[domain.LedgerEntry]) Results {
	r := Results{Refused: map[string]int{}}
	for d := range decisions {
		if d.Outcome == domain.OutcomeApplied {
			r.Applied++
		} else {
			r.Refused[d.Reason]++
		}
	}
	return r
}

// LiveDrone is the JSON form of a drone as viewers see it: with what is due next.
type LiveDrone struct {
	Drone
	NextDue []NextDue `json:"nextDue,omitempty"`
}

// NextDue is when an item of a drone is due, from its latest maintenance.
type NextDue struct {
	Item string `json:"item"`
	DueLimits
}

// OfLiveDrone is the JSON form of a drone with what is due next.
func OfLiveDrone(d domain.Drone) LiveDrone {
	return LiveDrone{OfDrone(d), Each(d.Due, func(i domain.DueItem) NextDue { return NextDue{i.Item, dueLimits(d.Limits(i))} })}
}

// LiveOrder is the JSON form of an order as viewers see it: while it waits, with how soon it could
// be delivered.
type LiveOrder struct {
	WaitingOrder
	EarliestArrival Time           `json:"earliestArrival,omitempty"`
	EarliestDroneID domain.DroneID `json:"earliestDroneId,omitempty"`
}

// OfLiveOrder is the JSON form of an order and why it waits, with the drone that could deliver it
// soonest, and when; "" and zero for none.
func OfLiveOrder(o domain.Order, waits []domain.Wait, soonest domain.DroneID, at time.Time) LiveOrder {
	return LiveOrder{OfWaitingOrder(o, waits), moment(at), soonest}
}

// OfLiveMission is the JSON form of a mission as viewers see it. d is its drone.
func OfLiveMission(m domain.Mission, d domain.Drone) Mission {
	form := OfMission(m)
	if named := d.CurrentMissionID == m.ID && d.MissionAcked; m.Status == domain.MissionActive && !named && form.Unconfirmed == "" {
		form.Unconfirmed = domain.UnconfirmedMission
	}
	return form
}

// Lock is the JSON form of a lock: the key only if it is one of the fleet's own, which
// are not secret.
type Lock struct {
	Key     string         `json:"key,omitempty"`
	DepotID domain.DepotID `json:"depotId,omitempty"`
	lock.Info
}

// OfLocks is the JSON form of locks: with their keys those of the depots' cycles and those in known.
func OfLocks(locks []lock.RawInfo, depots []domain.DepotID, known []string) []Lock {
	byKey := map[string]domain.DepotID{}
	for _, id := range depots {
		if key, err := lock.NormalizeKey(domain.CycleLockKey(id)); err == nil {
			byKey[key] = id
		}
	}
	shown := make([]Lock, len(locks))
	for i, l := range locks {
		depot, cycle := byKey[l.Key]
		shown[i] = Lock{Info: l.Info, DepotID: depot}
		if cycle || slices.Contains(known, l.Key) {
			shown[i].Key = l.Key
		}
	}
	return shown
}

// Alert is something that a dispatcher should know.
type Alert struct {
	ID           string           `json:"id"`
	Kind         string           `json:"kind"`
	Entity       Reference        `json:"entity"`
	Since        time.Time        `json:"since"`
	Text         string           `json:"text"`
	Rank         int              `json:"rank"`
	Urgent       bool             `json:"urgent"`
	Cause        string           `json:"cause,omitempty"`
	Acknowledged *Acknowledgement `json:"acknowledged"`
}

// Reference names an entity.
type Reference struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Refusal is an order that was refused on its way.
type Refusal struct {
	OrderID     domain.OrderID `json:"orderId"`
	RequesterID string         `json:"requesterId,omitempty"`
	Reason      string         `json:"reason"`
	Error       string         `json:"error"`
	RefusedAt   Time           `json:"refusedAt,omitempty"`
}

// OfRefusal is the JSON form of a refused order.
func OfRefusal(r domain.Refusal) Refusal {
	return Refusal{r.OrderID, r.RequesterID, r.Reason, r.Error, moment(r.RefusedAt)}
}

// Acknowledgement says who has taken note of an alert.
type Acknowledgement struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// OfAcknowledgement is the JSON form of an acknowledgement as its alert shows it.
func OfAcknowledgement(a domain.AlertAck) *Acknowledgement {
	return &Acknowledgement{a.By, a.At.UTC(), a.Reason}
}

// PositionRow is a drone's position as a row: drone, latitude and longitude to seven digits,
// which is a centimetre, battery, reported status, and when it was measured in Unix
// milliseconds.
func PositionRow(drone domain.DroneID, at domain.Position, battery float64, status domain.DroneStatus, measuredAt time.Time) []byte {
	id, err := json.Marshal(drone)
	if err != nil { // no text fails
		id = []byte(`""`)
	}
	return fmt.Appendf(nil, `[%s,%.7f,%.7f,%s,%q,%d]`, id, at.Lat, at.Lon, strconv.FormatFloat(battery, 'f', -1, 64), status, measuredAt.UnixMilli())
}
