package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Order is a request for one medical parcel and its fate.
type Order struct {
	ID     OrderID
	Status OrderStatus
	OrderContent

	CreatedAt    time.Time
	Deadline     time.Time
	PendingSince time.Time // when it last became PENDING, server's clock
	DeliveredAt  time.Time
	Attempts     int    // missions that failed before they picked it up
	Held         bool   // waits for an operator; no cycle sees it
	HeldReason   string // why, for that operator
	Late         bool   // undelivered past its deadline, or delivered after it
	// Warning says why no drone could deliver the order as things stood when it came; empty if one
	// could. The solver's reason comes before ": ".
	Warning string

	// PinnedDroneID, if set, is the only drone that may take the order. ForbiddenDroneIDs must not
	// take it; they are in the order of the commands. Operators set both.
	PinnedDroneID     DroneID
	ForbiddenDroneIDs []DroneID

	// PlanningDepotID is the depot whose area plans the order, since PlanningSince by the
	// server's clock; empty until one is found. HandedOverBy lists the depots that handed
	// it over, oldest first.
	PlanningDepotID DepotID
	PlanningSince   time.Time
	HandedOverBy    []DepotID

	AssignedDroneID   DroneID
	AssignedMissionID MissionID
	// Releasing says that an amendment takes the order away from that mission. The order stays with
	// the drone until the drone names the new revision.
	Releasing bool

	ContentHash string // Hash of the request as last accepted
	// ContentPublishedAt is the publish time of that request. A redelivered older
	// request changes nothing.
	ContentPublishedAt time.Time
	// DueAt is the earliest time at which the sweeper may have something to do about the order; zero
	// for never. It is not part of the order's state.
	DueAt    time.Time
	Revision int64 // counts the order's state changes; its events carry it
}

// Waits reports whether the order waits for a drone. A held one waits for an
// operator.
func (o Order) Waits() bool { return o.Status == OrderPending && !o.Held }

// Allows reports whether operators let a drone take the order.
func (o Order) Allows(drone DroneID) bool {
	return (o.PinnedDroneID == "" || o.PinnedDroneID == drone) && !slices.Contains(o.ForbiddenDroneIDs, drone)
}

// MaxForbiddenDrones is how many drones can be forbidden to one order.
const MaxForbiddenDrones = 16

// MaxWeightKg bounds an order's weight, far above what any drone carries. It keeps sums of weights
// finite.
const MaxWeightKg = 1e6

// OrderContent is what a requester decides.
type OrderContent struct {
	Priority    Priority
	ProductType string
	// Pickup is where the parcel waits; nil means at any warehouse that
	// stocks the product.
	Pickup      *Position
	Delivery    Position
	WeightKg    float64
	ColdChain   bool
	RequesterID string
}

// OrderRequest is an order message: it requests a delivery or cancels it.
type OrderRequest struct {
	ID     OrderID
	Cancel bool
	OrderContent
	CreatedAt time.Time // zero: the message's publish time counts
	Deadline  time.Time // zero: by priority
}

// OrderChange is what an order changes to. Nil fields stay.
type OrderChange struct {
	Priority *Priority
	Deadline *time.Time
	Delivery *Position
}

// Hash identifies the content of the request: two messages with the same hash
// request the same thing. An absent time is hashed as absent, so that a redelivery
// has the same hash at any time.
func (r OrderRequest) Hash() string {
	h := sha256.New()
	pickup := "none"
	if r.Pickup != nil {
		pickup = fmt.Sprintf("%v,%v", r.Pickup.Lat, r.Pickup.Lon)
	}
	fmt.Fprintf(h, "%q %d %q %s %v,%v %v %t %q %d %d", r.ID, r.Priority, r.ProductType, pickup,
		r.Delivery.Lat, r.Delivery.Lon, r.WeightKg, r.ColdChain, r.RequesterID,
		unixMicroOrZero(r.CreatedAt), unixMicroOrZero(r.Deadline))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func unixMicroOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
