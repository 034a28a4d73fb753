// Package domain holds the nouns of the fleet as plain values: drones, orders,
// missions, decisions, telemetry, and the states they can be in.
//
// It knows no store, no wire format, no clock and no rule of transition; those
// live in adapters and policy. It imports the standard library only, and the
// tables of Unicode's normal forms. Units are in the names or the types: degrees,
// percent of a full charge, kilometres per hour, kilograms, metres.
package domain
