package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// Every wrong setting is named, and nothing starts.
func TestMQTT_RefusesWrongSettings(t *testing.T) {
	t.Parallel()
	hosts := connect.Config{FirestoreHost: "127.0.0.1:1", PubSubHost: "127.0.0.1:1"}
	for broker, want := range map[string]string{
		"http://localhost": "mqtts://broker.example.org:8883", "localhost:1883": "mqtts://broker.example.org:8883", "mqtt://": "mqtts://", "mqtt://ann:secret@localhost": "--password-file",
	} {
		gateway.Refuses(t, hosts, 2, []string{"broker", want}, "mqtt", "--broker="+broker)
	}
	gateway.Refuses(t, hosts, 2, []string{"mqtts://"}, "mqtt", "--broker=mqtt://localhost", "--broker-ca=ca.crt")
	gateway.Refuses(t, hosts, 2, []string{"client-key"}, "mqtt", "--broker=mqtts://localhost", "--client-cert=a.crt")
	gateway.Refuses(t, hosts, 2, []string{"user"}, "mqtt", "--broker=mqtts://localhost", "--password-file=p")
	gateway.Refuses(t, hosts, 2, []string{"group"}, "mqtt", "--broker=mqtts://localhost", "--group=a/b")
	gateway.Refuses(t, hosts, 1, []string{"--broker-ca"}, "mqtt", "--broker=mqtts://localhost", "--broker-ca=/does/not/exist")
}

// F-GW-06, F-GW-07: over TLS with a certificate of its own, a gateway carries reports until it is
// killed, and after a restart those that the broker kept; it answers probes, leaves in good order
// on SIGTERM, and takes what is left when it is told to leave for good.
func TestMQTT_CarriesReportsThroughKills(t *testing.T) {
	t.Parallel()
	pub, err := exec.LookPath("mosquitto_pub")
	if err != nil {
		t.Skip("mosquitto_pub is not installed; install the package mosquitto-clients")
	}
	ca, dir := authority(t)
	certificate, err := ca.Client("drone:gateway")
	if err == nil {
		err = devca.Write(dir, "client", certificate)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	settings, err := os.ReadFile("../../deploy/mqtt/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	broker := storeserver.Mosquitto(t, "cafile "+file("ca.crt"), "certfile "+file("server.crt"), "keyfile "+file("server.key"),
		"require_certificate true", "use_identity_as_username true", string(settings))
	hosts := emutest.Hosts(t)
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	arrived := map[string]bool{}
	if err := pubsubio.EnsureSubscription(t.Context(), clients.PubSub, "test", pubsubio.TopicTelemetry, true); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = clients.PubSub.Subscriber("test").Receive(t.Context(), func(_ context.Context, m *pubsub.Message) {
			mu.Lock()
			defer mu.Unlock()
			arrived[string(m.Data)] = true
			m.Ack()
		})
	}()

	args := []string{"mqtt", "--broker=" + strings.Replace(broker.URL, "mqtt:", "mqtts:", 1), "--broker-ca=" + file("ca.crt"), "--client-cert=" + file("client.crt"),
		"--client-key=" + file("client.key"), "--client-id=gateway-1", "--drain-timeout=5s"}
	start := func() *clitest.Process {
		p := gateway.Start(t, hosts, append(args, "--http-addr=127.0.0.1:0")...)
		logged(t, p, "connected to the MQTT broker")
		return p
	}
	sent := 0
	send := func(n int) {
		for range n {
			payload := fmt.Sprintf(`{"droneId":"D-1","timestamp":"%s","position":{"lat":48.85,"lon":2.35},"batteryPercentage":90}`,
				time.Date(2026, 11, 27, 10, 0, sent, 0, time.UTC).Format(time.RFC3339))
			sent++
			out, err := exec.CommandContext(t.Context(), pub, "-V", "5", "-h", "127.0.0.1", "-p", fmt.Sprint(broker.Port), "--cafile", file("ca.crt"), "--cert", file("client.crt"),
				"--key", file("client.key"), "-q", "1", "-t", "fleet/D-1/telemetry", "-m", payload, "-d").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "RC:0") {
				t.Fatalf("mosquitto_pub: %v\n%s", err, out)
			}
		}
	}
	all := func() {
		t.Helper()
		emutest.Eventually(t, "reports", func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(arrived) != sent {
				return fmt.Errorf("%d of %d", len(arrived), sent)
			}
			return nil
		})
	}
	p := start()
	for range longtest.Size(t, "kills of a gateway", 2, 10) {
		send(5)
		if err := p.Cmd.Process.Kill(); err != nil { // wherever it is
			t.Fatal(err)
		}
		_ = p.Cmd.Wait()
		send(2) // the broker keeps them
		p = start()
	}
	send(1)
	all()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(p.Stderr); err != nil {
		t.Error(err)
	}
	if err := p.Cmd.Wait(); err != nil {
		t.Error(err)
	}
	send(2)
	gateway.Run(t, hosts, 0, append(args, "--leave")...)
	all()
}

// F-GW-07: a gateway is ready while it has a broker.
func TestMQTT_IsReadyWithABroker(t *testing.T) {
	t.Parallel()
	broker := storeserver.Mosquitto(t, "allow_anonymous true")
	p := gateway.Start(t, emutest.Hosts(t), "mqtt", "--broker="+broker.URL, "--http-addr=127.0.0.1:0")
	url, _ := logged(t, p, "probes and metrics listening")["url"].(string)
	ready := func(code int, part string) {
		t.Helper()
		emutest.Eventually(t, "readyz", func() error {
			resp, err := http.Get(url + "/readyz")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != code || !strings.Contains(string(body), part) {
				return fmt.Errorf("%d %s, %w", resp.StatusCode, body, err)
			}
			return nil
		})
	}
	ready(http.StatusOK, `"ok"`)
	broker.Kill()
	ready(http.StatusServiceUnavailable, "MQTT broker "+broker.URL)
	broker.Restart()
	ready(http.StatusOK, `"ok"`)
}
