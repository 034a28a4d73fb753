package wire

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// The Row functions write rows of the history in JSON, with the names of the tables' columns.

// EventRow writes an event; id is its document's.
func EventRow(id string, e domain.Event) ([]byte, error) {
	state, err := json.Marshal(e.State)
	if err != nil {
		return nil, fmt.Errorf("encode the state of event %s: %w", id, err)
	}
	return row(&pb.EventRow{
		Id: id, Time: timeToProto(e.Time), Entity: string(e.Entity), EntityId: e.ID, Revision: bounded(int(e.Revision)),
		StatusBefore: e.From, StatusAfter: e.To, Cause: string(e.Cause), Reason: e.Reason, Person: e.By,
		DroneId: string(e.DroneID), OrderId: string(e.OrderID), MissionId: string(e.MissionID),
		DecisionId: string(e.DecisionID), CycleId: string(e.CycleID), State: string(state),
	})
}

// OrderRow writes an order that has ended.
func OrderRow(o domain.Order) ([]byte, error) {
	r := &pb.OrderRow{
		Id: string(o.ID), CreatedAt: timeToProto(o.CreatedAt), Revision: bounded(int(o.Revision)), Status: string(o.Status), Priority: o.Priority.String(),
		ProductType: o.ProductType, RequesterId: o.RequesterID, Delivery: positionToProto(o.Delivery), WeightKg: o.WeightKg, ColdChain: o.ColdChain,
		Deadline: timeToProto(o.Deadline), DeliveredAt: timeToProto(o.DeliveredAt), Late: o.Late, Attempts: bounded(o.Attempts),
		DroneId: string(o.AssignedDroneID), MissionId: string(o.AssignedMissionID), PlanningDepotId: string(o.PlanningDepotID),
	}
	if o.Pickup != nil {
		r.Pickup = positionToProto(*o.Pickup)
	}
	return row(r)
}

// MissionRow writes a mission that has ended.
func MissionRow(m domain.Mission) ([]byte, error) {
	r := &pb.MissionRow{
		Id: string(m.ID), StartTime: timeToProto(m.StartTime), Revision: bounded(int(m.Revision)), Status: string(m.Status), FailureReason: string(m.FailureReason),
		EndTime: timeToProto(m.EndTime), DroneId: string(m.DroneID), OrderIds: texts(m.OrderIDs),
		EstimatedBatteryPercent: m.EstimatedBatteryConsumption, EstimatedMinutes: m.EstimatedDurationMinutes,
		Stops: bounded(len(m.Route)), ReachedStops: bounded(m.ReachedStops),
		DecisionId: string(m.DecisionID), CycleId: string(m.CycleID),
	}
	return row(r)
}

// DecisionRow writes an entry of the ledger.
func DecisionRow(d domain.LedgerEntry) ([]byte, error) {
	return row(&pb.DecisionRow{
		Id: string(d.ID), AppliedAt: timeToProto(d.AppliedAt), Outcome: string(d.Outcome), Reason: d.Reason, Detail: d.Detail,
		DroneId: string(d.DroneID), MissionId: string(d.MissionID), OrderIds: texts(d.OrderIDs), CycleId: string(d.CycleID), DepotId: string(d.DepotID),
	})
}

// RefusalRow writes the record of refused messages.
func RefusalRow(r domain.Refusal) ([]byte, error) {
	return row(&pb.RefusalRow{
		Id: string(r.ID), RefusedAt: timeToProto(r.RefusedAt), Topic: r.Topic, Reason: r.Reason, Messages: bounded(max(r.Count, 1)),
		OrderId: string(r.OrderID), RequesterId: r.RequesterID,
	})
}

// row writes counts of 32 bits as numbers; protojson writes 64 bits as text.
func row(m proto.Message) ([]byte, error) {
	return compactJSON(protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}, m)
}
