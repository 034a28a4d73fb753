// Package terminal prints text from others on a terminal, escaped and aligned in columns.
// It must not import any other package of this module. It fails only if the writer does.
package terminal
