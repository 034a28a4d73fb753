package dronelink

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// down writes a message for a drone.
func down(m Message) *pb.GatewayMessage {
	switch {
	case m.Welcome != nil:
		return &pb.GatewayMessage{Message: &pb.GatewayMessage_Hello{Hello: &pb.GatewayHello{
			SessionId: m.Welcome.Session, ServerTime: timestamppb.New(m.Welcome.At),
		}}}
	case m.Command != nil:
		return &pb.GatewayMessage{Message: &pb.GatewayMessage_Command{Command: wire.CommandMessage(*m.Command)}}
	case m.Refusal != nil:
		r := &pb.Refusal{Sequence: m.Refusal.Sequence, Reason: string(m.Refusal.Reason), Text: m.Refusal.Text, Final: m.Refusal.Final}
		if m.Refusal.RetryAfter > 0 {
			r.RetryAfter = durationpb.New(m.Refusal.RetryAfter)
		}
		return &pb.GatewayMessage{Message: &pb.GatewayMessage_Refusal{Refusal: r}}
	case m.Resume != nil:
		r := &pb.Resume{CompletedStops: int32(min(m.Resume.CompletedStops, wire.MaxWaypointsPerDecision))}
		if m.Resume.Mission != nil {
			r.Mission = wire.MissionMessage(*m.Resume.Mission)
		}
		return &pb.GatewayMessage{Message: &pb.GatewayMessage_Resume{Resume: r}}
	}
	return &pb.GatewayMessage{Message: &pb.GatewayMessage_Ack{Ack: &pb.Ack{Sequence: m.Ack}}}
}

// readHello checks a drone's hello.
func readHello(m *pb.DroneHello) (Hello, error) {
	h := Hello{
		Drone: domain.DroneID(m.GetDroneId()), Mission: domain.MissionID(m.GetMissionId()),
		Revision: int(m.GetMissionRevision()), CompletedStops: int(m.GetCompletedStops()),
		SupportsAmendments: m.GetSupportsAmendments(), SupportsStandby: m.GetSupportsStandby(),
	}
	if err := domain.CheckID(m.GetDroneId()); err != nil {
		return Hello{}, invalidHello("drone_id", err)
	}
	if h.Mission != "" {
		if err := domain.CheckID(m.GetMissionId()); err != nil {
			return Hello{}, invalidHello("mission_id", err)
		}
	}
	return h, nil
}

func invalidHello(field string, err error) error {
	return &Refusal{Reason: Invalid, Text: fmt.Sprintf("hello: %s %s", field, err), Final: true}
}
