// Package cli is what the commands share: connection flags, logging with Cloud
// Logging's field names, signals, output files, and errors of one line each.
//
// It must not import a use case.
package cli
