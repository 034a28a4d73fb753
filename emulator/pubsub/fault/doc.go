// Package fault decides which faults the embedded Pub/Sub server injects.
//
// A decision is a hash of the seed, the kind of fault and the number of the
// message or delivery it concerns: the same run meets the same faults however
// its goroutines are scheduled, and a message keeps its fate when others are
// added. Without a plan nothing is injected and a decision costs one atomic
// load.
//
// The package only decides; the server acts. It must import nothing of the
// server and never fails.
package fault
