package conformance

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// officialEmulator finds or starts Google's emulator, once for all tests.
type officialEmulator struct {
	once    sync.Once
	addr    string
	missing string // why there is none
	broken  error  // why an installed one does not start
	process *exec.Cmd
	logging sync.WaitGroup
}

var google officialEmulator

// official is the address of Google's Pub/Sub emulator: the one that
// PUBSUB_OFFICIAL_EMULATOR names, else one started for these tests, in the gate and when the
// Google Cloud CLI has it. Without either the test is skipped.
func official(t *testing.T) (addr string) {
	t.Helper()
	if os.Getenv("PUBSUB_OFFICIAL_EMULATOR") == "" {
		longtest.Only(t, "starts the official emulator")
	}
	google.once.Do(google.find)
	if google.broken != nil {
		t.Fatalf("official Pub/Sub emulator: %v", google.broken)
	}
	if google.missing != "" {
		t.Skip("no official emulator: " + google.missing)
	}
	return google.addr
}

func (o *officialEmulator) find() {
	if o.addr = os.Getenv("PUBSUB_OFFICIAL_EMULATOR"); o.addr != "" {
		return
	}
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		o.missing = "PUBSUB_OFFICIAL_EMULATOR is unset and gcloud is not installed"
		return
	}
	root, err := exec.Command(gcloud, "info", "--format=value(installation.sdk_root)").Output()
	if err != nil {
		o.missing = "gcloud info: " + err.Error()
		return
	}
	launcher := filepath.Join(strings.TrimSpace(string(root)), "platform/pubsub-emulator/bin/cloud-pubsub-emulator")
	if _, err := os.Stat(launcher); err != nil {
		o.missing = "the gcloud component pubsub-emulator is not installed"
		return
	}
	if _, err := exec.LookPath("java"); err != nil {
		o.missing = "java is not installed"
		return
	}
	o.broken = o.start(launcher)
}

// start starts the emulator on a free port and waits until it listens.
func (o *officialEmulator) start(launcher string) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o.addr = free.Addr().String()
	_, port, _ := net.SplitHostPort(o.addr)
	if err := free.Close(); err != nil {
		return err
	}
	process := exec.Command(launcher, "--host=127.0.0.1", "--port="+port)
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the launcher is a script that starts Java
	log, err := process.StderrPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	o.process = process
	listening := make(chan struct{})
	o.logging.Go(func() {
		lines := bufio.NewScanner(log)
		for announced := false; lines.Scan(); {
			if !announced && strings.Contains(lines.Text(), "listening on "+port) {
				announced = true
				close(listening)
			}
		}
	})
	select {
	case <-listening:
		return nil
	case <-time.After(time.Minute):
		return errors.New("the emulator did not start within a minute")
	}
}

// stop ends what start started.
func (o *officialEmulator) stop() {
	if o.process == nil {
		return
	}
	_ = syscall.Kill(-o.process.Process.Pid, syscall.SIGKILL)
	o.logging.Wait()
	_ = o.process.Wait() // killed: its status says nothing
}
