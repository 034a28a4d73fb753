package dronelink

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/credentials"

	"github.com/dronefleet/dronefleet/adapters/wire"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// WebSocketPath is where drones without gRPC connect.
const WebSocketPath = "/link"

// webLink serves sessions over WebSocket, in JSON.
type webLink struct {
	gateway Gateway
	auth    Authenticator
	open    sync.WaitGroup // sessions
}

// ServeHTTP implements http.Handler.
func (l *webLink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != WebSocketPath {
		fail(w, http.StatusNotFound, "no such path; drones connect to "+WebSocketPath+" by WebSocket, or by gRPC to dronefleet.v1.DroneLink")
		return
	}
	shown := Credentials{Bearer: bearer(r.Header.Get("Authorization"))}
	if r.TLS != nil {
		shown.TLS = &credentials.TLSInfo{State: *r.TLS}
	}
	who, err := l.auth.Authenticate(r.Context(), shown)
	if err != nil {
		code := http.StatusUnauthorized
		if refused, is := errors.AsType[*Refusal](err); is && refused.Reason == Unavailable {
			code = http.StatusServiceUnavailable
		}
		fail(w, code, err.Error())
		return
	}
	l.open.Add(1)
	defer l.open.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil { // Accept has answered
		return
	}
	conn.SetReadLimit(MaxFrame)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	keepAlive(ctx, conn)
	frames := &webFrames{ctx, conn}
	frames.close(serve(ctx, l.gateway, who, frames))
}

// fail answers a request that opens no session.
func fail(w http.ResponseWriter, code int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	body := map[string]any{"title": http.StatusText(code), "status": code, "detail": detail}
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// keepAlive pings the drone until ctx ends, and cuts the connection of one that does not
// answer. It takes a goroutine only while a ping is under way.
func keepAlive(ctx context.Context, conn *websocket.Conn) {
	time.AfterFunc(pings.Time, func() {
		if ctx.Err() != nil {
			return
		}
		waiting, cancel := context.WithTimeout(ctx, pings.Timeout)
		defer cancel()
		if err := conn.Ping(waiting); err != nil {
			_ = conn.CloseNow() // it is gone
			return
		}
		keepAlive(ctx, conn)
	})
}

// webFrames are the messages of a WebSocket.
type webFrames struct {
	ctx  context.Context
	conn *websocket.Conn
}

// Receive implements frames. A report stays JSON, so that what is wrong with it is refused as
// on the topic.
func (f *webFrames) Receive() (upward, error) {
	kind, data, err := f.conn.Read(f.ctx)
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return upward{}, &Refusal{Reason: Undecodable, Text: "the message is too large; send reports one by one"}
	case err != nil:
		return upward{}, err
	case kind != websocket.MessageText:
		return upward{}, &Refusal{Reason: Undecodable, Text: "the message is binary; send JSON as text, or use gRPC"}
	}
	var shape struct {
		Report *struct {
			Sequence  uint32          `json:"sequence"`
			Telemetry json.RawMessage `json:"telemetry"`
		} `json:"report"`
	}
	if err := json.Unmarshal(data, &shape); err == nil && shape.Report != nil {
		return upward{report: &Report{Sequence: shape.Report.Sequence, Data: shape.Report.Telemetry, ContentType: wire.JSON.ContentType()}}, nil
	}
	var m pb.DroneMessage
	if err := wire.DecodeLinkJSON(data, &m); err != nil {
		return upward{}, &Refusal{Reason: Undecodable, Text: err.Error()}
	}
	return upward{hello: m.GetHello(), goodbye: m.GetGoodbye() != nil}, nil
}

// Send implements frames.
func (f *webFrames) Send(m *pb.GatewayMessage) error {
	data, err := wire.EncodeLinkJSON(m)
	if err != nil {
		return err
	}
	return f.conn.Write(f.ctx, websocket.MessageText, data)
}

// Close implements frames. The drone takes its time to close its side.
func (f *webFrames) Close(why *Refusal) { go f.close(why) }

// close closes the connection with a reason and waits until the drone does, for a moment. A second
// call waits for the first.
func (f *webFrames) close(why *Refusal) {
	code, reason := websocket.StatusNormalClosure, ""
	if why != nil {
		code, reason = websocket.StatusPolicyViolation, string(why.Reason)
		if why.RetryAfter > 0 {
			code = websocket.StatusTryAgainLater
		}
	}
	_ = f.conn.Close(code, reason) // the drone may be gone
}
