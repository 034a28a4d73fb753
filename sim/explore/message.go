package explore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

type kind uint8

const (
	kindReport kind = iota + 1
	kindRequest
	kindDecision
	kindCommand
	kindHandOver // not a message, but a cycle's transaction that is yet to come
	kindMove     // nor this: an operator's, that moves the warehouse
)

// message is a message on the bus, with what the checks need to know about it.
type message struct {
	Kind      kind
	Published time.Time

	// A drone's report, and a bit for each stop that it proves of the mission it
	// names.
	Drone  int
	Report domain.Telemetry
	Proves uint8
	Lie    bool // it claims every stop

	Request domain.OrderRequest

	// A decision about a mission, with what its snapshot showed.
	Mission   int
	Decision  domain.Decision
	FreeSince time.Time            // when the drone became idle, or turned home
	Waiting   [maxOrders]time.Time // since when
	Forged    forgery

	HandOver domain.HandOvers // of one order

	// A command to a drone.
	Revoke  bool
	Route   int   // revision
	Course  int   // the plan that its route comes from
	Dropped uint8 // orders withdrawn
	Active  bool  // the mission
	Expires time.Time
}

func (m message) String() string {
	switch m.Kind {
	case kindReport:
		t := m.Report
		text := fmt.Sprintf("report of %s: %s", t.DroneID, t.Status)
		if t.MissionID != "" {
			text += " on " + string(t.MissionID)
			if t.MissionRevision > 1 {
				text += fmt.Sprintf(" revision %d", t.MissionRevision)
			}
		}
		if m.Proves != 0 {
			text += fmt.Sprintf(", stops completed %d", highest(m.Proves)+1)
		}
		if t.CompletedStops != nil {
			text += fmt.Sprintf(" (says %d)", *t.CompletedStops)
		}
		return text + ", measured " + since(t.Timestamp)
	case kindRequest:
		if m.Request.Cancel {
			return fmt.Sprintf("cancellation of %s", m.Request.ID)
		}
		return fmt.Sprintf("request %s for the hospital at %.1f", m.Request.ID, m.Request.Delivery.Lat)
	case kindDecision:
		if m.Decision.Amends() {
			return fmt.Sprintf("decision %s: %s serves %v on %s, planned on revision %d, fence %s", m.Decision.ID, m.Decision.DroneID, m.Decision.OrderIDs,
				m.Decision.AmendsMissionID, m.Decision.AmendsRevision, strings.TrimLeft(m.Decision.Fence, "0"))
		}
		if m.Decision.Standby() {
			return fmt.Sprintf("decision %s: %s waits until %s, fence %s, snapshot %s", m.Decision.ID, m.Decision.DroneID,
				strings.TrimPrefix(since(m.Decision.Route[1].WaitUntil), "at "), strings.TrimLeft(m.Decision.Fence, "0"), since(m.Decision.SnapshotTime))
		}
		return fmt.Sprintf("decision %s: %s serves %v, fence %s, snapshot %s", m.Decision.ID, m.Decision.DroneID, m.Decision.OrderIDs,
			strings.TrimLeft(m.Decision.Fence, "0"), since(m.Decision.SnapshotTime))
	case kindCommand:
		if m.Revoke {
			return fmt.Sprintf("revocation of %s for D%d", missionID(m.Mission), m.Drone+1)
		}
		if m.Route > 1 {
			return fmt.Sprintf("command %s revision %d for D%d, expires %s", missionID(m.Mission), m.Route, m.Drone+1, since(m.Expires))
		}
		return fmt.Sprintf("command %s for D%d, expires %s", missionID(m.Mission), m.Drone+1, since(m.Expires))
	case kindHandOver:
		one := m.HandOver.List[0]
		return fmt.Sprintf("hand-over of %s from %s to %s by the area of %s, fence %s", one.OrderID, one.From, one.To, m.HandOver.DepotID, strings.TrimLeft(m.HandOver.Fence, "0"))
	case kindMove:
		return "move of the warehouse"
	}
	return "nothing"
}

// since formats a time for stories, in ticks; decimals order what happens within one
// tick.
func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return "at " + strconv.FormatFloat(t.Sub(start).Seconds(), 'f', -1, 64)
}

func highest(mask uint8) (bit int) {
	for i := range 8 {
		if mask&(1<<i) != 0 {
			bit = i
		}
	}
	return bit
}

// course is what the model needs to know about a decision's route.
type course struct {
	stops   int              // all, the way home included
	serves  uint8            // orders, a bit each
	order   [8]int8          // of each stop; -1 for none
	duty    uint8            // stops at which the drone waits, a bit each
	pickup  [maxOrders]uint8 // index of each order's stops
	deliver [maxOrders]uint8
}

func courseOf(route []domain.Waypoint) (c course) {
	c.stops = len(route)
	for i, stop := range route {
		o := number(stop.OrderID)
		c.order[i] = int8(o)
		switch stop.Type {
		case domain.WaypointWarehousePickup:
			c.pickup[o] = uint8(i)
		case domain.WaypointHospitalDelivery:
			c.deliver[o] = uint8(i)
			c.serves |= 1 << o
		case domain.WaypointCharge, domain.WaypointWait:
			c.duty |= 1 << i
		case domain.WaypointDepotStart, domain.WaypointDepotReturn:
		}
	}
	return c
}

// routeFor returns a route from the depot to every pickup, then to every hospital, and
// home.
func (s *state) routeFor(orders []*domain.Order) []domain.Waypoint {
	route := []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depotAt}}
	for _, o := range orders {
		route = append(route, s.pickupStop(o))
	}
	for _, o := range orders {
		route = append(route, domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: o.Delivery, OrderID: o.ID})
	}
	return append(route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depotAt})
}
