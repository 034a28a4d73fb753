// Package api holds what other makers build against: the AsyncAPI document of the fleet's
// messages, with the rules that conformance tests cite. Its tests hold the document to the
// wire format and to the reasons of refusals.
//
// It must not import any other package of this project.
package api
