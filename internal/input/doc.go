// Package input reads the bytes of every file and message. It checks size, UTF-8, byte
// order mark, and what JSON, YAML and CSV have in common: an object gives each name once,
// in whatever case, and nothing is nested deeper than MaxDepth. Nearest guesses which name
// a misspelled one stands for.
//
// It must not import any other package of this module. An error is Problems, or one of
// the operating system.
package input
