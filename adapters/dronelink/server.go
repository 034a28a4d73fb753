package dronelink

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Server serves both transports on one address: gRPC to clients that speak HTTP/2, WebSocket
// to others.
type Server struct {
	grpc *grpc.Server
	http *http.Server
	web  *webLink
	tls  *tls.Config // nil for none
	log  *slog.Logger
}

// NewServer returns a server. Without TLS something in front of it must provide it.
func NewServer(g Gateway, auth Authenticator, config *tls.Config, log *slog.Logger) *Server {
	s := &Server{log: log, web: &webLink{gateway: g, auth: auth}}
	if config != nil {
		s.tls = config.Clone()
		s.tls.MinVersion, s.tls.NextProtos = tls.VersionTLS12, []string{alpnH2, "http/1.1"}
		// The Authenticator verifies certificates: it can say what is wrong with one.
		s.tls.ClientAuth = tls.RequestClientCert
	}
	s.grpc = newGRPC(g, auth, grpc.Creds(accepted{}))
	s.http = &http.Server{
		Handler: s.web, ReadHeaderTimeout: helloWithin, IdleTimeout: helloWithin, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve accepts connections until the listener is closed, or Close is called.
func (s *Server) Serve(listener net.Listener) error {
	h2, h1 := newHandover(listener), newHandover(listener)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.grpc.Serve(h2) }) // both end when the listener does
	serving.Go(func() { _ = s.http.Serve(h1) })
	defer serving.Wait()
	defer h1.Close()
	defer h2.Close()
	for pause := acceptPause; ; {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			// Too many open files, or a client that is gone already.
			s.log.Warn("connection not accepted", slog.Any("err", err))
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = acceptPause
		go s.greet(conn, h2, h1)
	}
}

// acceptPause follows a connection that could not be accepted; it doubles, to a second, while that
// goes on.
const acceptPause = 10 * time.Millisecond

// Close ends the connections once what their sessions have told the drones is sent, or when ctx
// ends. Drain the gateway first: it ends the sessions.
func (s *Server) Close(ctx context.Context) {
	var closing sync.WaitGroup
	closing.Go(s.grpc.GracefulStop)
	closing.Go(s.web.open.Wait)
	told := make(chan struct{})
	go func() { closing.Wait(); close(told) }()
	select {
	case <-told:
	case <-ctx.Done():
	}
	s.grpc.Stop()
	_ = s.http.Close() // what is left is of no use
}

// greet finds out what a client speaks and hands its connection over.
func (s *Server) greet(conn net.Conn, h2, h1 *handover) {
	_ = conn.SetDeadline(time.Now().Add(helloWithin)) // a closed connection shows in what follows
	var speaksH2 bool
	var err error
	if s.tls != nil {
		secure := tls.Server(conn, s.tls)
		err = secure.Handshake()
		conn, speaksH2 = secure, secure.ConnectionState().NegotiatedProtocol == alpnH2
	} else {
		plain := &peeked{Conn: conn, reader: bufio.NewReaderSize(conn, 16)}
		var begin []byte
		begin, err = plain.reader.Peek(len(h2Begin))
		conn, speaksH2 = plain, string(begin) == h2Begin
	}
	if err != nil {
		s.log.Debug("connection refused", slog.String("address", conn.RemoteAddr().String()), slog.Any("err", err))
		_ = conn.Close() // its failure is logged
		return
	}
	_ = conn.SetDeadline(time.Time{})
	to := h1
	if speaksH2 {
		to = h2
	}
	to.give(conn)
}

// alpnH2 is HTTP/2 in the negotiation of TLS (RFC 7301).
const alpnH2 = "h2"

// h2Begin is how HTTP/2 begins without TLS, and no request of HTTP/1.
const h2Begin = "PRI "

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	reader *bufio.Reader // nil once it is empty
}

// Read implements net.Conn. It is called by one goroutine at a time.
func (c *peeked) Read(b []byte) (int, error) {
	if c.reader == nil {
		return c.Conn.Read(b)
	}
	if n := c.reader.Buffered(); n > 0 {
		return c.reader.Read(b[:min(n, len(b))])
	}
	c.reader = nil
	return c.Conn.Read(b)
}

// handover is a listener of connections that were accepted elsewhere.
type handover struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHandover(l net.Listener) *handover {
	return &handover{Listener: l, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *handover) give(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.closed:
		_ = conn.Close() // nobody serves it
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It closes the listener that accepts, too.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.Listener.Close()
}

// accepted are the credentials of connections that greet has accepted.
type accepted struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (accepted) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info := credentials.TLSInfo{}
	if secure, is := conn.(*tls.Conn); is {
		info.State = secure.ConnectionState()
		info.SecurityLevel = credentials.PrivacyAndIntegrity
	}
	return conn, info, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (accepted) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are credentials of a server")
}

// Info implements credentials.TransportCredentials.
func (accepted) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (a accepted) Clone() credentials.TransportCredentials { return a }

// OverrideServerName implements credentials.TransportCredentials.
func (accepted) OverrideServerName(string) error { return nil }
