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

const kindLink = "link message"

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
