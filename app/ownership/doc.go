// Package ownership decides which process of a fleet should plan which area.
//
// Each process is a member: it keeps a document with a heartbeat. Propose ranks the living members
// for each area by rendezvous hashing, so that all of them name the same owner without talking to
// each other, and few areas move when a member comes or goes. A bound on what each may have keeps
// chance from giving one four areas and another none. View tells which members live.
//
// A proposal grants nothing. Members may disagree for a moment, and one of them may be frozen. The
// area's fenced lock decides who owns it. The package is pure, and must not import adapters.
//
// # Terms
//
//   - member: a process that can own areas.
//   - owner: the member that holds the lock of an area.
//   - share: how many areas a member takes, relative to the others.
package ownership
