// Package leaktest fails a package whose tests leave goroutines behind. It waits for them for longer
// than goleak does, which is half a second: on a busy machine a closed connection ends later.
//
// It is for tests and must not import any other package of this project.
package leaktest
