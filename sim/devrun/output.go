package devrun

import (
	"io"
	"sync"
)

// output lets the parts of a run write whole lines to one place.
type output struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}
