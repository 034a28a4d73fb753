// Package restart runs again what should never end, such as a listener or a
// subscription, with pauses in between. It never fails: the caller logs what went wrong.
// It must not import anything else of this project.
package restart
