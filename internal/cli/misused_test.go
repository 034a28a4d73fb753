package cli

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/lock"
)

// The error of a wrong command line points to the help of the command it is about.
func TestMisused_NamesTheCommand(t *testing.T) {
	var grammar struct {
		Orders struct {
			List struct{} `cmd:""`
			Hold struct {
				Order  string `arg:""`
				Reason string `required:""`
			} `cmd:""`
		} `cmd:""`
	}
	parser, err := config.New(&grammar, kong.Name("statemanager"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"orders", "hold", "O-17"}, "statemanager orders hold"},
		{[]string{"orders", "hold", "--reason=ward"}, "statemanager orders hold"},
		{[]string{"orders", "hold", "O-17", "--resaon=ward"}, "statemanager orders hold"},
		{[]string{"orders", "list", "O-17"}, "statemanager orders list"},
		{[]string{"orders"}, "statemanager orders"},
		{[]string{"orders", "fly"}, "statemanager orders"},
		{[]string{"order"}, "statemanager"},
		{nil, "statemanager"},
	} {
		_, err := parser.Parse(c.args)
		if err == nil {
			t.Errorf("%v is accepted", c.args)
			continue
		}
		if got := misused("statemanager", err); got != c.want {
			t.Errorf("%v: %v: see %q, want %q", c.args, err, got+" --help", c.want+" --help")
		}
	}
}

// F-DLQ-01: an error that quotes what others have sent is one line without control
// characters.
func TestOneLine_IsOneLineOfPrintableText(t *testing.T) {
	err := errors.Join(errors.New("message \x1b[2Jm1\r"), errors.New("order\tO1\u009b31m"))
	if got, want := oneLine(err), "message \uFFFD[2Jm1 ; order O1\uFFFD31m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A connection that failed says why, although the lock library's errors leave it out.
func TestFail_SaysWhyAConnectionFailed(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	hidden := &lock.Error{Op: "lookup", Code: lock.CodeServiceUnavailable, Err: refused}
	for _, c := range []struct {
		err  error
		want string
	}{
		{hidden, "lock: lookup: ServiceUnavailable (dial tcp: connection refused)"},
		{fmt.Errorf("read depots: %w", refused), "read depots: dial tcp: connection refused"},
		{errors.New("no depot"), "no depot"},
	} {
		if got := withNetworkCause(c.err).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
