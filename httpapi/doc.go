// Package httpapi shows the fleet to people, dashboards and outside optimizers
// over HTTP: entities, the optimizer's snapshot, health, readiness, metrics. To
// operators whose token says who they are it also offers the commands of
// app/operator.
//
// It must not import cmd, nor decide anything that policy should. It holds no
// state but the last readiness report.
//
// Every failure is a problem document of RFC 9457 that names the parameter and
// the fix: 400 for a request that cannot be right, 401 for one without a good
// token, 403 for one whose sender lacks the role, 404 for an entity or a path
// that does not exist, 405 for a method that does nothing there, 409 for a
// command that the fleet's rules refuse, 413 and 415 for a body that is none,
// 503 with Retry-After when the store or the issuer of tokens is out of reach,
// 500 when a document must be corrected by a person.
//
// Without an issuer of tokens it answers this machine alone, changes nothing,
// and must be kept on the loopback address or behind something that checks who
// asks. It speaks plain HTTP: tokens must travel through TLS, which a proxy or
// load balancer in front of it provides.
package httpapi
