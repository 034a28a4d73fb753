package wire

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// enumTable translates an enum of the wire. The domain's values are its short
// names, so the generated code is the table.
type enumTable[P protoEnum, D ~string] struct {
	toDomain map[P]D
	toProto  map[D]P
}

type protoEnum interface {
	~int32
	protoreflect.Enum
}

func newEnumTable[P protoEnum, D ~string]() enumTable[P, D] {
	t := enumTable[P, D]{toDomain: map[P]D{}, toProto: map[D]P{}}
	descriptor := P(0).Descriptor()
	prefix := enumPrefix(descriptor)
	for i := range descriptor.Values().Len() {
		v := descriptor.Values().Get(i)
		if v.Number() == 0 {
			continue // unspecified is the domain's empty value
		}
		short := D(strings.TrimPrefix(string(v.Name()), prefix))
		t.toDomain[P(v.Number())] = short
		t.toProto[short] = P(v.Number())
	}
	return t
}

// fromProto is empty for unspecified and unknown values.
func (t enumTable[P, D]) fromProto(p P) D { return t.toDomain[p] }

// proto is unspecified for values the wire has no number for.
func (t enumTable[P, D]) proto(d D) P { return t.toProto[d] }

var (
	droneStatuses = newEnumTable[pb.DroneStatus, domain.DroneStatus]()
	orderStatuses = newEnumTable[pb.OrderStatus, domain.OrderStatus]()
	waypointTypes = newEnumTable[pb.WaypointType, domain.WaypointType]()
)

// priorityFromProto takes an unspecified priority for STANDARD.
func priorityFromProto(p pb.OrderPriority) domain.Priority {
	if p == pb.OrderPriority_ORDER_PRIORITY_UNSPECIFIED {
		return domain.PriorityStandard
	}
	return domain.Priority(p)
}

// priorityToProto relies on the domain's values being the wire's.
func priorityToProto(p domain.Priority) pb.OrderPriority { return pb.OrderPriority(p) }
