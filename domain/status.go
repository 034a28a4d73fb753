package domain

import (
	"fmt"
	"time"
)

// Statuses are strings, so that documents, logs and the console show the same
// short names without a translation table.

// DroneStatus is what a drone is doing.
type DroneStatus string

const (
	DroneIdle        DroneStatus = "IDLE"
	DroneReserved    DroneStatus = "RESERVED" // never written; read as not assignable
	DroneMoving      DroneStatus = "MOVING"
	DroneDelivering  DroneStatus = "DELIVERING"
	DroneCharging    DroneStatus = "CHARGING"
	DroneMaintenance DroneStatus = "MAINTENANCE"
	DroneProblem     DroneStatus = "PROBLEM"
	DroneEmergency   DroneStatus = "EMERGENCY"
	DroneUnknown     DroneStatus = "UNKNOWN"
)

// DroneStatuses lists every drone status.
var DroneStatuses = []DroneStatus{
	DroneIdle, DroneReserved, DroneMoving, DroneDelivering, DroneCharging,
	DroneMaintenance, DroneProblem, DroneEmergency, DroneUnknown,
}

// OrderStatus is where an order stands.
type OrderStatus string

const (
	OrderPending    OrderStatus = "PENDING"
	OrderSolving    OrderStatus = "SOLVING" // never written; read as not assignable
	OrderAssigned   OrderStatus = "ASSIGNED"
	OrderInDelivery OrderStatus = "IN_DELIVERY"
	OrderDelivered  OrderStatus = "DELIVERED"
	OrderCancelled  OrderStatus = "CANCELLED"
)

// OrderStatuses lists every order status.
var OrderStatuses = []OrderStatus{
	OrderPending, OrderSolving, OrderAssigned, OrderInDelivery, OrderDelivered, OrderCancelled,
}

// Final reports whether an order in this status will never change again.
func (s OrderStatus) Final() bool { return s == OrderDelivered || s == OrderCancelled }

// MissionStatus is where a mission stands.
type MissionStatus string

const (
	MissionActive    MissionStatus = "ACTIVE"
	MissionCompleted MissionStatus = "COMPLETED"
	MissionFailed    MissionStatus = "FAILED"
)

// MissionStatuses lists every mission status.
var MissionStatuses = []MissionStatus{MissionActive, MissionCompleted, MissionFailed}

// FailureReason says why a mission failed.
type FailureReason string

const (
	FailureNotAcked       FailureReason = "NOT_ACKED"        // the command expired unseen
	FailureAbortedByDrone FailureReason = "ABORTED_BY_DRONE" // the drone left it unfinished
	FailureDroneFault     FailureReason = "DRONE_FAULT"      // problem, emergency or maintenance
	FailureContactLost    FailureReason = "CONTACT_LOST"     // the drone fell silent
	FailureStalled        FailureReason = "STALLED"          // far over its estimate
	FailureWithdrawn      FailureReason = "WITHDRAWN"        // every order was cancelled
	FailureRecalled       FailureReason = "RECALLED"         // by an operator, and the drone has left it
)

// Priority orders requests by medical urgency; a greater value is more urgent. Zero means unset and
// counts as STANDARD, for example in an order that was cancelled before it arrived.
type Priority int

const (
	PriorityStandard Priority = 1
	PriorityHigh     Priority = 2
	PriorityCritical Priority = 3
)

// Priorities lists every priority, least urgent first. It is an array, so that
// its length is a constant.
var Priorities = [...]Priority{PriorityStandard, PriorityHigh, PriorityCritical}

// String is the priority's name on the wire and in documents.
func (p Priority) String() string {
	switch p {
	case 0, PriorityStandard:
		return "STANDARD"
	case PriorityHigh:
		return "HIGH"
	case PriorityCritical:
		return "CRITICAL"
	}
	return fmt.Sprintf("Priority(%d)", int(p))
}

// Window is how long after its creation an order is due if it has no deadline of its own.
func (p Priority) Window() time.Duration {
	switch p {
	case 0, PriorityStandard:
		return 60 * time.Minute
	case PriorityHigh:
		return 30 * time.Minute
	case PriorityCritical:
		return 15 * time.Minute
	}
	return 0 // due at once; no decoder lets such a priority through
}

// ParsePriority is the inverse of String; ok is false for an unknown name.
func ParsePriority(name string) (p Priority, ok bool) {
	for _, p := range Priorities {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// WaypointType is what a drone does at a stop of its route.
type WaypointType string

const (
	WaypointDepotStart       WaypointType = "DEPOT_START"
	WaypointWarehousePickup  WaypointType = "WAREHOUSE_PICKUP"
	WaypointHospitalDelivery WaypointType = "HOSPITAL_DELIVERY"
	WaypointDepotReturn      WaypointType = "DEPOT_RETURN"
	WaypointCharge           WaypointType = "CHARGE" // at a depot, up to a level
	WaypointWait             WaypointType = "WAIT"   // until a time
)

// WaypointTypes lists every type of stop.
var WaypointTypes = []WaypointType{
	WaypointDepotStart, WaypointWarehousePickup, WaypointHospitalDelivery, WaypointDepotReturn,
	WaypointCharge, WaypointWait,
}
