package longtest

import (
	"bytes"
	"testing"
)

// What the gate relies on: a shortened test says so, and one that runs in full does not.
func TestFull_LogsWhatIsLeftToTheGate(t *testing.T) {
	for _, row := range []struct {
		value string
		size  int
		says  bool
	}{{"", 2, true}, {"1", 9, false}} {
		t.Setenv(Variable, row.value)
		log := &recorder{TB: t}
		if n := Size(log, "worlds", 2, 9); n != row.size {
			t.Errorf("%s=%s: %d worlds, want %d", Variable, row.value, n, row.size)
		}
		if said := bytes.Contains(log.said.Bytes(), []byte(Marker+"9 worlds instead of 2; ")); said != row.says {
			t.Errorf("%s=%s: logged %q", Variable, row.value, log.said.String())
		}
		if Only(log, "takes long"); log.skipped != row.says {
			t.Errorf("%s=%s: skipped %t", Variable, row.value, log.skipped)
		}
	}
}

// recorder keeps what a test would log and skip.
type recorder struct {
	testing.TB
	said    bytes.Buffer
	skipped bool
}

func (r *recorder) Helper()         {}
func (r *recorder) SkipNow()        { r.skipped = true }
func (r *recorder) Log(args ...any) { r.said.WriteString(args[0].(string)) }
