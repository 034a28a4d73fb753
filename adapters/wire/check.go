package wire

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// Limits of one decision.
const (
	MaxOrdersPerDecision    = 64
	MaxWaypointsPerDecision = 256
)

// maxTextBytes bounds names that are not ids, such as product types.
const maxTextBytes = 128

// maxFenceDigits keeps a fence within a uint64.
const maxFenceDigits = 19

// checker collects the problems of one message while its fields are converted.
type checker struct {
	problems []Problem
	fields   map[string]bool // those with a problem; nil: none
}

// newChecker begins with the problems that decoding has found.
func newChecker(problems []Problem) *checker {
	c := &checker{problems: problems}
	for _, p := range problems {
		c.mark(p.Field)
	}
	return c
}

// err is the message's *ValidationError, or nil if there is no problem.
func (c *checker) err(kind string) error {
	if len(c.problems) == 0 {
		return nil
	}
	return &ValidationError{Message: kind, Problems: c.problems}
}

// add records a problem of a field unless it has one: later ones follow from the first.
func (c *checker) add(field, format string, args ...any) {
	if c.fields[field] {
		return
	}
	c.mark(field)
	c.problems = append(c.problems, Problem{field, fmt.Sprintf(format, args...)})
}

func (c *checker) mark(field string) {
	if c.fields == nil {
		c.fields = make(map[string]bool)
	}
	c.fields[field] = true
}

func (c *checker) id(field, id string) {
	if err := domain.CheckID(id); err != nil {
		c.add(field, "%s", err.Error())
	}
}

func (c *checker) optionalID(field, id string) {
	if id != "" {
		c.id(field, id)
	}
}

func (c *checker) text(field, s string) {
	if len(s) > maxTextBytes {
		c.add(field, "is %d bytes long; give at most %d", len(s), maxTextBytes)
	} else if err := domain.CheckForm(s); err != nil {
		c.add(field, "%s", err)
	}
}

func (c *checker) within(field string, v, low, high float64) {
	if math.IsNaN(v) || v < low || v > high {
		c.add(field, "is %v; give %v to %v", v, low, high)
	}
}

func (c *checker) notNegative(field string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		c.add(field, "is %v; give a finite number of at least 0", v)
	}
}

// weight refuses what is not a weight or is more than any drone can carry, so that the
// sender learns of the mistake at once.
func (c *checker) weight(field string, kg float64) {
	if !(kg >= 0 && kg <= domain.MaxWeightKg) { // or NaN
		c.add(field, "is %v; give 0 to %d", kg, int(domain.MaxWeightKg))
	}
}

func (c *checker) positive(field string, v float64) {
	if math.IsInf(v, 0) || !(v > 0) { // or NaN
		c.add(field, "is %v; give a finite number above 0, or leave it out", v)
	}
}

func (c *checker) position(field string, p *pb.Position) domain.Position {
	if p == nil {
		c.add(field, "is missing; give lat and lon in degrees")
		return domain.Position{Lat: math.NaN(), Lon: math.NaN()} // not a place
	}
	if p.Lat == nil && p.Lon == nil && !c.fields[join(field, "lat")] {
		c.add(field, "is empty; give lat and lon in degrees")
	}
	c.within(join(field, "lat"), p.GetLat(), -90, 90)
	c.within(join(field, "lon"), p.GetLon(), -180, 180)
	return domain.Position{Lat: p.GetLat(), Lon: p.GetLon()}
}

func (c *checker) optionalPosition(field string, p *pb.Position) *domain.Position {
	if p == nil {
		return nil
	}
	checked := c.position(field, p)
	return &checked
}

func (c *checker) time(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		c.add(field, "is %d s and %d ns since 1970; give a time within the years 1 to 9999", t.GetSeconds(), t.GetNanos())
		return time.Time{}
	}
	return timeFromProto(t)
}

func (c *checker) requiredTime(field string, t *timestamppb.Timestamp) time.Time {
	checked := c.time(field, t)
	if checked.IsZero() {
		c.add(field, "is missing; give a time")
	}
	return checked
}

// revision accepts the number of a mission's route, and 0 for none.
func (c *checker) revision(field string, n int32) int {
	if n < 0 {
		c.add(field, "is %d; give 1 or more, or leave it out", n)
	}
	return int(n)
}

// fence accepts what compares as a number: digits, or nothing.
func (c *checker) fence(field, fence string) {
	if len(fence) > maxFenceDigits {
		c.add(field, "is %d characters long; give 1 to %d digits or nothing", len(fence), maxFenceDigits)
		return
	}
	for _, r := range fence {
		if r < '0' || r > '9' {
			c.add(field, "is %q; give 1 to %d digits or nothing", fence, maxFenceDigits)
			return
		}
	}
}

// orderIDs checks a list of orders. A list that is too long is not read further.
func (c *checker) orderIDs(field string, ids []string, least int) []domain.OrderID {
	if len(ids) < least || len(ids) > MaxOrdersPerDecision {
		c.add(field, "has %d entries; give %d to %d", len(ids), least, MaxOrdersPerDecision)
		return nil
	}
	firstAt := make(map[string]int, len(ids))
	checked := make([]domain.OrderID, 0, len(ids))
	for i, id := range ids {
		c.id(at(field, i), id)
		if first, repeated := firstAt[id]; repeated {
			c.add(at(field, i), "repeats %s; name each order once", at(field, first))
		} else {
			firstAt[id] = i
		}
		checked = append(checked, domain.OrderID(id))
	}
	return nilIfEmpty(checked)
}

// route checks a list of waypoints. A list that is too long is not read further.
func (c *checker) route(field string, route []*pb.Waypoint) []domain.Waypoint {
	if len(route) > MaxWaypointsPerDecision {
		c.add(field, "has %d entries; give at most %d", len(route), MaxWaypointsPerDecision)
		return nil
	}
	checked := make([]domain.Waypoint, 0, len(route))
	for i, w := range route {
		path := at(field, i)
		kind := w.GetType()
		waypointTypes.check(c, join(path, "type"), kind)
		if kind == pb.WaypointType_WAYPOINT_TYPE_UNSPECIFIED {
			c.add(join(path, "type"), "is missing; give %s", choices(kind.Descriptor()))
		}
		c.optionalID(join(path, "related_order_id"), w.GetRelatedOrderId())
		c.optionalID(join(path, "related_warehouse_id"), w.GetRelatedWarehouseId())
		c.duty(path, w)
		checked = append(checked, domain.Waypoint{
			Type:        waypointTypes.fromProto(kind),
			Position:    c.position(join(path, "position"), w.GetPosition()),
			OrderID:     domain.OrderID(w.GetRelatedOrderId()),
			WarehouseID: domain.WarehouseID(w.GetRelatedWarehouseId()),
			ETA:         c.time(join(path, "eta"), w.GetEta()),

			ChargeToPercent: w.GetChargeToPercent(),
			WaitUntil:       c.time(join(path, "wait_until"), w.GetWaitUntil()),
		})
	}
	return nilIfEmpty(checked)
}

// duty checks how far a stop charges and until when it waits, and that other stops do
// neither.
func (c *checker) duty(path string, w *pb.Waypoint) {
	level, until := join(path, "charge_to_percent"), join(path, "wait_until")
	switch percent := w.GetChargeToPercent(); {
	case w.GetType() != pb.WaypointType_WAYPOINT_TYPE_CHARGE:
		if w.ChargeToPercent != nil {
			c.add(level, "is given; only a CHARGE stop has one")
		}
	case w.ChargeToPercent == nil:
		c.add(level, "is missing; give more than 0 and at most 100")
	case !(percent > 0 && percent <= 100): // or NaN
		c.add(level, "is %v; give more than 0 and at most 100", percent)
	}
	switch {
	case w.GetType() == pb.WaypointType_WAYPOINT_TYPE_WAIT:
		c.requiredTime(until, w.GetWaitUntil())
	case w.GetWaitUntil() != nil:
		c.add(until, "is given; only a WAIT stop has one")
	}
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// nilIfEmpty makes absent and empty lists equal, as they are on the wire.
func nilIfEmpty[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
