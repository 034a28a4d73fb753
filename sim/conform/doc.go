// Package conform examines programs of other makers: it plays the fleet's side to a drone, an
// optimizer or a hospital, and says rule by rule what it got wrong. The rules are those of
// api/asyncapi.yaml.
//
// The examination of a drone is a script over a Line, with the fleet's time from the line, so that
// tests fly through it in no time. Those of optimizers and hospitals run the real State Manager on
// embedded servers and read its answers.
//
// The package must not import package policy or the State Manager's handlers to judge a drone:
// a judge that shares code with what it explains finds nothing. It must not be linked into
// production binaries.
package conform
