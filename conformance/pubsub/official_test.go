package conformance

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// official is the address of Google's Pub/Sub emulator: the one that
// PUBSUB_OFFICIAL_EMULATOR names, else one started for this test when the
// Google Cloud CLI has it. Without either the test is skipped.
func official(t *testing.T) (addr string) {
	t.Helper()
	if addr := os.Getenv("PUBSUB_OFFICIAL_EMULATOR"); addr != "" {
		return addr
	}
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		t.Skip("no official emulator: PUBSUB_OFFICIAL_EMULATOR is unset and gcloud is not installed")
	}
	root, err := exec.Command(gcloud, "info", "--format=value(installation.sdk_root)").Output()
	if err != nil {
		t.Skipf("no official emulator: gcloud info: %v", err)
	}
	binary := filepath.Join(strings.TrimSpace(string(root)), "platform/pubsub-emulator/bin/cloud-pubsub-emulator")
	if _, err := os.Stat(binary); err != nil {
		t.Skip("no official emulator: the gcloud component pubsub-emulator is not installed")
	}
	return launch(t, binary)
}

// launch starts the emulator on a free port and waits until it listens.
func launch(t *testing.T, binary string) (addr string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(addr)
	emulator := exec.Command(binary, "--host=127.0.0.1", "--port="+port)
	emulator.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the launcher is a script that starts Java
	log, err := emulator.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	emulator.Stdout = nil
	if err := emulator.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		lines := bufio.NewScanner(log)
		for announced := false; lines.Scan(); {
			if !announced && strings.Contains(lines.Text(), "listening on "+port) {
				announced = true
				close(listening)
			}
		}
	})
	t.Cleanup(func() {
		_ = syscall.Kill(-emulator.Process.Pid, syscall.SIGKILL)
		wg.Wait()
		_ = emulator.Wait()
	})
	select {
	case <-listening:
	case <-time.After(time.Minute):
		t.Fatal("the official emulator did not start within a minute")
	}
	return addr
}
