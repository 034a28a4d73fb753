// Package restart restarts what should never end, such as a listener or a subscription,
// with a pause before each start. It never fails: the caller logs what went wrong. It must
// not import any other package of this module.
package restart
