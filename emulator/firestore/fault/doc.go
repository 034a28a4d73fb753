// Package fault makes an embedded Firestore misbehave on purpose: rules say which
// requests, and the log writes behind them, are failed, delayed, held up, cut off
// or crashed on, and at which stage. Rules are deterministic: they count, or draw
// from a seeded source.
//
// It knows requests only by name and must never import the server, the store or
// the lock table; the server asks it at every stage what to do. A nil *Injector
// does nothing.
package fault
