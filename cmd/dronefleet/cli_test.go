package main_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
)

const (
	dronefleet   = clitest.Program("dronefleet")
	statemanager = clitest.Program("statemanager")
)

// A wrong command line exits with 2, a command that fails with 1.
func TestDronefleet_RefusesInOneLine(t *testing.T) {
	t.Parallel()
	hosts := connect.Config{}
	for _, c := range []struct {
		code  int
		args  string
		parts []string
	}{
		{2, "emulators --firestore=0.0.0.0:0", []string{"--firestore", "loopback"}},
		{2, "emulators --pubsub=0.0.0.0:0", []string{"pubsub (flag --pubsub)", "loopback", "--insecure-emulators"}},
		{2, "emulators --firestore=:0", []string{"firestore (flag --firestore)", "loopback", "--insecure-emulators"}},
		{2, "dev --pubsub-addr=0.0.0.0:0", []string{"pubsub-addr (flag --pubsub-addr)", "loopback"}},
		{2, "dev --firestore-addr=0.0.0.0:0", []string{"firestore-addr (flag --firestore-addr)", "loopback"}},
		{2, "dev --seed=-1", []string{"seed (flag --seed)", "0 or more"}},
		{2, "emulators --firestore=8081", []string{"firestore (flag --firestore)", "host:port"}},
		{1, "emulators --indexes=/does/not/exist", []string{"--indexes"}},
		{2, "dev --http-addr=0.0.0.0:8080", []string{"--http-addr", "without credentials; give a loopback address", "--insecure-http"}}, // dev has no flag for an issuer
		{2, "dev --speed=0", []string{"speed (flag --speed)", "1 or more"}},
		{2, "dev --incident=storm", []string{"incident (flag --incident)", "give one of mass-casualty"}},
		{2, "dev --duration=10s --incident=wind@10s", []string{"incident (flag --incident)", "--duration"}},
		{2, "dev --operator --http-addr=0.0.0.0:0 --insecure-http", []string{"operator (flag --operator)", "everybody who reaches 0.0.0.0:0", "loopback"}},
		{2, "dev --operator --http-addr=off", []string{"operator (flag --operator)", "needs the HTTP API"}},
		{2, "capacity --drones=0", []string{"drones (flag --drones)", "1 or more"}},
		{2, "dev --clock-skew=-2h", []string{"clock-skew (flag --clock-skew)", "at most 1h0m0s"}},
	} {
		dronefleet.Refuses(t, hosts, c.code, c.parts, strings.Fields(c.args)...)
	}
	// The error names the flag to change.
	dir, ends := t.TempDir(), []string{"emulators", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0"}
	for name, text := range map[string]string{"indexes.json": "{", "firestore": "", "second/pubsub": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ flag, value string }{
		{"--indexes", filepath.Join(dir, "missing.json")},
		{"--indexes", filepath.Join(dir, "indexes.json")},
		{"--data-dir", dir},
		{"--data-dir", filepath.Join(dir, "second")},
		{"--firestore", taken.Addr().String()},
		{"--pubsub", taken.Addr().String()},
	} {
		dronefleet.Refuses(t, hosts, 1, []string{"dronefleet: " + c.flag + ": "}, append(ends, c.flag+"="+c.value)...)
	}
	for _, c := range []struct{ flag, value string }{
		{"--data-dir", filepath.Join(dir, "second")},
		{"--firestore-addr", taken.Addr().String()},
		{"--pubsub-addr", taken.Addr().String()},
		{"--http-addr", taken.Addr().String()},
	} {
		dronefleet.Refuses(t, connect.Config{}, 1, []string{"dronefleet: " + c.flag + ": "}, "dev", "--duration=1s", c.flag+"="+c.value)
	}
}

// The servers' addresses are the command's result: it fails if it cannot print them.
func TestEmulators_FailWithoutTheirOutput(t *testing.T) {
	unwritable, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer unwritable.Close()
	cmd := dronefleet.Command(t, connect.Config{}, "emulators", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0")
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = unwritable, &errs
	_ = cmd.Run() // the exit code is checked below
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "dronefleet: write /dev/stdout: ") {
		t.Errorf("exit code %d, printed %q", code, errs.String())
	}
}

// One configuration file may serve every program, so a log level that one of them accepts
// is accepted by all.
func TestDronefleet_AcceptsTheLogLevelOfTheOtherPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte("project: p\nlog-level: WARN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dev", "emulators"} {
		if out, _ := dronefleet.Run(t, connect.Config{}, 0, name, "--config="+file, "--print-config"); !strings.Contains(out, "log-level: WARN # file ") {
			t.Errorf("%s: printed\n%s", name, out)
		}
	}
}

// The help shows the defaults of flags.
func TestHelp_ShowsDefaults(t *testing.T) {
	out, _ := dronefleet.Run(t, connect.Config{}, 0, "emulators", "--help")
	for _, part := range []string{`--firestore="127.0.0.1:8081"`, `--pubsub="127.0.0.1:8085"`} {
		if !strings.Contains(out, part) {
			t.Errorf("printed\n%s\nwant %q", out, part)
		}
	}
}
