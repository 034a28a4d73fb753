// Package serverproc starts servers that are installed on the machine, on a free port and
// with a folder of their own, for one test. A test whose server is missing is skipped.
//
// It is test support. It must not import the lock or a backend.
package serverproc
