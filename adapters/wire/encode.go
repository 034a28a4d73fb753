package wire

import "github.com/dronefleet/dronefleet/domain"

// The Encode functions write a payload and the attribute that names its format. They
// fail on text that is not UTF-8 and on payloads larger than MaxBytes.

// EncodeTelemetry writes a DroneTelemetry message.
func EncodeTelemetry(t domain.Telemetry, f Format) (data []byte, attrs map[string]string, err error) {
	return marshal(kindTelemetry, telemetryToProto(t), f)
}

// EncodeOrder writes an Order message that requests or cancels.
func EncodeOrder(r domain.OrderRequest, f Format) (data []byte, attrs map[string]string, err error) {
	return marshal(kindOrder, orderRequestToProto(r), f)
}

// EncodeDecision writes a MissionAssignment message.
func EncodeDecision(d domain.Decision, f Format) (data []byte, attrs map[string]string, err error) {
	return marshal(kindDecision, decisionToProto(d), f)
}

// EncodeCommand writes a MissionCommand message, with the drone in an attribute.
func EncodeCommand(c domain.Command, f Format) (data []byte, attrs map[string]string, err error) {
	data, attrs, err = marshal(kindCommand, commandToProto(c), f)
	if err == nil {
		attrs[AttrDrone] = string(c.Mission.DroneID)
	}
	return data, attrs, err
}
