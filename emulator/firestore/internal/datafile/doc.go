// Package datafile keeps the documents of an embedded Firestore in one bbolt
// file, with a bucket per database. It keeps the newest state of each document
// and the time of each database's last commit. Older versions, transactions and
// locks do not survive.
//
// Save returns once a batch of commits is durable: with fsync it survives a power
// loss, without it only the death of the process.
//
// Every record has a checksum, and a summary of all records shows whether one is
// missing or out of date. Damage is an error and is never served.
//
// Open fails when the file is in use, empty or structurally damaged. Load fails
// when a record is damaged or missing, or was written in an earlier format. The
// errors name the file and, where it is known, the record. Save fails when the
// disk does; the store then refuses all further commits.
//
// The package knows no RPCs and no locks and must not import the server.
package datafile
