package wire

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// enumTable translates an enum of the wire. A value is known only if the domain
// has it too: one that the message definition gains first is refused like any
// unknown number, never stored or taken for another.
type enumTable[P protoEnum, D comparable] struct {
	toDomain map[P]D
	toProto  map[D]P
	names    []string // short names of the known values
}

type protoEnum interface {
	~int32
	protoreflect.Enum
}

// newEnumTable pairs the values of both sides by their short names.
func newEnumTable[P protoEnum, D comparable](values ...D) enumTable[P, D] {
	t := enumTable[P, D]{toDomain: map[P]D{}, toProto: map[D]P{}}
	descriptor := P(0).Descriptor()
	prefix := enumPrefix(descriptor)
	for i := range descriptor.Values().Len() {
		v := descriptor.Values().Get(i)
		short := strings.TrimPrefix(string(v.Name()), prefix)
		for _, d := range values {
			if fmt.Sprint(d) == short {
				t.toDomain[P(v.Number())], t.toProto[d] = d, P(v.Number())
				t.names = append(t.names, short)
			}
		}
	}
	return t
}

// fromProto is the domain's value; its zero value for unspecified and unknown ones.
func (t enumTable[P, D]) fromProto(p P) D { return t.toDomain[p] }

// proto is unspecified for values the wire has no number for.
func (t enumTable[P, D]) proto(d D) P { return t.toProto[d] }

// check reports a value that is not known. The caller decides whether it may be
// unspecified.
func (t enumTable[P, D]) check(c *checker, field string, p P) {
	if _, known := t.toDomain[p]; !known && p != 0 {
		c.add(field, "is number %d; give %s", int32(p), oneOf(t.names))
	}
}

var (
	droneStatuses = newEnumTable[pb.DroneStatus](domain.DroneStatuses...)
	orderStatuses = newEnumTable[pb.OrderStatus](domain.OrderStatuses...)
	waypointTypes = newEnumTable[pb.WaypointType](domain.WaypointTypes...)
	priorities    = newEnumTable[pb.OrderPriority](domain.Priorities[:]...)
)

// orStandard takes an unspecified priority for STANDARD.
func orStandard(p domain.Priority) domain.Priority {
	if p == 0 {
		return domain.PriorityStandard
	}
	return p
}
