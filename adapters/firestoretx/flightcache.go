package firestoretx

import (
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// flightsReread is after how long a mission that a FlightCache remembers is read again: somebody may
// have changed it by hand, or an earlier version an order of it alone.
const flightsReread = 10 * time.Minute

// FlightCache remembers missions in flight with their orders from one snapshot of an area to the
// next. What a snapshot takes from it was so at the snapshot's read time, because every commit that
// changes a mission or an order of it changes the drone's document. The zero value is empty. It is
// not safe for concurrent use.
type FlightCache struct {
	flights map[domain.DroneID]knownFlight
}

// knownFlight is a mission with its orders as of one state of its drone's binding.
type knownFlight struct {
	state   bindingState
	readAt  time.Time // the server's
	mission domain.Mission
	orders  []domain.Order // those not delivered, if they were read
	whole   bool           // the orders were read
}

// bindingState changes whenever a drone's mission or an order of it does.
type bindingState struct {
	mission  domain.MissionID
	revision int64 // of the mission, as versions without changes write it
	changes  int64
}

func bindingStateOf(doc *firestore.DocumentSnapshot, d domain.Drone) bindingState {
	data := doc.Data()
	s := bindingState{mission: d.CurrentMissionID}
	s.revision, _ = data[missionRevision].(int64)
	s.changes, _ = data[bindingChanges].(int64)
	return s
}

// flyingDrone is a drone that may be in flight, as a snapshot read it.
type flyingDrone struct {
	domain.Drone
	state bindingState
}

// recall returns what is known of the drones' missions at a snapshot's read time, and the drones
// whose missions must be read. Missions that can be amended are needed with their orders.
func (c *FlightCache) recall(flying []flyingDrone, readTime time.Time, amendable func(domain.Drone, domain.Mission) bool) (known map[domain.DroneID]knownFlight, unknown []flyingDrone) {
	if c == nil {
		return nil, flying
	}
	known = map[domain.DroneID]knownFlight{}
	for _, d := range flying {
		k, ok := c.flights[d.ID]
		current := ok && k.state == d.state && !readTime.Before(k.readAt) && readTime.Sub(k.readAt) < flightsReread
		if !current || !k.whole && amendable(d.Drone, k.mission) {
			unknown = append(unknown, d)
			continue
		}
		known[d.ID] = k
	}
	return known, unknown
}

// keep remembers the flights of a snapshot.
func (c *FlightCache) keep(flights map[domain.DroneID]knownFlight) {
	if c != nil {
		c.flights = flights
	}
}

// readFlights reads the amendable missions of drones in flight with their orders. It also reads the
// missions of homebound drones that can take the next one. known are those that a cache remembers;
// those that were read are added to it.
func (s *Store) readFlights(tx *firestore.Transaction, drones policy.DronePolicy, flying []flyingDrone, cache *FlightCache, now time.Time, leaveOut func(error) bool) (flights []domain.Flight, known map[domain.DroneID]knownFlight, _ error) {
	amendable := func(d domain.Drone, m domain.Mission) bool { return drones.Amendable(d, m, now) }
	known, unknown := cache.recall(flying, now, amendable)
	read, err := s.readMissionsOf(tx, unknown, amendable, now, leaveOut)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range flying {
		k, ok := known[d.ID]
		if !ok {
			if k, ok = read[d.ID]; !ok {
				continue
			}
			if known != nil {
				known[d.ID] = k
			}
		}
		homebound := k.mission.Status == domain.MissionCompleted && drones.CanAcceptMission(d.Drone, 0, now, now) == nil
		if amendable(d.Drone, k.mission) || homebound {
			flights = append(flights, domain.Flight{Drone: d.Drone, Mission: k.mission, Orders: k.orders, ReachedAt: policy.LastReachedAt(k.mission)})
		}
	}
	return flights, known, nil
}

// readMissionsOf reads the missions of drones, and the orders of those missions that can be amended.
func (s *Store) readMissionsOf(tx *firestore.Transaction, flying []flyingDrone, amendable func(domain.Drone, domain.Mission) bool, now time.Time, leaveOut func(error) bool) (map[domain.DroneID]knownFlight, error) {
	if len(flying) == 0 {
		return nil, nil
	}
	ids := make([]domain.MissionID, len(flying))
	for i, d := range flying {
		ids[i] = d.CurrentMissionID
	}
	docs, err := tx.GetAll(refs(s, Missions, ids))
	if err != nil {
		return nil, err
	}
	read := map[domain.DroneID]knownFlight{}
	var list []domain.DroneID
	var ahead []domain.OrderID
	for i, doc := range docs {
		if !doc.Exists() {
			continue
		}
		d := flying[i]
		m, err := missionCodec.decode(doc)
		if leaveOut(err) {
			continue
		}
		k := knownFlight{state: d.state, readAt: now, mission: m, whole: amendable(d.Drone, m)}
		read[d.ID] = k
		if k.whole && len(m.OrderIDs) > 0 {
			list, ahead = append(list, d.ID), append(ahead, m.OrderIDs...)
		}
	}
	if len(ahead) == 0 {
		return read, nil
	}
	if docs, err = tx.GetAll(refs(s, Orders, ahead)); err != nil {
		return nil, err
	}
	for _, id := range list {
		k := read[id]
		n := len(k.mission.OrderIDs)
		malformed := false
		for _, doc := range docs[:n] {
			if !doc.Exists() {
				continue
			}
			o, err := orderCodec.decode(doc)
			malformed = malformed || err != nil
			ahead := o.Status == domain.OrderAssigned || o.Status == domain.OrderInDelivery
			if !leaveOut(err) && ahead && o.AssignedMissionID == k.mission.ID {
				k.orders = append(k.orders, o)
			}
		}
		if docs = docs[n:]; malformed {
			k.readAt = time.Time{} // read again by each snapshot, which names it
		}
		read[id] = k
	}
	return read, nil
}
