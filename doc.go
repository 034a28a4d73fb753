// Package dronefleet is the root of DroneFleet, the state manager of a medical
// drone fleet. It holds no code; see README.md for the map.
package dronefleet
