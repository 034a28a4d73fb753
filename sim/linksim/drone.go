package linksim

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// Config says how a drone connects.
type Config struct {
	Drone domain.DroneID
	// Address is the gateway to try next.
	Address func() string
	Dial    []grpc.DialOption
	Token   string // "" for a drone with a certificate
	// Command is called with each command, and Resume once in each session. Neither may block.
	Command func(domain.Command)
	Resume  func(mission *domain.Mission, completed int)
	// Ended, if set, is called with the reason for which a gateway ended a session.
	Ended func(reason string)
	// Pause is how long the drone waits before it connects again.
	Pause time.Duration
}

// Drone is one drone's link. Its methods are safe for concurrent use.
type Drone struct {
	cfg Config

	mu      sync.Mutex
	waiting []*sent // in order: not acked, and not refused
	changed chan struct{}
	last    *pb.DroneTelemetry // what it reported last
	hangUp  context.CancelFunc // ends the session; nil without one
}

// sent is a report that is not acked.
type sent struct {
	telemetry *pb.DroneTelemetry
	sequence  uint32 // in the session; 0 if it was not sent in this one
	done      chan struct{}
	err       error // after done
}

// New returns a drone that is not connected; see Run.
func New(cfg Config) *Drone { return &Drone{cfg: cfg, changed: make(chan struct{}, 1)} }

// Result is the answer to a report.
type Result struct{ sent *sent }

// errRefused says that a gateway refused a report.
type errRefused struct{ *pb.Refusal }

func (e errRefused) Error() string { return e.GetReason() + ": " + e.GetText() }

// Wait waits for the ack. There is no message id.
func (r Result) Wait(ctx context.Context) (string, error) {
	select {
	case <-r.sent.done:
		return "", r.sent.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Report sends a report, now or in a later session.
func (d *Drone) Report(t *pb.DroneTelemetry) Result {
	s := &sent{telemetry: t, done: make(chan struct{})}
	d.mu.Lock()
	d.waiting, d.last = append(d.waiting, s), t
	d.mu.Unlock()
	d.wake()
	return Result{s}
}

// ReportState sends a report of the drone's state.
func (d *Drone) ReportState(t domain.Telemetry) (Result, error) {
	data, _, err := wire.EncodeTelemetry(t, wire.Protobuf)
	var m pb.DroneTelemetry
	if err == nil {
		err = proto.Unmarshal(data, &m)
	}
	if err != nil {
		return Result{}, err
	}
	return d.Report(&m), nil
}

// errForgotten is the answer to reports that a restart has lost.
var errForgotten = errors.New("the drone has restarted")

// Restart ends the session and forgets everything, reports that were not acked included.
func (d *Drone) Restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = nil
	for _, s := range d.waiting {
		s.err = errForgotten
		close(s.done)
	}
	d.waiting = nil
	if d.hangUp != nil {
		d.hangUp()
	}
}

func (d *Drone) wake() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// Run connects, again and again, until ctx ends.
func (d *Drone) Run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.session(ctx) // its end is all that matters
		select {
		case <-ctx.Done():
		case <-time.After(d.cfg.Pause):
		}
	}
}

// errEnded says that the gateway ended the session.
var errEnded = errors.New("the gateway ended the session")

// session runs one session.
func (d *Drone) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	d.hangUp = cancel
	d.mu.Unlock()
	conn, err := grpc.NewClient(d.cfg.Address(), d.cfg.Dial...)
	if err != nil {
		return err
	}
	defer conn.Close()
	if d.cfg.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+d.cfg.Token)
	}
	stream, err := pb.NewDroneLinkClient(conn).Fly(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Hello{Hello: d.greeting()}}); err != nil {
		return err
	}
	heard := make(chan error, 1)
	go func() { heard <- d.hear(stream); cancel() }()
	d.speak(ctx, stream)
	cancel()
	return <-heard
}

// greeting is the hello. Nothing was sent in the new session.
func (d *Drone) greeting() *pb.DroneHello {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.waiting {
		s.sequence = 0
	}
	hello := &pb.DroneHello{DroneId: string(d.cfg.Drone)}
	if t := d.last; t != nil {
		hello.MissionId, hello.MissionRevision, hello.CompletedStops = t.GetCurrentMissionId(), t.GetMissionRevision(), t.CompletedStops
		hello.SupportsAmendments, hello.SupportsStandby = t.GetSupportsAmendments(), t.GetSupportsStandby()
	}
	return hello
}

// speak sends what waits, until ctx ends or the stream does.
func (d *Drone) speak(ctx context.Context, stream grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]) {
	var sequence uint32
	for {
		d.mu.Lock()
		var next *sent
		for _, s := range d.waiting {
			if s.sequence == 0 {
				next = s
				break
			}
		}
		if next != nil {
			sequence++
			next.sequence = sequence
		}
		d.mu.Unlock()
		if next == nil {
			select {
			case <-d.changed:
				continue
			case <-ctx.Done():
				return
			}
		}
		report := &pb.DroneReport{Sequence: next.sequence, Telemetry: next.telemetry}
		if stream.Send(&pb.DroneMessage{Message: &pb.DroneMessage_Report{Report: report}}) != nil {
			return
		}
	}
}

// hear handles what the gateway sends, until the stream ends.
func (d *Drone) hear(stream grpc.BidiStreamingClient[pb.DroneMessage, pb.GatewayMessage]) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *pb.GatewayMessage_Ack:
			d.settle(func(s *sent) bool { return s.sequence <= m.Ack.GetSequence() }, nil)
		case *pb.GatewayMessage_Refusal:
			if n := m.Refusal.GetSequence(); n > 0 {
				d.settle(func(s *sent) bool { return s.sequence == n }, errRefused{m.Refusal})
			}
			if m.Refusal.GetFinal() {
				if d.cfg.Ended != nil {
					d.cfg.Ended(m.Refusal.GetReason())
				}
				return errEnded
			}
		case *pb.GatewayMessage_Command:
			if c, err := commandOf(m.Command); err == nil && d.cfg.Command != nil {
				d.cfg.Command(c)
			}
		case *pb.GatewayMessage_Resume:
			if d.cfg.Resume == nil {
				continue
			}
			if m.Resume.GetMission() == nil {
				d.cfg.Resume(nil, 0)
			} else if c, err := commandOf(&pb.MissionCommand{Mission: m.Resume.GetMission(), Revoke: true}); err == nil {
				d.cfg.Resume(&c.Mission, int(m.Resume.GetCompletedStops()))
			}
		}
	}
}

// settle answers the reports of this session that match.
func (d *Drone) settle(match func(*sent) bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.waiting[:0]
	for _, s := range d.waiting {
		if s.sequence > 0 && match(s) {
			s.err = err
			close(s.done)
			continue
		}
		rest = append(rest, s)
	}
	clear(d.waiting[len(rest):])
	d.waiting = rest
}

// commandOf reads a command as drones on the topic do.
func commandOf(m *pb.MissionCommand) (domain.Command, error) {
	data, err := proto.Marshal(m)
	if err != nil {
		return domain.Command{}, err
	}
	return wire.DecodeCommand(data, map[string]string{wire.AttrContentType: wire.Protobuf.ContentType()})
}
