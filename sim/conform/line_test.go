package conform_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
	"github.com/dronefleet/dronefleet/sim/conform"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

const (
	maker = domain.DroneID("DRONE-7")
	speed = 50 // of the drone's time
)

// program is the program of a drone of another maker, whose time runs faster than the machine's.
type program struct {
	commands chan domain.Command
	restarts chan struct{}
	report   func(domain.Telemetry) error
	answered chan struct{} // by a gateway behind a broker
	restart  func() error  // what the transport does then; nil for nothing
}

func newProgram() *program {
	return &program{commands: make(chan domain.Command, 100), restarts: make(chan struct{}), answered: make(chan struct{}, 10)}
}

// fly flies the drone until ctx ends. It remembers nothing over a restart.
func (p *program) fly(ctx context.Context) error {
	spec := domain.Drone{ID: maker, Position: domain.Position{Lat: 48.8566, Lon: 2.3522}, Battery: 92, SupportsAmendments: true, SupportsStandby: true}
	depot := spec.Position
	d := fleetsim.NewDrone(spec, depot)
	began, at := time.Now(), time.Now()
	ticker := time.NewTicker(time.Second / speed)
	defer ticker.Stop()
	for {
		now := began.Add(time.Since(began) * speed)
		select {
		case <-ctx.Done():
			return nil
		case command := <-p.commands:
			d, _ = d.Obey(command, now)
		case <-p.restarts:
			if p.restart == nil {
				continue
			}
			_, last := d.Report(now)
			spec.Position, spec.Battery = last.Position, last.Battery
			d = fleetsim.NewDrone(spec, depot)
			if err := p.restart(); err != nil {
				return err
			}
			for len(p.commands) > 0 { // what it is told comes before its first report
				d, _ = d.Obey(<-p.commands, now)
			}
		case <-ticker.C:
			d = d.After(now.Sub(at))
			at = now
			var t domain.Telemetry
			d, t = d.Report(now)
			if err := p.report(t); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// examined examines the program over a line, in the gate to the end.
func examined(t *testing.T, p *program, line conform.Line, cfg conform.DroneConfig, untested int) {
	t.Helper()
	minutes := longtest.Size(t, "minutes of flight", 2, 10)
	ctx, stop := context.WithCancel(t.Context())
	flying := make(chan error, 1)
	go func() { flying <- p.fly(ctx) }()
	cfg.ID, cfg.Slack, cfg.Limit = maker, conform.Slack(speed), time.Duration(minutes)*time.Minute
	cfg.Restart = func(context.Context) error { p.restarts <- struct{}{}; return nil }
	summary, err := conform.Drone(t.Context(), cfg, line)
	stop()
	if err := <-flying; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, r := range summary.Results {
		switch r.Verdict {
		case conform.Broken:
			t.Errorf("%s is broken: %q", r.ID, r.Findings)
		case conform.Kept:
			tested++
		}
	}
	if all := len(summary.Results) - untested; minutes == 10 && (tested < all || summary.Ended != "") || tested < 7 {
		t.Errorf("%d rules of %d are tested; ended early: %q", tested, all, summary.Ended)
	}
}

// F-KIT-01, F-DOC-13: over Pub/Sub, with a subscription of its own commands, a drone whose time
// runs faster is examined in less time.
func TestPubSub_ExaminesADrone(t *testing.T) {
	t.Parallel()
	server := pubsubemu.StartT(t, pubsubemu.Options{})
	client := server.ClientT(t, "test")
	if err := conform.PrepareDrone(t.Context(), client, maker); err != nil {
		t.Fatal(err)
	}
	line, err := conform.OpenPubSub(t.Context(), client, maker, speed)
	if err != nil {
		t.Fatal(err)
	}
	p, its := newProgram(), server.ClientT(t, "test")
	publisher := pubsubio.NewPublisher(its)
	defer publisher.Stop()
	ctx, stop := context.WithCancel(t.Context())
	received := make(chan error, 1)
	go func() {
		received <- its.Subscriber(conform.DroneSubscription(maker)).Receive(ctx, func(_ context.Context, msg *pubsub.Message) {
			if command, err := wire.DecodeCommand(msg.Data, msg.Attributes); err == nil {
				p.commands <- command
			}
			msg.Ack()
		})
	}()
	p.report = func(t domain.Telemetry) error {
		data, attrs, err := wire.EncodeTelemetry(t, wire.Protobuf)
		if err == nil {
			publisher.Publish(ctx, pubsubio.TopicTelemetry, data, attrs, string(maker))
		}
		return err
	}
	examined(t, p, line, conform.DroneConfig{Keys: true}, 0)
	stop()
	if err := <-received; err != nil {
		t.Error(err)
	}
	if err := line.Close(); err != nil {
		t.Error(err)
	}
}

// F-KIT-01: over the drone link, with the certificate that the kit issues; a drone that has
// forgotten its mission gets it back when it connects again.
func TestLink_ExaminesADrone(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	line, err := conform.OpenLink(listener, maker, speed, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, listener.Addr().String(), line.Directory)
	p := newProgram()
	var stream grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]
	sequence := uint32(0)
	p.restart = func() (err error) {
		if stream != nil {
			if err := stream.CloseSend(); err != nil {
				return err
			}
		}
		sequence = 0
		if stream, err = client.Fly(t.Context()); err != nil {
			return err
		}
		hello := &pb.DroneHello{DroneId: string(maker), SupportsAmendments: true, SupportsStandby: true}
		if err := stream.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Hello{Hello: hello}}); err != nil {
			return err
		}
		go p.listen(stream)
		return nil
	}
	p.report = func(t domain.Telemetry) error {
		data, _, err := wire.EncodeTelemetry(t, wire.Protobuf)
		var telemetry pb.DroneTelemetry
		if err == nil {
			err = proto.Unmarshal(data, &telemetry)
		}
		if err != nil {
			return err
		}
		sequence++
		return stream.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Report{Report: &pb.DroneReport{Sequence: sequence, Telemetry: &telemetry}}})
	}
	if err := p.restart(); err != nil {
		t.Fatal(err)
	}
	examined(t, p, line, conform.DroneConfig{OwnOnly: true}, 2)
	if err := line.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(line.Directory); !os.IsNotExist(err) {
		t.Errorf("the certificates are left behind: %v", err)
	}
}

// listen takes the messages of a session as commands, until it ends.
func (p *program) listen(stream grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]) {
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		p.take(m)
	}
}

// take takes a message of the fleet as a command, if it is one or has a mission to resume.
func (p *program) take(m *pb.GatewayMessage) {
	command, reached := m.GetCommand(), 0
	if resume := m.GetResume(); resume.GetMission() != nil {
		expires := timestamppb.New(time.Now().Add(24 * time.Hour)) // a resume does not expire
		command, reached = &pb.MissionCommand{Mission: resume.GetMission(), ExpiresAt: expires}, int(resume.GetCompletedStops())
	}
	if command == nil {
		return
	}
	data, err := proto.Marshal(command)
	if err != nil {
		return
	}
	if c, err := wire.DecodeCommand(data, map[string]string{wire.AttrContentType: "application/protobuf"}); err == nil {
		c.Mission.ReachedStops = reached
		p.commands <- c
	}
}

// dial connects with the certificate in a directory.
func dial(t *testing.T, addr, directory string) pb.DroneLinkClient {
	t.Helper()
	file := func(name string) string { return filepath.Join(directory, name) }
	certificate, err := tls.LoadX509KeyPair(file(string(maker)+".crt"), file(string(maker)+".key"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatal("ca.crt holds no certificate")
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // its stream has ended
	return pb.NewDroneLinkClient(conn)
}

// F-DOC-11: examples/drone.go flies over the link, gives up its session when it has connected again,
// and goes on with its mission.
func TestExample_FliesOverTheLink(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "drone")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../examples/drone.go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	line, err := conform.OpenLink(listener, maker, 1, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-home=45.7440,4.8740", "-link="+listener.Addr().String(), "-ca="+filepath.Join(line.Directory, "ca.crt"), string(maker))
	cmd.Env = []string{"DRONE_KEY=" + line.Token}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	})
	reported := func(what string, is func(domain.Telemetry) bool) {
		t.Helper()
		emutest.Eventually(t, what, func() error {
			m, ok, err := line.Next(t.Context())
			if err != nil || !ok {
				return errors.Join(errors.New("no report"), err)
			}
			r, err := wire.DecodeTelemetry(m.Data, m.Attributes)
			if err != nil {
				t.Fatal(err)
			}
			if !is(r) {
				return fmt.Errorf("%+v", r)
			}
			return nil
		})
	}
	reported("idle", func(r domain.Telemetry) bool { return r.Status == domain.DroneIdle && r.MissionID == "" })
	home := domain.Position{Lat: 45.7440, Lon: 4.8740}
	m := domain.Mission{ID: "M-1", DroneID: maker, Status: domain.MissionActive, Route: []domain.Waypoint{{Type: domain.WaypointDepotReturn, Position: home}}}
	if err := line.Send(t.Context(), domain.Command{Mission: m, ExpiresAt: time.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	reported("named", func(r domain.Telemetry) bool { return r.MissionID == "M-1" })
	other, err := dial(t, listener.Addr().String(), line.Directory).Fly(t.Context())
	if err == nil {
		err = other.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Hello{Hello: &pb.DroneHello{DroneId: string(maker)}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the drone has connected again
		_, err = other.Recv()
	}
	reported("completed", func(r domain.Telemetry) bool {
		return r.MissionID == "M-1" && r.CompletedStops != nil && *r.CompletedStops == 1
	})
	reported("idle again", func(r domain.Telemetry) bool { return r.Status == domain.DroneIdle && r.MissionID == "" })
}
