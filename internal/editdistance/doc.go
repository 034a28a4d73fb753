// Package editdistance measures how far a misspelled name is from a known one. It must not
// import any other package of this module, and does not fail.
package editdistance
