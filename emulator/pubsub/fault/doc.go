// Package fault decides which faults the embedded Pub/Sub server injects.
//
// A decision is a hash of the seed, the kind of fault and the number of the message
// or delivery that it concerns. The same run meets the same faults however its
// goroutines are scheduled, and adding messages does not change the faults of the
// others. Without a plan nothing is injected, and a decision is one atomic load.
//
// The package only decides; the server acts. It must import nothing of the
// server and never fails.
package fault
