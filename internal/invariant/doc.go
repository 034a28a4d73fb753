// Package invariant checks a fleet's history against the rules that must hold
// whatever happened: no drone and no order in two missions, no order lost, no
// clock and no fence going back, every event folding to the documents.
package invariant
