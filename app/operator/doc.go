// Package operator is what the operators' commands do: list and change orders
// and drones, review dead letters, show locks, and tell the story of one
// entity. Commands is what changes the fleet, for the command line and the HTTP
// API alike; Desk is the command line's, and prints. Both read and write through
// the store and its policies like everybody else; they have no rule of their own
// and must not import cmd.
//
// Everything the desk says goes to one writer, as aligned tables or as JSON. A
// command that cannot be carried out returns an error of one line; one that
// finds nothing says so and succeeds, unless it was asked for something by name.
package operator
