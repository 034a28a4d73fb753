// Package live keeps the fleet's present state in memory while somebody looks at it, and
// tells each viewer what changed since it last asked.
//
// All viewers share one session. The first viewer starts it, and it ends some time after the last
// one has left. A session follows open orders, active missions, cycles, depots and warehouses with
// Firestore's listeners; drones by the events of their changes of state, because their documents
// change with every report; positions by a temporary subscription to the telemetry topic; locks by
// reading them every few seconds. If the subscription cannot be created, it reads the drones
// periodically.
//
// A viewer has no queue. Changes are numbered, entities are kept in the order of their last
// change, and a viewer remembers the last number it was sent. A slow viewer therefore costs no
// more memory and gets the newest state of each entity. Removals are kept for a while; a viewer
// that is further behind starts again with a snapshot.
//
// Alerts are derived by a pure function of the state and the time. The package must not
// import httpapi or cmd.
package live
