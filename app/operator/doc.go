// Package operator implements the operators' commands: list and change orders,
// drones, missions and places, review dead letters, publish messages, acknowledge alerts,
// show and break locks, and print the history of one entity. Commands changes the fleet,
// for the command line and the HTTP API alike. Desk serves the command line and prints.
// Both read and write through the store and its policies; they contain no rules and must
// not import cmd or httpapi.
//
// Desk prints to one writer, as aligned tables or as JSON. A failed command returns an error of one
// line. A command that finds nothing says so and succeeds, unless it was asked for a named entity.
package operator
