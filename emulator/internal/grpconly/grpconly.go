package grpconly

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Listen returns l with an answer for each client that speaks HTTP/1: hint, one line of text.
func Listen(l net.Listener, hint string) net.Listener { return &listener{l, hint} }

type listener struct {
	net.Listener
	hint string
}

// Accept implements net.Listener. It does not wait for the client's first bytes.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, hint: l.hint}, nil
}

// conn looks at the first bytes of its client before it reads or writes anything else.
type conn struct {
	net.Conn
	hint string

	look  sync.Once
	first []byte // of the client, not read yet
	err   error
}

// preface begins every connection of HTTP/2. No method of HTTP/1 begins like it.
var preface = []byte("PRI ")

var errHTTP1 = errors.New("the client speaks HTTP/1")

// lookAtFirst reads the bytes that tell HTTP/1 from HTTP/2, and answers HTTP/1.
func (c *conn) lookAtFirst() {
	buffer := make([]byte, len(preface))
	for n := 0; n < len(buffer); {
		got, err := c.Conn.Read(buffer[n:])
		n += got
		c.first = buffer[:n]
		if !bytes.HasPrefix(preface, c.first) {
			break
		}
		if err != nil {
			c.err = err
			return
		}
	}
	if len(c.first) > 0 && c.first[0] >= 'A' && c.first[0] <= 'Z' && !bytes.HasPrefix(preface, c.first) {
		c.refuse()
		c.err = errHTTP1
	}
}

// settle bounds how long a refused client may go on sending.
const settle = time.Second

// refuse answers and reads the rest of the request: a connection closed with bytes unread may
// be reset before the client has the answer.
func (c *conn) refuse() {
	_ = c.SetDeadline(time.Now().Add(settle)) // a client that hangs is given up
	body := c.hint + "\n"
	if _, err := fmt.Fprintf(c.Conn, "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body); err != nil {
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		rest := make([]byte, 4<<10)
		for {
			if _, err := c.Conn.Read(rest); err != nil {
				return
			}
		}
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.look.Do(c.lookAtFirst)
	if c.err != nil {
		return 0, c.err
	}
	if len(c.first) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.look.Do(c.lookAtFirst)
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Write(p)
}
