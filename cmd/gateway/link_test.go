package main_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/devca"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

const gateway = clitest.Program("gateway")

// Every wrong setting is named at once, and nothing starts.
func TestLink_RefusesWrongSettings(t *testing.T) {
	t.Parallel()
	hosts := connect.Config{FirestoreHost: "127.0.0.1:1", PubSubHost: "127.0.0.1:1"}
	gateway.Refuses(t, hosts, 2, []string{"tls-cert", "--insecure-link"}, "link")
	gateway.Refuses(t, hosts, 2, []string{"drone-keys", "no drone could connect"}, "link", "--insecure-link", "--no-drone-keys")
	gateway.Refuses(t, hosts, 2, []string{"client-ca", "needs TLS"}, "link", "--insecure-link", "--client-ca=ca.crt")
	gateway.Refuses(t, hosts, 2, []string{"certificate-rule", "uri:spiffe"}, "link", "--insecure-link", "--certificate-rule=drone")
	gateway.Refuses(t, hosts, 1, []string{"--tls-cert"}, "link", "--tls-cert=/does/not/exist", "--tls-key=/does/not/exist")
}

// F-GW-07: a gateway takes drones with certificates and with API keys, answers probes, and on
// SIGTERM tells its drones to reconnect and ends with success.
func TestLink_ServesUntilToldToStop(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	ca, dir := authority(t)
	p := gateway.Start(t, hosts, "link", "--link-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--client-ca="+filepath.Join(dir, "ca.crt"),
		"--tls-cert="+filepath.Join(dir, "server.crt"), "--tls-key="+filepath.Join(dir, "server.key"))
	started := logged(t, p, "gateway serving")
	url, _ := logged(t, p, "probes and metrics listening")["url"].(string)
	addr, _ := started["link"].(string)

	now := time.Now()
	text := apikeys.NewText()
	key := domain.APIKey{Hash: apikeys.Hash(text), Role: domain.KeyDrone, Subject: "D-2", CreatedAt: now, CreatedBy: "ann", Why: "test", ExpiresAt: now.Add(time.Hour)}
	if err := firestoretx.New(clients.Firestore, firestoretx.Config{}).CreateKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	certified, err := ca.Client("drone:D-1")
	if err != nil {
		t.Fatal(err)
	}
	first := connectDrone(t, addr, "D-1", &tls.Config{RootCAs: ca.Roots(), Certificates: []tls.Certificate{certified}}, "")
	second := connectDrone(t, addr, "D-2", &tls.Config{RootCAs: ca.Roots()}, text)
	both := connectDrone(t, addr, "D-1", &tls.Config{RootCAs: ca.Roots(), Certificates: []tls.Certificate{certified}}, text)
	if got := refusal(t, both); dronelink.Reason(got.GetReason()) != dronelink.IdentityMismatch { // F-GW-02
		t.Errorf("a drone with another's key is refused as %v", got)
	}
	emutest.Eventually(t, "ready", func() error {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s, %w", resp.StatusCode, body, err)
		}
		return nil
	})
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]{first, second} {
		got := refusal(t, stream)
		if dronelink.Reason(got.GetReason()) != dronelink.Reconnect || got.GetRetryAfter().AsDuration() <= 0 {
			t.Errorf("told %v", got)
		}
	}
	if _, err := io.ReadAll(p.Stderr); err != nil {
		t.Error(err)
	}
	if err := p.Cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// authority returns a development CA, whose files and a server's are in a directory.
func authority(t *testing.T) (*devca.CA, string) {
	t.Helper()
	dir := t.TempDir()
	ca, err := devca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server()
	if err = errors.Join(err, ca.Write(dir), devca.Write(dir, "server", server), os.Remove(filepath.Join(dir, "ca.key"))); err != nil {
		t.Fatal(err)
	}
	return ca, dir
}

// logged reads the log up to a line with a message, and returns its attributes.
func logged(t *testing.T, p *clitest.Process, message string) (line map[string]any) {
	t.Helper()
	for {
		text, err := p.Stderr.ReadBytes('\n')
		if err != nil {
			t.Fatalf("no line %q: %v", message, err)
		}
		if json.Unmarshal(text, &line) == nil && line["message"] == message {
			return line
		}
	}
}

// connectDrone opens a session and waits until a report is acked.
func connectDrone(t *testing.T, addr, id string, config *tls.Config, token string) grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage] {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := pb.NewDroneLinkClient(conn).Fly(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Hello{Hello: &pb.DroneHello{DroneId: id}}}) // its end shows in what is received
	_ = stream.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Report{Report: &pb.DroneReport{Sequence: 1, Telemetry: &pb.DroneTelemetry{
		DroneId: id, Timestamp: timestamppb.Now(), Position: &pb.Position{Lat: proto.Float64(48.85), Lon: proto.Float64(2.35)}, BatteryPercentage: 90,
	}}}})
	return stream
}

// refusal receives until the session is refused or ended.
func refusal(t *testing.T, stream grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]) *pb.Refusal {
	t.Helper()
	acked := false
	for {
		m, err := stream.Recv()
		switch {
		case err != nil:
			t.Fatalf("the session ended without a reason (acked %v): %v", acked, err)
		case m.GetAck() != nil:
			acked = true
		case m.GetRefusal().GetFinal():
			if !acked && m.GetRefusal().GetReason() == string(dronelink.Reconnect) {
				t.Error("the report was not acked before the end")
			}
			return m.GetRefusal()
		}
	}
}
