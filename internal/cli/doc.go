// Package cli is what the commands have in common: connection flags, logging
// in Cloud Logging's field names, signals, and one clear line for every error,
// or one for each setting that is wrong.
//
// It must not import a use case.
package cli
