package dronelink

import (
	"context"
	"errors"
	"time"

	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// frames is a connection whose transport has authenticated the drone. Receive and Send may be
// called at the same time.
type frames interface {
	// Receive returns the next message. A *Refusal says that it cannot be read.
	Receive() (upward, error)
	Send(m *pb.GatewayMessage) error
	// Close lets a Receive that is under way return, now or soon. why is what the drone was told.
	Close(why *Refusal)
}

// upward is a message of a drone. One field is set.
type upward struct {
	hello   *pb.DroneHello
	report  *Report
	goodbye bool
}

// outlet is an Outlet on frames.
type outlet struct{ frames }

func (o outlet) Send(m Message) error { return o.frames.Send(down(m)) }

// helloWithin is how long a drone may take to say hello.
const helloWithin = 10 * time.Second

// serve runs a session of the drone who, until it ends or the connection does. It has told the
// drone why. The caller must then close the connection. It takes no goroutine but the caller's:
// there are thousands of connections.
func serve(ctx context.Context, g Gateway, who Identity, c frames) *Refusal {
	late := time.AfterFunc(helloWithin, func() { c.Close(refuse(c, noHello())) })
	first, err := c.Receive()
	if !late.Stop() {
		return noHello() // as the drone was told
	}
	if err != nil {
		return refuse(c, err)
	}
	session, err := open(ctx, g, who, first, c)
	if err != nil {
		return refuse(c, err)
	}
	var why *Refusal
	if refused, is := errors.AsType[*Refusal](receive(ctx, session, c)); is {
		final := *refused // the session may be sending it
		final.Final = true
		why = &final
	}
	session.Close(why)
	<-session.Ended()
	return session.Why()
}

// refuse tells a drone without a session why there is none. A connection that is gone has no
// reason.
func refuse(c frames, err error) *Refusal {
	refused, is := errors.AsType[*Refusal](err)
	if !is {
		return nil
	}
	refused.Final = true
	_ = c.Send(down(Message{Refusal: refused})) // the connection may be gone
	return refused
}

func noHello() *Refusal {
	return &Refusal{Reason: NoHello, Text: "no hello within " + helloWithin.String() + "; send it as the first message"}
}

// open opens the session of a drone, whose first message must be a hello.
func open(ctx context.Context, g Gateway, who Identity, first upward, c frames) (Session, error) {
	if first.hello == nil {
		return nil, &Refusal{Reason: NoHello, Text: "the first message is not a hello; send hello with the drone_id first"}
	}
	hello, err := readHello(first.hello)
	if err != nil {
		return nil, err
	}
	return g.Open(ctx, who, hello, outlet{c})
}

// receive gives a session what the drone sends, until one of them ends.
func receive(ctx context.Context, session Session, c frames) error {
	for {
		switch m, err := c.Receive(); {
		case err != nil:
			return err
		case m.report != nil:
			if err := session.Report(ctx, *m.report); err != nil {
				return err
			}
		case m.goodbye:
			session.Goodbye()
			return nil
		case m.hello != nil:
			return &Refusal{Reason: Invalid, Text: "a second hello; send one in each session"}
		default:
			return &Refusal{Reason: Invalid, Text: "a message without hello, report or goodbye; send one of them"}
		}
	}
}
