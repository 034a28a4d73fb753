// Package wal keeps the documents of an embedded Firestore on disk, in one bbolt
// file with a bucket per database. What it appends is on disk when Append
// returns: with Full after an fsync, surviving a power loss, with OS after the
// write reached the kernel, surviving the death of the process only.
//
// It keeps each document's newest state and the time of the last commit; older
// versions, transactions and locks do not survive. It knows no RPCs and no locks
// and must never import the server.
//
// Open fails when the file is in use by another process or its structure is
// damaged, Load when a value is, or when an earlier version wrote it: each bears a
// checksum. Append fails when the disk does; the store then refuses all further
// commits.
package wal
