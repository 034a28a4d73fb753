package dronelink_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/internal/simclock"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

const ruleText = "uri:spiffe://fleet.test/drone/{drone}"

// fleet is a gateway on embedded servers, and what drones need to reach it.
type fleet struct {
	clients *connect.Clients
	gateway *gateway.Gateway
	ca      *devca.CA
	addr    string
}

// certificates authenticates by certificate only.
type certificates struct{ dronelink.Certificates }

func (c certificates) Authenticate(_ context.Context, shown dronelink.Credentials) (dronelink.Identity, error) {
	return c.Certificates.Authenticate(shown, time.Now())
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	clients := emutest.Clients(t)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	f := &fleet{clients: clients}
	var err error
	if f.ca, err = devca.New(time.Now); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(clients.PubSub)
	t.Cleanup(publisher.Stop)
	f.gateway = gateway.New(publisher, firestoretx.New(clients.Firestore, firestoretx.Config{}), simclock.Real(), gateway.Config{}, emutest.Log(t))
	rule, err := dronelink.ParseCertificateRule(ruleText)
	if err != nil {
		t.Fatal(err)
	}
	server, err := f.ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	s := dronelink.NewServer(f.gateway, certificates{dronelink.Certificates{Roots: f.ca.Roots(), Rule: rule}},
		&tls.Config{Certificates: []tls.Certificate{server}}, emutest.Log(t))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = listener.Addr().String()
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		s.Close(now)
	})
	return f
}

// drone is a drone that is connected.
type drone struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]
}

// certificate issues a drone's certificate.
func certificate(t *testing.T, ca *devca.CA, id string) tls.Certificate {
	t.Helper()
	c, err := ca.Client(strings.TrimPrefix(strings.Replace(ruleText, dronelink.DroneMark, id, 1), "uri:"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connect opens a stream with the certificate of a drone.
func (f *fleet) connect(t *testing.T, ca *devca.CA, id string) *drone {
	t.Helper()
	c := certificate(t, ca, id)
	conn, err := grpc.NewClient(f.addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: f.ca.Roots(), Certificates: []tls.Certificate{c}})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := pb.NewDroneLinkClient(conn).Fly(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &drone{t, stream}
}

func (d *drone) send(m *pb.DroneMessage) {
	d.t.Helper()
	if err := d.stream.Send(m); err != nil {
		d.t.Fatal(err)
	}
}

func hello(id string) *pb.DroneMessage {
	return &pb.DroneMessage{Message: &pb.DroneMessage_Hello{Hello: &pb.DroneHello{DroneId: id}}}
}

func report(id string, sequence uint32, at time.Time) *pb.DroneMessage {
	return &pb.DroneMessage{Message: &pb.DroneMessage_Report{Report: &pb.DroneReport{Sequence: sequence, Telemetry: telemetry(id, at)}}}
}

func telemetry(id string, at time.Time) *pb.DroneTelemetry {
	return &pb.DroneTelemetry{
		DroneId: id, Timestamp: timestamppb.New(at), Position: &pb.Position{Lat: proto.Float64(48.85), Lon: proto.Float64(2.35)},
		BatteryPercentage: 90, Status: pb.DroneStatus_DRONE_STATUS_IDLE,
	}
}

// await receives until a message is as wanted.
func (d *drone) await(what string, want func(*pb.GatewayMessage) bool) *pb.GatewayMessage {
	d.t.Helper()
	for {
		m, err := d.stream.Recv()
		if err != nil {
			d.t.Fatalf("%s: %v", what, err)
		}
		if want(m) {
			return m
		}
	}
}

// refused receives the refusal that ends the session.
func (d *drone) refused() *pb.Refusal {
	d.t.Helper()
	return d.await("the last refusal", func(m *pb.GatewayMessage) bool { return m.GetRefusal().GetFinal() }).GetRefusal()
}

// received collects messages of a topic.
func received(t *testing.T, c *pubsub.Client, topic string) func() []*pubsub.Message {
	t.Helper()
	var mu sync.Mutex
	var list []*pubsub.Message
	name := "test-" + topic
	if err := pubsubio.EnsureSubscription(t.Context(), c, name, topic, true); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Subscriber(name).Receive(t.Context(), func(_ context.Context, m *pubsub.Message) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, m)
			m.Ack()
		})
	}()
	return func() []*pubsub.Message {
		mu.Lock()
		defer mu.Unlock()
		return append([]*pubsub.Message(nil), list...)
	}
}

// F-GW-01, F-GW-03: a report reaches the topic as the drone sent it, with the drone's name as
// sender and ordering key, and is acked after that.
func TestLink_PublishesWhatADroneReports(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := received(t, f.clients.PubSub, pubsubio.TopicTelemetry)
	d := f.connect(t, f.ca, "D-1")
	d.send(hello("D-1"))
	d.await("hello", func(m *pb.GatewayMessage) bool { return m.GetHello().GetSessionId() != "" })
	now := time.Now()
	for i := range uint32(3) {
		d.send(report("D-1", i+1, now.Add(time.Duration(i)*time.Millisecond)))
	}
	d.await("ack of all", func(m *pb.GatewayMessage) bool { return m.GetAck().GetSequence() == 3 })
	emutest.Eventually(t, "the reports", func() error {
		if n := len(published()); n != 3 {
			return errors.New("not all")
		}
		return nil
	})
	for i, m := range published() {
		if m.Attributes[wire.AttrSender] != "D-1" || m.OrderingKey == "" || m.OrderingKey != published()[0].OrderingKey || m.Attributes[wire.AttrContentType] != "application/protobuf" {
			t.Errorf("message %d: key %q, attributes %v", i, m.OrderingKey, m.Attributes)
		}
		report, err := wire.DecodeTelemetry(m.Data, m.Attributes)
		if err != nil || report.DroneID != domain.DroneID("D-1") {
			t.Errorf("message %d: %+v, %v", i, report, err)
		}
	}
}

// F-GW-02: certificate, hello and every report name the same drone, else the session ends with
// the reason.
func TestLink_RefusesForeignIdentities(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := received(t, f.clients.PubSub, pubsubio.TopicTelemetry)
	foreign, err := devca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ca       *devca.CA
		cert     string
		messages []*pb.DroneMessage
		reason   dronelink.Reason
		text     string
	}{
		"another CA":     {foreign, "D-1", nil, dronelink.Unauthenticated, "unknown authority"},
		"another hello":  {f.ca, "D-1", []*pb.DroneMessage{hello("D-2")}, dronelink.IdentityMismatch, `drone_id is "D-2"`},
		"another report": {f.ca, "D-1", []*pb.DroneMessage{hello("D-1"), report("D-2", 1, time.Now())}, dronelink.IdentityMismatch, `drone_id is "D-2"`},
		"no hello":       {f.ca, "D-1", []*pb.DroneMessage{report("D-1", 1, time.Now())}, dronelink.NoHello, "send hello"},
		"two hellos":     {f.ca, "D-3", []*pb.DroneMessage{hello("D-3"), hello("D-3")}, dronelink.Invalid, "second hello"},
		"bad id":         {f.ca, "D-1", []*pb.DroneMessage{hello("a/b")}, dronelink.Invalid, "drone_id"},
	} {
		t.Run(name, func(t *testing.T) {
			d := f.connect(t, c.ca, c.cert)
			for _, m := range c.messages {
				d.send(m)
			}
			got := d.refused()
			if dronelink.Reason(got.GetReason()) != c.reason || !strings.Contains(got.GetText(), c.text) {
				t.Errorf("refused as %v", got)
			}
		})
	}
	if n := len(published()); n != 0 {
		t.Errorf("%d messages were published", n)
	}
}

// F-GW-02: a drone has one session; a newer one ends the older, which is told.
func TestLink_KeepsTheNewerSession(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	older, newer := f.connect(t, f.ca, "D-1"), f.connect(t, f.ca, "D-1")
	older.send(hello("D-1"))
	older.await("hello", func(m *pb.GatewayMessage) bool { return m.GetHello() != nil })
	newer.send(hello("D-1"))
	if got := older.refused(); dronelink.Reason(got.GetReason()) != dronelink.Superseded {
		t.Errorf("refused as %v", got)
	}
	newer.send(report("D-1", 1, time.Now()))
	newer.await("ack", func(m *pb.GatewayMessage) bool { return m.GetAck().GetSequence() == 1 })
	if n := f.gateway.Sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// F-GW-01: the same session over WebSocket, in JSON.
func TestLink_SpeaksJSONOverWebSocket(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := received(t, f.clients.PubSub, pubsubio.TopicTelemetry)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.ca.Roots(), Certificates: []tls.Certificate{certificate(t, f.ca, "D-1")}}}}
	conn, _, err := websocket.Dial(t.Context(), "wss://"+f.addr+dronelink.WebSocketPath, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	say := func(text string) {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(what string) string {
		for {
			_, data, err := conn.Read(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if strings.Contains(string(data), what) {
				return string(data)
			}
		}
	}
	say(`{"hello": {"droneId": "D-1"}}`)
	hear(`{"hello":{"sessionId":`)
	at := time.Now().UTC().Format(time.RFC3339)
	say(fmt.Sprintf(`{"report": {"sequence": 1, "telemetry": {"droneId": "D-1", "timestamp": %q, "position": {"lat": 95, "lon": 2}, "batery_percentage": 9}}}`, at))
	// Another refusal says that nobody has registered the drone.
	if refused := hear("position.lat is 95"); !strings.Contains(refused, `"refusal"`) || !strings.Contains(refused, "battery_percentage is spelt") || !strings.Contains(refused, `"sequence":1`) {
		t.Errorf("refused as %s", refused)
	}
	say(fmt.Sprintf(`{"report": {"sequence": 2, "telemetry": {"droneId": "D-1", "timestamp": %q, "position": {"lat": 48.8, "lon": 2}, "status": "IDLE"}}}`, at))
	hear(`{"ack":{"sequence":2}}`)
	emutest.Eventually(t, "the report", func() error {
		if list := published(); len(list) != 1 || list[0].Attributes[wire.AttrSender] != "D-1" {
			return fmt.Errorf("published %v", list)
		}
		return nil
	})
	say(`{"report": {"sequence": 3, "telemetry": {"droneId": "D-2", "timestamp": "2026-11-21T12:00:00Z", "position": {"lat": 48.8, "lon": 2}}}}`)
	hear(string(dronelink.IdentityMismatch))
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("the connection ends with %v", err)
	}
}

// F-GW-02: a session over WebSocket that a newer one ends is told, and closed with the reason,
// although its drone sends nothing.
func TestLink_TellsAWebSocketThatItIsSuperseded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.ca.Roots(), Certificates: []tls.Certificate{certificate(t, f.ca, "D-1")}}}}
	conn, _, err := websocket.Dial(t.Context(), "wss://"+f.addr+dronelink.WebSocketPath, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"hello": {"droneId": "D-1"}}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.served(t, "D-1")
	var last []byte
	for err = nil; err == nil; {
		var data []byte
		if _, data, err = conn.Read(t.Context()); err == nil {
			last = data
		}
	}
	if !strings.Contains(string(last), string(dronelink.Superseded)) || websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("told %s, ended with %v", last, err)
	}
}

// A client that is not a drone is told what to do.
func TestLink_RefusesWebSocketsWithoutIdentity(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.ca.Roots()}}}
	for path, want := range map[string]string{"/": dronelink.WebSocketPath, dronelink.WebSocketPath: "shows no certificate"} {
		resp, err := client.Get("https://" + f.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode < 400 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s, %v", path, resp.StatusCode, body, err)
		}
	}
}
