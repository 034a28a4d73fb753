// Package mqttlink is the transport for drones behind an MQTT broker that the fleet's operator
// runs. The gateway is a client of the broker: it publishes the reports that come on
// fleet/{drone}/telemetry, and sends commands to fleet/{drone}/missions. The broker decides who
// may use which topic; see docs/mqtt.md.
//
// A report is acked to the broker only once Pub/Sub has it. If Pub/Sub does not answer, reports
// stay in the broker; if the broker does not, commands stay in Pub/Sub. All gateways share one
// subscription of the broker and one of Pub/Sub, so each message passes through one of them.
//
// The package must not import app: the gateway's core is behind the interface Fleet.
package mqttlink
