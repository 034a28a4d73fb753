package main_test

import (
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// With the flag that says so, other machines reach the servers.
func TestEmulators_ListenEverywhereOnlyIfTold(t *testing.T) {
	p := dronefleet.Start(t, connect.Config{}, "emulators", "--firestore=0.0.0.0:0", "--pubsub=0.0.0.0:0", "--insecure-emulators")
	if hosts := p.Hosts(); strings.HasPrefix(hosts.FirestoreHost, "127.") || strings.HasPrefix(hosts.PubSubHost, "127.") {
		t.Errorf("listening on %s and %s", hosts.FirestoreHost, hosts.PubSubHost)
	}
	p.Interrupt()
}

// Clients find the two servers by the printed lines, and a data directory keeps their data.
func TestEmulators_ServeAndKeepTheirData(t *testing.T) {
	dir := t.TempDir()
	for round, want := range []string{"", "kept"} {
		p := dronefleet.Start(t, connect.Config{}, "emulators", "--firestore=127.0.0.1:0", "--pubsub=127.0.0.1:0", "--data-dir="+dir)
		// F-KIT-02: what other programs need is printed for a shell.
		if got, want := p.Find(p.Stdout, "export DRONEFLEET_PROJECT="), `dronefleet DRONEFLEET_DATABASE="(default)"`; got != want {
			t.Errorf("exports %s, want %s", got, want)
		}
		hosts := p.Hosts()
		logged := p.Find(p.Stderr, "emulators serving")
		for _, want := range []string{
			`"` + connect.FirestoreHost + `":"` + hosts.FirestoreHost + `"`, `"` + connect.PubSubHost + `":"` + hosts.PubSubHost + `"`, dir,
		} {
			if !strings.Contains(logged, want) {
				t.Errorf("logged %s, want %s in it", logged, want)
			}
		}
		clients, err := connect.Open(t.Context(), hosts, meter.New())
		if err != nil {
			t.Fatal(err)
		}
		if err := clients.Check(t.Context(), func(string) {}); err != nil {
			t.Fatal(err)
		}
		doc := clients.Firestore.Doc("notes/n1")
		snap, err := doc.Get(t.Context())
		if got, _ := snap.Data()["text"].(string); got != want {
			t.Errorf("round %d: document holds %q, want %q (%v)", round, got, want, err)
		}
		if _, err := doc.Set(t.Context(), map[string]any{"text": "kept"}); err != nil {
			t.Fatal(err)
		}
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
		p.Interrupt()
	}
}
