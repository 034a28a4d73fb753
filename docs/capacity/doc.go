// Package capacity says what a fleet of a given size costs in Firestore and
// Pub/Sub: a formula over measured costs per message and over what the code
// reads and writes by design. It renders the table of docs/capacity.md, and its
// tests hold the measured figures to what a fleet uses today.
//
// It is arithmetic and must not import any of the fleet; only its tests do.
package capacity
