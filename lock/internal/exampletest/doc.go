// Package exampletest runs examples that need a server. Such an example cannot have a
// comment "Output:", because it would then fail on a machine without the server. It has a
// comment "Prints:" instead, and a test that finds a server calls Run.
//
// It is test support. It must not import the lock or a backend.
package exampletest
