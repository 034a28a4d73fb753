// Package httpapi shows the fleet to people, dashboards and outside optimizers over
// HTTP: entities, the optimizer's snapshot, health, readiness, metrics. Callers with
// the role operator may also send the commands of app/operator. Each resource has a file
// with its paths, bodies and answers, such as orders.go; endpoints.go puts them together.
//
// It must not import cmd or decide what a policy should. It caches only the last readiness, recent
// answers and why orders wait. It also counts each caller's requests.
//
// Every answer that is not a success is a problem document of RFC 9457, which names
// the parameter and the fix: 307 for a path with empty or dot segments, 400 for a
// request that cannot be right, 401 without a valid token, 403 without the role, 404
// for an entity or path that does not exist, 405 for a method that is not allowed,
// 409 for a command that a policy rejects, 410 for a time whose state is no longer kept,
// 413, 415 and 431 for a body or header that is too large or of the wrong type, 429 for
// a caller above its limit, 503 with Retry-After when the store or the token issuer does
// not answer, 500 when a person must correct a document.
//
// Without credentials (Access) it is read-only. It must then listen on the loopback
// address, or behind something that checks callers. It speaks plain HTTP: a proxy or load
// balancer in front must provide TLS, because tokens must not travel in clear text.
package httpapi
