package dronelink

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Gateway is the fleet's side of the link. Its methods are safe for concurrent use.
type Gateway interface {
	// Open begins a session of the drone who, which has said hello. It ends the drone's other
	// session, if there is one. From then on the gateway sends messages to out, until the
	// session has ended. The error is a *Refusal, for the transport to tell.
	Open(ctx context.Context, who Identity, hello Hello, out Outlet) (Session, error)
	// Publish publishes a report of a drone that has no session. It waits while too many
	// reports are on their way. The error is a *Refusal of this report, or that of ctx.
	Publish(ctx context.Context, who domain.DroneID, r Report) (Receipt, error)
}

// Session is a drone's session, used by one transport. Report and Goodbye must not be called
// at the same time; Close and Ended may.
type Session interface {
	// Report takes the next report. It waits while too many are on their way or the drone
	// sends too many, so that the transport reads no more. The error says that the session has
	// ended or that ctx has.
	Report(ctx context.Context, r Report) error
	// Goodbye ends the session as the drone wishes.
	Goodbye()
	// Close ends the session. why is told to the drone; nil if the connection is gone.
	Close(why *Refusal)
	// Ended is closed once the session has ended and the drone was told, or did not read; the
	// Outlet is closed then. The transport must close the connection.
	Ended() <-chan struct{}
	// Why is what ended the session; nil if the drone or its connection did.
	Why() *Refusal
}

// Outlet carries messages to the drone. Send is called by one goroutine at a time. It may
// wait for the drone to read, and must return once the connection is closed.
type Outlet interface {
	Send(m Message) error
	// Close is called once the session has ended, for the reason why, so that the transport
	// waits for the drone no longer. It returns at once.
	Close(why *Refusal)
}

// Receipt waits until Pub/Sub has a report. The error is a *Refusal or that of ctx.
type Receipt interface {
	Wait(ctx context.Context) error
}

// Identity is the drone that a connection belongs to, as the transport has authenticated it.
type Identity struct {
	Drone domain.DroneID
	// Method says how, for the log: certificate, key or token.
	Method string
	// Until is when the proof expires; zero for never.
	Until time.Time
	// Holds returns a *Refusal once the proof is revoked, and nil otherwise, also if that
	// cannot be found out now. Nil for a proof that cannot be revoked.
	Holds func(context.Context) error
}

// Hello is what a drone says first.
type Hello struct {
	Drone domain.DroneID
	// What the drone believes to fly; empty if it has no mission.
	Mission        domain.MissionID
	Revision       int
	CompletedStops int
	// Capabilities, as in domain.Telemetry.
	SupportsAmendments, SupportsStandby bool
}

// Report is a report as the drone sent it.
type Report struct {
	// Sequence numbers the reports of a session; 0 outside one.
	Sequence uint32
	// Data is a DroneTelemetry message, and ContentType its form as in the attribute of
	// messages; empty to find out.
	Data        []byte
	ContentType string
}

// Message is what the gateway tells a drone. One field is set.
type Message struct {
	Welcome *Welcome
	Command *domain.Command
	// Ack is the highest number up to which every report is settled.
	Ack     uint32
	Refusal *Refusal
	Resume  *Resume
}

// Welcome is the first message of a session.
type Welcome struct {
	Session string
	At      time.Time
}

// Resume is the drone's mission as the store has it; nil for none.
type Resume struct {
	Mission        *domain.Mission
	CompletedStops int
}

// Reason is why the gateway refuses something.
type Reason string

// The reasons. docs/link.md explains each to drone makers.
const (
	Unauthenticated  Reason = "UNAUTHENTICATED"
	IdentityMismatch Reason = "IDENTITY_MISMATCH"
	Expired          Reason = "EXPIRED"
	Revoked          Reason = "REVOKED"
	Superseded       Reason = "SUPERSEDED"
	Invalid          Reason = "INVALID"
	Undecodable      Reason = "UNDECODABLE"
	FutureTimestamp  Reason = "FUTURE_TIMESTAMP"
	NoHello          Reason = "NO_HELLO"
	SlowDown         Reason = "SLOW_DOWN"
	NotReading       Reason = "NOT_READING"
	Unregistered     Reason = "DRONE_UNREGISTERED"
	Unavailable      Reason = "UNAVAILABLE"
	Reconnect        Reason = "RECONNECT"
	Full             Reason = "FULL"
)

// Reasons lists them all.
var Reasons = []Reason{
	Unauthenticated, IdentityMismatch, Expired, Revoked, Superseded, Invalid, Undecodable, FutureTimestamp, NoHello, SlowDown, NotReading,
	Unregistered, Unavailable, Reconnect, Full,
}

// Refusal says what the gateway does not take and what to do. It is an error.
type Refusal struct {
	Sequence   uint32 // of the refused report; 0 if it is about the session
	Reason     Reason
	Text       string // what is wrong; what to do
	Final      bool   // it ends the session
	RetryAfter time.Duration
}

// Error implements error.
func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Text }
