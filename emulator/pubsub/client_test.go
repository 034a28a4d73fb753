package pubsubemu_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// A test has a client in one line. P-RPC-01
func TestNewClient_ServesOneTest(t *testing.T) {
	for range 2 { // each has a server of its own
		client := pubsubemu.NewClient(t)
		if _, err := client.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: "projects/test/topics/telemetry"}); err != nil {
			t.Fatal(err)
		}
	}
}

// Clients of one server share its topics, over a port or in process, whatever
// PUBSUB_EMULATOR_HOST says. P-RPC-01
func TestServer_Client(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1") // nothing listens there
	for _, inProcess := range []bool{false, true} {
		server := pubsubemu.StartT(t, pubsubemu.Options{InProcess: inProcess})
		one, other := server.ClientT(t, "fleet"), server.ClientT(t, "fleet")
		if _, err := one.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topicName("telemetry")}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.TopicAdminClient.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topicName("telemetry")}); err != nil {
			t.Errorf("in process %v: %v", inProcess, err)
		}
		conn, err := server.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pubsubpb.NewPublisherClient(conn).GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topicName("telemetry")}); err != nil {
			t.Errorf("dialled, in process %v: %v", inProcess, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server in process takes no port.
// The server checks no credentials, so it listens for other machines only if told to.
func TestStart_ListensOnLoopback(t *testing.T) {
	for part, opts := range map[string]pubsubemu.Options{
		"not loopback":   {Addr: "0.0.0.0:0"},
		"want host:port": {Addr: "nonsense"},
		"":               {Addr: "0.0.0.0:0", AnyAddress: true},
	} {
		server, err := pubsubemu.Start(opts)
		if part == "" && err == nil {
			err = server.Close()
		}
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			t.Errorf("%+v: error %v, want %q", opts, err, part)
		}
	}
}

func TestStart_InProcess(t *testing.T) {
	server := pubsubemu.StartT(t, pubsubemu.Options{InProcess: true})
	if _, _, err := net.SplitHostPort(server.Addr()); err == nil {
		t.Errorf("its address is %s", server.Addr())
	}
	_, err := pubsubemu.Start(pubsubemu.Options{InProcess: true, Addr: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "InProcess") {
		t.Errorf("with an address: %v", err)
	}
}

// recorder is a test whose Fatalf panics.
type recorder struct{ testing.TB }

func (r recorder) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// A server that cannot start fails the test.
func TestStartT_FailsTest(t *testing.T) {
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "nonsense") {
			t.Errorf("failed with %q", said)
		}
	}()
	pubsubemu.StartT(recorder{t}, pubsubemu.Options{Addr: "nonsense"})
}
