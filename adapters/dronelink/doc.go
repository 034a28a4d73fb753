// Package dronelink is the port between drones that connect to a gateway and the fleet, and
// the transports gRPC and WebSocket.
//
// A transport authenticates a connection (Identity), opens a session (Gateway.Open), gives it
// the drone's reports (Session.Report), and carries Messages down to the drone (Outlet). A
// broker of messages, which has connections of its own, has no sessions: it publishes reports
// one by one (Gateway.Publish) and acks its message when the Receipt says so.
//
// The package must not import app: the gateway's core is behind the interface Gateway. It
// fails by ending sessions, each with a Refusal that says why and what to do.
package dronelink
