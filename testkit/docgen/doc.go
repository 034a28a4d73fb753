// Package docgen holds the generated sections of a document to what they are
// generated from. A section named NAME stands between the lines
//
//	<!-- begin generated: NAME -->
//	<!-- end generated: NAME -->
//
// or, in YAML, "# begin generated: NAME" and "# end generated: NAME".
//
// It is for tests and the gate, and imports nothing of the fleet.
package docgen
