// Package membership keeps a process among the members that share a fleet's areas: it writes a
// heartbeat, polls the others, and leaves. Its callers decide which areas a member takes; see package
// ownership.
//
// It must not import adapters.
package membership
