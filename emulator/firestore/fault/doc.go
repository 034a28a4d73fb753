// Package fault injects faults into an embedded Firestore. Rules say which requests,
// and which writes to the data directory, fail, wait, lose their connection or
// crash the process, and at which stage. Rules are deterministic: they count
// matches or draw from a seeded source.
//
// It knows requests only by name and must not import the server, the store or the
// lock table. The server asks it at every stage what to do. A nil *Injector injects
// nothing. Nothing here fails.
package fault
