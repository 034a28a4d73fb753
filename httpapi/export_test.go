package httpapi

import "time"

// Hurry makes a listener give its clients less time, for tests of what happens
// when it is up.
func (l *Listener) Hurry(header, read time.Duration) { l.bounds.header, l.bounds.read = header, read }
