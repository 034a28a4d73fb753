// Package live keeps the fleet's present state in memory while somebody looks at it, and
// tells each viewer what changed since it last asked.
//
// A Feed has one session however many viewers there are, and none while there are none:
// the first viewer starts it, and it ends some time after the last has left. A session
// follows open orders, active missions, cycles, depots and warehouses with Firestore's
// listeners; drones, whose documents change with every report, by the events that commit
// with each change of their state; positions by a temporary subscription of the telemetry
// topic; locks by asking every few seconds. Where the subscription cannot be created,
// the drones are read again at a slow pace.
//
// A viewer has no queue. Every change has a number, entities are kept in the order of
// their last change, and a viewer remembers the last number that it was told. However
// slow it is, it costs no more memory, and gets the newest state of each entity. Removals
// are kept for a while; a viewer that missed one of those forgotten starts again with a
// snapshot.
//
// Alerts are derived by a pure function of the state and the time. The package must not
// import httpapi or cmd.
package live
