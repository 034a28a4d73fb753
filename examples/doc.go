// Package examples holds programs of other makers, each in one file, to copy. Its Go programs are run
// with "go run FILE", and so are built into nothing.
//
// They must not import anything of the fleet but the generated messages.
package examples
