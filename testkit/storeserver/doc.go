// Package storeserver starts Redis, PostgreSQL and other servers that are installed on the
// machine, for tests. A test whose server is missing is skipped. It also runs the examples and
// the comparisons that need such a server.
//
// It is test support. It must not import the lock or a backend.
package storeserver
