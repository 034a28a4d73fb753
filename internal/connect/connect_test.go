package connect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// A given value beats the environment, and there the first variable that is not empty
// counts.
func TestConfig_FromEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		connect.FirestoreHost: "fs:1", connect.PubSubHost: "ps:2", "GOOGLE_CLOUD_PROJECT": "first", "GCLOUD_PROJECT": "second",
	} {
		t.Setenv(name, value)
	}
	want := connect.Config{FirestoreHost: "fs:1", PubSubHost: "ps:2", Project: "first"}
	if got := (connect.Config{}).FromEnvironment(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	want = connect.Config{FirestoreHost: "given:3", PubSubHost: "ps:2", Project: "second"}
	if got := (connect.Config{FirestoreHost: "given:3"}).FromEnvironment(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F-API-02: there is no fallback; the error names what is missing or malformed.
func TestConfig_ValidateNamesWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		connect.Config
		want string
	}{
		"nothing at all":      {connect.Config{}, "GOOGLE_CLOUD_PROJECT"},
		"only one emulator":   {connect.Config{FirestoreHost: "h:1"}, "PUBSUB_EMULATOR_HOST"},
		"half, with project":  {connect.Config{PubSubHost: "h:1", Project: "p"}, "FIRESTORE_EMULATOR_HOST"},
		"project alone":       {connect.Config{Project: "p"}, ""},
		"both emulators":      {connect.Config{FirestoreHost: "h:1", PubSubHost: "h:2"}, ""},
		"emulators, project":  {connect.Config{FirestoreHost: "h:1", PubSubHost: "h:2", Project: "p"}, ""},
		"emulators, any ids":  {connect.Config{FirestoreHost: "h:1", PubSubHost: "h:2", Project: "My Project", Database: "a b"}, ""},
		"project's name":      {connect.Config{Project: "My Project"}, `"My Project" is not a Google Cloud project id`},
		"project with domain": {connect.Config{Project: "example.com:my-project"}, ""},
		"number of a project": {connect.Config{Project: "123456789012"}, ""},
		"project of 30":       {connect.Config{Project: "p" + strings.Repeat("-", 28) + "1"}, ""},
		"project of 31":       {connect.Config{Project: "p" + strings.Repeat("-", 29) + "1"}, "is not a Google Cloud project id"},
		"project ends with -": {connect.Config{Project: "my-project-"}, "is not a Google Cloud project id"},
		"database's name":     {connect.Config{Project: "p", Database: "a b"}, `"a b" is not a Firestore database id`},
		"default database":    {connect.Config{Project: "p", Database: "(default)"}, ""},
		"database of 4":       {connect.Config{Project: "p", Database: "a--1"}, ""},
		"database of 3":       {connect.Config{Project: "p", Database: "a-1"}, "is not a Firestore database id"},
		"database of 63":      {connect.Config{Project: "p", Database: "a" + strings.Repeat("1", 62)}, ""},
		"database of 64":      {connect.Config{Project: "p", Database: "a" + strings.Repeat("1", 63)}, "is not a Firestore database id"},
		"both malformed":      {connect.Config{Project: "P", Database: "a b"}, `"a b" is not a Firestore database id`},
	} {
		err := c.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// A slow service is named long before the timeout.
func TestClients_CheckSaysWhichServiceDoesNotAnswer(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	const dead = "127.0.0.1:1" // nobody answers there
	hosts.FirestoreHost = dead
	c, err := connect.Open(t.Context(), hosts, meter.New())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waited := make(chan string, 10)
	err = c.Check(t.Context(), func(text string) { waited <- text })
	for _, part := range []string{"Firestore at " + dead, "running", connect.FirestoreHost, "refused"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q", err, part)
		}
	}
	if len(waited) != 1 {
		t.Fatalf("told %d times what is being waited for, want once", len(waited))
	}
	if text := <-waited; !strings.HasPrefix(text, "waiting for Firestore at "+dead) {
		t.Errorf("told %q", text)
	}
}

func TestClients_ShareTheSimulatedClock(t *testing.T) {
	c := emutest.Clients(t)
	clock, err := c.Clock(t.Context())
	if err != nil || clock.Speed != 1 {
		t.Fatalf("without a document: %+v, %v", clock, err)
	}
	// A clock at speed 1 may still be ahead: a fleet resumed after a faster run keeps
	// its time.
	for _, rate := range []simclock.Rate{{Speed: 30}, {Speed: 1, Ahead: time.Hour}} {
		rate.Epoch = time.Now().Truncate(time.Microsecond)
		if err := c.ShareClock(t.Context(), rate); err != nil {
			t.Fatal(err)
		}
		clock, err = c.Clock(t.Context())
		if err != nil || clock.Speed != rate.Speed || clock.Ahead != rate.Ahead || !clock.Epoch.Equal(rate.Epoch) {
			t.Errorf("%+v, %v; want %+v", clock, err, rate)
		}
	}
}
