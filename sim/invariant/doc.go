// Package invariant checks a fleet's history (events, final documents, ledger and
// the messages confirmed to their senders) against rules that must always hold:
//
//	I1  no drone and no order is in two ACTIVE missions at any time
//	I2  every status change is legal
//	I3  no order is lost
//	I4  a drone's lastUpdate never goes back
//	I5  the fences of applied decisions never go back
//	I6  each decision has one outcome
//	I7  an applied decision is mission, drone and all orders, or nothing
//	I8  the events fold to the documents
//	I9  every acknowledged message has its effect or a recorded reason
//	I10 no parcel that was put down is sent again
//	I11 a delivered order was picked up and put down where its stops had to be
//	I12 no decision is about a drone that is not registered, retired, due or of another identity
//
// Where samples were taken of what the cycles of all areas read, it also checks that each
// order that waited was read by one area, not by two and not by none (F-ARE-04). Where it knows the
// drones' top speed, it checks that no order was delivered sooner than possible (F-SND-03).
//
// The package has its own tables of what is legal and must not import policy or an
// adapter: otherwise a mistake there would be legal here too. It imports domain
// only, reads no clock and changes nothing. It never fails: whatever is wrong,
// missing pieces included, is a Violation.
package invariant
