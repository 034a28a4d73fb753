package cli_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

// All wrong settings are listed at once, and nothing was started.
func TestOptimizer_ListsEveryWrongSetting(t *testing.T) {
	for _, c := range []struct {
		environment, args []string
		want              string
	}{
		{
			[]string{"DRONEFLEET_INTERVAL=-1s", "DRONEFLEET_TRACE_SHARE=2", "FIRESTORE_EMULATOR_HOST=localhost"},
			[]string{"run", "--solve-limit=3m", "--lock-ttl=10", "--depot=D1", "--depot=a/b", "--http-addr=8081"},
			`optimizer: 8 settings cannot be used:
  firestore-host (variable FIRESTORE_EMULATOR_HOST): "localhost" is not an address; give host:port with a port from 1 to 65535, for example 127.0.0.1:8080
  trace-share (variable DRONEFLEET_TRACE_SHARE): "2" is out of range; give 0 or more, at most 1
  depot (flag --depot): "a/b" contains "/", which a document id cannot
  solve-limit (flag --solve-limit): "3m0s" is out of range; give more than 0s, at most 100s
  lock-ttl (flag --lock-ttl): "10" cannot be read; give a duration, such as 8s or 1m30s, 1s or more, at most 5m
  http-addr (flag --http-addr): "8081" is not an address; give host:port with a port from 0 to 65535, for example 127.0.0.1:8080
  interval (variable DRONEFLEET_INTERVAL): "-1s" is out of range; give more than 0s, at most 1h
  project (default): only one of FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST is set; set both to use emulators, or neither to use Google Cloud
`,
		},
		{
			[]string{"DRONEFLEET_DATABASE=a/b"}, []string{"once", "--project=p"},
			`optimizer: database (variable DRONEFLEET_DATABASE): "a/b" contains "/", which a document id cannot
`,
		},
		{
			[]string{"DRONEFLEET_DATABASE=a b"}, []string{"once", "--project=My Project"},
			`optimizer: 2 settings cannot be used:
  project (flag --project): "My Project" is not a Google Cloud project id; give --project=ID as "gcloud projects list" shows it, lower-case letters, digits and hyphens such as my-project
  database (variable DRONEFLEET_DATABASE): "a b" is not a Firestore database id; give --database=ID as "gcloud firestore databases list" shows it, (default) or 4 to 63 lower-case letters, digits and hyphens
`,
		},
		{ // the address may hold a password, which must not be printed
			nil, []string{"once", "--project=my-project", "--otlp-endpoint=collector:secret@host"},
			`optimizer: otlp-endpoint (flag --otlp-endpoint): is not the URL of a collector; give one such as http://localhost:4317
`,
		},
	} {
		cmd := exec.Command(clitest.Program("optimizer").Path(t), c.args...)
		cmd.Env = append([]string{"HOME=" + t.TempDir()}, c.environment...)
		out, err := cmd.CombinedOutput()
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit == nil || exit.ExitCode() != 2 {
			t.Errorf("%v: %v, want exit code 2", c.args, err)
		}
		if string(out) != c.want {
			t.Errorf("%v: printed\n%s\nwant\n%s", c.args, out, c.want)
		}
	}
}
