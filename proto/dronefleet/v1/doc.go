// Package dronefleetv1 is the generated Go code of the wire format: telemetry,
// orders, decisions, missions and snapshots as protobuf messages. Field numbers
// and enum values are fixed (F-WIRE-01); "buf breaking" holds them.
//
// Only adapters/wire and programs that speak to the fleet from outside import it.
// It must not import any other package of this module.
package dronefleetv1
