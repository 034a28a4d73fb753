// Package postgreslock keeps leases in PostgreSQL.
//
// It must not import anything of this module but the lock package.
package postgreslock
