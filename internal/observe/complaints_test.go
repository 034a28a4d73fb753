package observe

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// F-OBS-01: a collector that is down does not flood the log: only the first failure of
// each minute is logged.
func TestComplaints_LogsOneFailureAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		c := &complaints{log: slog.New(slog.NewTextHandler(&logged, nil))}
		for i, says := range []bool{true, false, false, true, false} {
			logged.Reset()
			c.Handle(errors.New("nobody there"))
			if said := strings.Contains(logged.String(), "nobody there"); said != says {
				t.Errorf("after %v the log says %q", time.Duration(i)*20*time.Second, &logged)
			}
			time.Sleep(20 * time.Second)
		}
	})
}
