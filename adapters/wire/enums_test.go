package wire

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// F-WIRE-01, F-WIRE-03: a value that either side gains must be given to the other,
// or messages that carry it are refused.
func TestEnums_WireAndDomainKnowTheSameValues(t *testing.T) {
	checkTable(t, droneStatuses, domain.DroneStatuses)
	checkTable(t, orderStatuses, domain.OrderStatuses)
	checkTable(t, waypointTypes, domain.WaypointTypes)
	checkTable(t, priorities, domain.Priorities[:])
}

func checkTable[P protoEnum, D comparable](t *testing.T, table enumTable[P, D], values []D) {
	t.Helper()
	enum := P(0).Descriptor()
	for i := range enum.Values().Len() {
		v := enum.Values().Get(i)
		if _, known := table.toDomain[P(v.Number())]; !known && v.Number() != 0 {
			t.Errorf("package domain lacks %s of the wire", v.Name())
		}
	}
	for _, d := range values {
		if _, known := table.toProto[d]; !known {
			t.Errorf("the wire's %s lacks %v of package domain", enum.FullName(), d)
		}
	}
}

// Every enum of the messages has a table.
func TestEnums_EveryEnumIsTranslated(t *testing.T) {
	translated := []protoreflect.FullName{
		pb.DroneStatus(0).Descriptor().FullName(), pb.OrderStatus(0).Descriptor().FullName(),
		pb.WaypointType(0).Descriptor().FullName(), pb.OrderPriority(0).Descriptor().FullName(),
	}
	enums := pb.File_dronefleet_v1_dronefleet_proto.Enums()
	for i := range enums.Len() {
		if name := enums.Get(i).FullName(); !slices.Contains(translated, name) {
			t.Errorf("enum %s has no table in enums.go", name)
		}
	}
}

// F-WIRE-03: a value that the domain lacks is refused with the known names, though
// the message definition has it; it is never taken for another.
func TestEnums_ValueTheDomainLacksIsRefused(t *testing.T) {
	table := newEnumTable[pb.OrderPriority](domain.PriorityStandard, domain.PriorityHigh)
	c := newChecker(nil)
	table.check(c, "priority", pb.OrderPriority_ORDER_PRIORITY_CRITICAL)
	if err := c.err(kindOrder); err == nil || err.Error() != "invalid order: priority is number 3; give STANDARD or HIGH" {
		t.Errorf("refused as %v", err)
	}
	if p := table.fromProto(pb.OrderPriority_ORDER_PRIORITY_CRITICAL); p != 0 {
		t.Errorf("taken for %s", p)
	}
}
