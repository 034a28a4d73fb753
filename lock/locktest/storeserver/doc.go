// Package storeserver starts Redis and PostgreSQL for one test, for programs that keep
// locks there. A test whose server is not installed is skipped.
//
// It is test support. It must not import a backend.
package storeserver
