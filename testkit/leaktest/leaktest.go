package leaktest

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is far longer than a goroutine that was told to end needs.
const patience = time.Minute

// Main runs the tests of a package and ends the process. It fails when they leave goroutines behind.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if code == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find returns an error that names the goroutines that are still there after a minute.
func Find(options ...goleak.Option) error {
	return find(time.Now().Add(patience), append(options,
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"), // started by an import
		// Pub/Sub's client leaves it behind when a stream ends: its tickers are stopped before it.
		goleak.IgnoreAnyFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler")))
}

func find(deadline time.Time, options []goleak.Option) error {
	for {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
