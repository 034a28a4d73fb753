package dronelink_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// served expects that a drone is acked as if it were alone.
func (f *fleet) served(t *testing.T, id string) {
	t.Helper()
	d := f.connect(t, f.ca, id)
	d.send(hello(id))
	d.send(report(id, 1, time.Now()))
	d.await("ack of "+id, func(m *pb.GatewayMessage) bool { return m.GetAck().GetSequence() == 1 })
}

// A frame of 1 MB ends the session that sent it, with the reason, over both transports.
func TestLink_RefusesHugeFrames(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := received(t, f.clients.PubSub, pubsubio.TopicTelemetry)
	huge := strings.Repeat("x", 1<<20)
	d := f.connect(t, f.ca, "D-1")
	d.send(hello("D-1"))
	d.await("hello", func(m *pb.GatewayMessage) bool { return m.GetHello() != nil })
	m := report("D-1", 1, time.Now())
	m.GetReport().GetTelemetry().SerialNumber = huge
	if err := d.stream.Send(m); err == nil || errors.Is(err, io.EOF) {
		for err = nil; err == nil; {
			_, err = d.stream.Recv()
		}
		if code := status.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted {
			t.Errorf("gRPC: %v", err)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.ca.Roots(), Certificates: []tls.Certificate{certificate(t, f.ca, "D-2")}}}}
	conn, _, err := websocket.Dial(t.Context(), "wss://"+f.addr+dronelink.WebSocketPath, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for _, text := range []string{`{"hello": {"drone_id": "D-2"}}`, `{"report": {"sequence": 1, "telemetry": {"serialNumber": "` + huge + `"}}}`} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			break // it was cut while it was sent
		}
	}
	for err = nil; err == nil; {
		_, _, err = conn.Read(t.Context())
	}
	if code := websocket.CloseStatus(err); code != websocket.StatusMessageTooBig && code != -1 { // or the connection is reset
		t.Errorf("WebSocket: %v", err)
	}
	f.served(t, "D-3")
	if n := len(published()); n > 1 {
		t.Errorf("%d messages were published", n)
	}
}

// A frame that is not a message, not JSON or not UTF-8 ends the session, with a reason that says what
// to send.
func TestLink_RefusesFramesThatAreNotMessages(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for text, want := range map[string]string{
		"{":                     "undecodable",
		"[]":                    "undecodable",
		"\xff\xfe":              "",
		`{"hallo": {}}`:         `give \"hello\"`,
		`{"hello": 1}`:          "hello",
		`{}`:                    "send hello",
		`{"hello": {"id": ""}}`: "drone_id",
		strings.Repeat(`{"hello":`, 1000) + "1" + strings.Repeat("}", 1000): "undecodable",
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.ca.Roots(), Certificates: []tls.Certificate{certificate(t, f.ca, "D-1")}}}}
		conn, _, err := websocket.Dial(t.Context(), "wss://"+f.addr+dronelink.WebSocketPath, &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, told, err := conn.Read(t.Context())
		if want != "" && (err != nil || !strings.Contains(string(told), want) || !strings.Contains(string(told), `"final":true`)) {
			t.Errorf("%.40q: told %s, %v", text, told, err)
		}
		_ = conn.CloseNow()
	}
}

// F-GW-03: a drone that sends as much as it can is told to slow down, and read no faster than it
// may send. Nobody else is slower.
func TestLink_SlowsDownADroneThatFloods(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := received(t, f.clients.PubSub, pubsubio.TopicTelemetry)
	d := f.connect(t, f.ca, "FLOOD")
	d.send(hello("FLOOD"))
	began := time.Now()
	go func() {
		for i := uint32(1); d.stream.Send(report("FLOOD", i, began.Add(time.Duration(i)))) == nil; i++ {
		}
	}()
	slow := d.await("to slow down", func(m *pb.GatewayMessage) bool {
		return m.GetRefusal() != nil && m.GetRefusal().GetReason() != string(dronelink.Unregistered)
	}).GetRefusal()
	if dronelink.Reason(slow.GetReason()) != dronelink.SlowDown || slow.GetFinal() || slow.GetRetryAfter().AsDuration() <= 0 {
		t.Errorf("told %v", slow)
	}
	for i := range 20 {
		f.served(t, fmt.Sprint("D-", i))
	}
	took := time.Since(began)
	if n := len(published()); n > 20+10+2+int(10*took.Seconds()) {
		t.Errorf("%d messages in %s", n, took)
	}
}

// Connections that never say anything keep nobody out.
func TestLink_ServesBesideHalfOpenConnections(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for range 400 {
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for i := range 50 { // these have proved who they are, and say no hello
		f.connect(t, f.ca, fmt.Sprint("MUTE-", i))
	}
	f.served(t, "D-1")
}

// Drone makers find every reason in the document.
func TestReasons_AreExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/link.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range dronelink.Reasons {
		if !strings.Contains(string(text), "| `"+string(reason)+"` |") {
			t.Errorf("docs/link.md does not explain %s", reason)
		}
	}
}
