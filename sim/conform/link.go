package conform

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/devca"
)

// certificateRule is where the certificate of a drone names it.
const certificateRule = "uri:drone:" + dronelink.DroneMark

// Link is a Line over the drone link, by gRPC or WebSocket. It stands where a gateway stands, but
// passes every command on: a gateway keeps expired and repeated ones from drones.
type Link struct {
	*droneTime
	Directory string // of the certificates: ca.crt, and the drone's .crt and .key
	Token     string // that the drone may send instead of its certificate

	id       domain.DroneID
	rule     dronelink.CertificateRule
	roots    *devca.CA
	server   *dronelink.Server
	serving  sync.WaitGroup
	messages chan Message

	mu      sync.Mutex
	session *linkSession // nil while the drone is not connected
	mission *domain.Mission
	reached int
}

// OpenLink serves the link for one drone; speed is that of its time. Close ends it.
func OpenLink(listener net.Listener, id domain.DroneID, speed float64, log *slog.Logger) (l *Link, err error) {
	l = &Link{droneTime: newDroneTime(id, speed), id: id, Token: "exam_" + rand.Text(), messages: make(chan Message, messageQueue)}
	if l.rule, err = dronelink.ParseCertificateRule(certificateRule); err != nil {
		return nil, err
	}
	if l.roots, err = devca.New(time.Now); err != nil {
		return nil, err
	}
	certificate, err := l.roots.Server()
	if err != nil {
		return nil, err
	}
	if l.Directory, err = os.MkdirTemp("", "dronefleet-conform-"); err != nil {
		return nil, err
	}
	if err := l.writeCertificates(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.Directory))
	}
	l.server = dronelink.NewServer(l, l, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, log)
	l.serving.Go(func() { _ = l.server.Serve(listener) }) // until Close
	return l, nil
}

func (l *Link) writeCertificates() error {
	if err := l.roots.Write(l.Directory); err != nil {
		return err
	}
	drone, err := l.roots.Client(strings.Replace(strings.TrimPrefix(certificateRule, "uri:"), dronelink.DroneMark, string(l.id), 1))
	if err != nil {
		return err
	}
	return devca.Write(l.Directory, string(l.id), drone)
}

// Close ends the session and the server.
func (l *Link) Close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if s := l.connected(); s != nil {
		s.Close(&dronelink.Refusal{Reason: dronelink.Reconnect, Text: "the examination is over", Final: true})
	}
	l.server.Close(now)
	l.serving.Wait()
	return os.RemoveAll(l.Directory)
}

// Authenticate implements dronelink.Authenticator.
func (l *Link) Authenticate(_ context.Context, c dronelink.Credentials) (dronelink.Identity, error) {
	switch c.Bearer {
	case "":
		return dronelink.Certificates{Roots: l.roots.Roots(), Rule: l.rule}.Authenticate(c, time.Now())
	case l.Token:
		return dronelink.Identity{Drone: l.id, Method: "token"}, nil
	}
	return dronelink.Identity{}, &dronelink.Refusal{Reason: dronelink.Unauthenticated, Text: "unknown token; send the one that the examination printed", Final: true}
}

// Open implements dronelink.Gateway.
func (l *Link) Open(_ context.Context, who dronelink.Identity, hello dronelink.Hello, out dronelink.Outlet) (dronelink.Session, error) {
	if hello.Drone != who.Drone || who.Drone != l.id {
		return nil, &dronelink.Refusal{Reason: dronelink.IdentityMismatch, Final: true, Text: fmt.Sprintf("hello: drone_id is %q, and %q is examined", hello.Drone, l.id)}
	}
	s := &linkSession{link: l, queue: make(chan dronelink.Message, linkQueue), closing: make(chan struct{}), ended: make(chan struct{})}
	l.mu.Lock()
	older := l.session
	l.session = s
	resume := &dronelink.Resume{Mission: l.mission, CompletedStops: l.reached}
	l.mu.Unlock()
	if older != nil {
		older.Close(&dronelink.Refusal{Reason: dronelink.Superseded, Text: "the drone has connected again", Final: true})
	}
	s.tell(dronelink.Message{Welcome: &dronelink.Welcome{Session: uuid.NewString(), At: l.Now()}})
	s.tell(dronelink.Message{Resume: resume})
	go s.send(out)
	return s, nil
}

// Publish implements dronelink.Gateway; the link has no reports outside sessions.
func (l *Link) Publish(context.Context, domain.DroneID, dronelink.Report) (dronelink.Receipt, error) {
	return nil, &dronelink.Refusal{Reason: dronelink.NoHello, Text: "connect by gRPC or WebSocket", Final: true}
}

// Stand implements Standing.
func (l *Link) Stand(m *domain.Mission, reached int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mission, l.reached = copied(m), reached
}

// copied is a mission that does not change; nil for none.
func copied(m *domain.Mission) *domain.Mission {
	if m == nil {
		return nil
	}
	c := *m
	return &c
}

func (l *Link) connected() *linkSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Send implements Line. Commands of other drones do not come over the link. What a drone that is
// not connected misses is lost.
func (l *Link) Send(_ context.Context, c domain.Command) error {
	if s := l.connected(); s != nil && c.Mission.DroneID == l.id {
		s.tell(dronelink.Message{Command: &c})
	}
	return nil
}

// Next implements Line.
func (l *Link) Next(ctx context.Context) (Message, bool, error) {
	return l.next(ctx, l.messages)
}

// linkQueue is how many messages wait for a drone that does not read.
const linkQueue = 256

// linkSession is one session of the drone.
type linkSession struct {
	link    *Link
	queue   chan dronelink.Message
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once
	why     *dronelink.Refusal // once closing is closed
}

// tell queues a message for the drone.
func (s *linkSession) tell(m dronelink.Message) {
	select {
	case s.queue <- m:
	default:
		go s.Close(&dronelink.Refusal{Reason: dronelink.NotReading, Text: "read faster", Final: true})
	}
}

// send sends what is queued until the session ends.
func (s *linkSession) send(out dronelink.Outlet) {
	defer func() { close(s.ended); out.Close(s.Why()) }()
	for {
		select {
		case m := <-s.queue:
			if out.Send(m) != nil {
				return // the transport sees that the connection is gone
			}
		case <-s.closing:
			if s.why != nil {
				_ = out.Send(dronelink.Message{Refusal: s.why}) // the connection may be gone
			}
			return
		}
	}
}

// Report implements dronelink.Session.
func (s *linkSession) Report(ctx context.Context, r dronelink.Report) error {
	attrs := map[string]string{wire.AttrSender: string(s.link.id)}
	if r.ContentType != "" {
		attrs[wire.AttrContentType] = r.ContentType
	}
	s.link.meet(r.Data, attrs)
	select {
	case s.link.messages <- Message{Data: r.Data, Attributes: attrs, Arrived: s.link.Now()}:
		s.tell(dronelink.Message{Ack: r.Sequence})
		return nil
	case <-s.closing:
		return errors.New("the session has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Goodbye implements dronelink.Session.
func (s *linkSession) Goodbye() { s.Close(nil) }

// Close implements dronelink.Session.
func (s *linkSession) Close(why *dronelink.Refusal) {
	s.once.Do(func() {
		s.why = why
		close(s.closing)
		s.link.mu.Lock()
		if s.link.session == s {
			s.link.session = nil
		}
		s.link.mu.Unlock()
	})
}

// Ended implements dronelink.Session.
func (s *linkSession) Ended() <-chan struct{} { return s.ended }

// Why implements dronelink.Session.
func (s *linkSession) Why() *dronelink.Refusal {
	select {
	case <-s.closing:
		return s.why
	default:
		return nil
	}
}
