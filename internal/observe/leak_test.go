package observe_test

import (
	"testing"

	"go.uber.org/goleak"
)

// A dead collector leaves no goroutine behind. The ignored goroutines are Google's: one
// that lives as long as the process, and one that the Pub/Sub client leaks for each
// subscription it has received from.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler"))
}
