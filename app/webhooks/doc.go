// Package webhooks tells other systems what becomes of orders, by the Standard Webhooks
// specification (https://www.standardwebhooks.com).
//
// One State Manager at a time sends, under a lock. It follows the events of orders and stores one
// delivery for each event and webhook that wants it; a cursor says up to when that is done. Each
// webhook has a target, which sends what waits: in order for each order, a few at once, again after
// a failure, and for a day at most. What waits is in Firestore and not in memory, so nothing is
// lost with a process, and a target that fails delays no other.
//
// A State Manager asks every few seconds whether there is a webhook. Without one it takes no lock
// and follows nothing.
//
// The package must not import httpapi, cmd or another package of app.
package webhooks
