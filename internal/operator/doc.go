// Package operator is what the operators' commands do: list and change orders
// and drones, review dead letters, show locks, and tell the story of one
// entity. It reads and writes through the store and its policies like everybody
// else; it has no rule of its own and must not import cmd.
//
// Everything goes to one writer, as aligned tables or as JSON. A command that
// cannot be carried out returns an error of one line; one that finds nothing
// says so and succeeds, unless it was asked for something by name.
package operator
