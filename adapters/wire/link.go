package wire

import (
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// CommandMessage is a command as the drone link carries it.
func CommandMessage(c domain.Command) *pb.MissionCommand { return commandToProto(c) }

// MissionMessage is a mission as the drone link carries it.
func MissionMessage(m domain.Mission) *pb.Mission { return missionToProto(m) }

const (
	kindLink      = "link message"
	kindLinkState = "link state"
)

var linkStatuses = newEnumTable[pb.LinkStatus](domain.LinkStatuses...)

// EncodeLinkState writes a LinkState message.
func EncodeLinkState(s domain.LinkState, f Format) (data []byte, attrs map[string]string, err error) {
	return marshal(kindLinkState, &pb.LinkState{
		DroneId: string(s.DroneID), SessionId: s.Session, Status: linkStatuses.proto(s.Status), Time: timeToProto(s.At),
	}, f)
}

// DecodeLinkState reads a LinkState message.
func DecodeLinkState(data []byte, attrs map[string]string) (domain.LinkState, error) {
	var m pb.LinkState
	problems, err := unmarshal(kindLinkState, data, attrs, &m)
	if err != nil {
		return domain.LinkState{}, err
	}
	c := newChecker(problems)
	c.id("drone_id", m.GetDroneId())
	c.text("session_id", m.GetSessionId())
	linkStatuses.check(c, "status", m.GetStatus())
	if m.GetStatus() == pb.LinkStatus_LINK_STATUS_UNSPECIFIED {
		c.add("status", "is missing; give %s", oneOf(linkStatuses.names))
	}
	s := domain.LinkState{
		DroneID: domain.DroneID(m.GetDroneId()), Session: m.GetSessionId(), Status: linkStatuses.fromProto(m.GetStatus()), At: c.requiredTime("time", m.GetTime()),
	}
	if err := c.err(kindLinkState); err != nil {
		return domain.LinkState{}, err
	}
	return s, nil
}

// DecodeLinkJSON fills m with a message of the drone link in JSON, which is read as leniently
// as other messages are.
func DecodeLinkJSON(data []byte, m *pb.DroneMessage) error {
	problems, err := unmarshalJSON(kindLink, data, m)
	if err != nil {
		return err
	}
	return newChecker(problems).err(kindLink)
}

// EncodeLinkJSON writes a message of the drone link in JSON.
func EncodeLinkJSON(m *pb.GatewayMessage) ([]byte, error) {
	return compactJSON(protojson.MarshalOptions{}, m)
}

// ContentType is the value of AttrContentType for a form.
func (f Format) ContentType() string {
	if f == JSON {
		return contentTypeJSON
	}
	return contentTypeProtobuf
}

// EncodeLink writes a message of the drone link in either form, and returns its content type.
func EncodeLink(m *pb.GatewayMessage, f Format) (data []byte, contentType string, err error) {
	data, attrs, err := marshal(kindLink, m, f)
	return data, attrs[AttrContentType], err
}

// DecodeHello reads a drone's hello in either form.
func DecodeHello(data []byte, contentType string) (*pb.DroneHello, error) {
	m := new(pb.DroneHello)
	problems, err := unmarshal(kindLink, data, map[string]string{AttrContentType: contentType}, m)
	if err != nil {
		return nil, err
	}
	return m, newChecker(problems).err(kindLink)
}
