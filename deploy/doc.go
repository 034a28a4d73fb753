// Package deploy holds what the fleet needs of Google Cloud. The index
// configuration is one source for the real database and for the embedded one,
// so that a query which production would refuse fails at home first.
//
// It must not import anything of the fleet; only its tests do.
package deploy
