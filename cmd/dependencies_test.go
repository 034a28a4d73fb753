// Package cmd_test checks what the binaries are linked from.
package cmd_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notInProduction lists what a production binary must not link: test servers and their
// store, simulation, documents, and test helpers.
var notInProduction = []string{
	"github.com/dronefleet/dronefleet/emulator",
	"github.com/dronefleet/dronefleet/sim",
	"github.com/dronefleet/dronefleet/docs",
	"github.com/dronefleet/dronefleet/testkit/clitest",
	"github.com/dronefleet/dronefleet/testkit/emutest",
	"go.etcd.io/bbolt",
	"testing",
}

// linkedTestCode lists the packages under notInProduction that a command links.
func linkedTestCode(t *testing.T, command string) (found []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "./"+command).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("go list names only %d packages of %s", len(packages), command)
	}
	for _, path := range packages {
		if slices.ContainsFunc(notInProduction, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") }) {
			found = append(found, path)
		}
	}
	return found
}

// F-API-02: production links no test server and no simulator.
func TestProductionBinaries_LinkNoTestServer(t *testing.T) {
	for _, command := range []string{"statemanager", "optimizer", "gateway", "locktool"} {
		if found := linkedTestCode(t, command); len(found) > 0 {
			t.Errorf("%s links %s", command, strings.Join(found, ", "))
		}
	}
}

// The check above can fail: dronefleet does link the servers, their store and the
// simulation.
func TestProductionBinaries_CheckFindsWhatDronefleetLinks(t *testing.T) {
	found := linkedTestCode(t, "dronefleet")
	for _, want := range []string{
		"github.com/dronefleet/dronefleet/emulator/firestore", "github.com/dronefleet/dronefleet/emulator/pubsub",
		"github.com/dronefleet/dronefleet/sim/devrun", "go.etcd.io/bbolt",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not found in dronefleet: %q", want, found)
		}
	}
}

// beyond lists the packages that a lock backend is linked from and that are Google's, or
// ours and not the lock library's.
func beyond(t *testing.T, backend string) (found []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "../lock/"+backend).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		within := func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") }
		ours := within("github.com/dronefleet/dronefleet") && !within("github.com/dronefleet/dronefleet/lock")
		if ours || within("cloud.google.com") || within("google.golang.org") {
			found = append(found, path)
		}
	}
	return found
}

// A program that imports a backend of the lock gets its store's client, and nothing of
// Google's or the fleet's.
func TestLockBackends_StandAlone(t *testing.T) {
	folders, err := filepath.Glob("../lock/*lock")
	if err != nil || len(folders) < 3 {
		t.Fatalf("backends %q, %v", folders, err)
	}
	for _, folder := range folders {
		backend := filepath.Base(folder)
		switch found := beyond(t, backend); {
		case backend == "firestorelock" && len(found) < 10:
			t.Errorf("the check finds only %q in firestorelock", found)
		case backend != "firestorelock" && len(found) > 0:
			t.Errorf("%s is linked from %s", backend, strings.Join(found, ", "))
		}
	}
}
