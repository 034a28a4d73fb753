package httpapi

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
)

// problemListener turns the plain-text errors that net/http answers by itself into problem
// documents: requests whose header is too large or cannot be parsed reach no handler.
type problemListener struct {
	net.Listener
	headerBytes int
}

// Accept implements net.Listener.
func (l problemListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return problemConn{conn, l.headerBytes}, nil
}

type problemConn struct {
	net.Conn
	headerBytes int
}

// plainError is such an answer, which net/http writes at once. No handler's answer
// looks like it: those have more headers.
var plainError = regexp.MustCompile(`(?s)^HTTP/1\.1 ([45]\d\d) [^\r\n]*\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n(?:\d{3} [^:]*: )?(.*)$`)

// Write implements net.Conn.
func (c problemConn) Write(data []byte) (int, error) {
	match := plainError.FindSubmatch(data)
	if match == nil {
		return c.Conn.Write(data)
	}
	status, err := strconv.Atoi(string(match[1]))
	if err != nil {
		return c.Conn.Write(data)
	}
	p := problem(status, "the request cannot be parsed: %s; send HTTP/1.1 as in RFC 9112", match[2])
	if status == http.StatusRequestHeaderFieldsTooLarge {
		p = problem(status, "the header has more than %d bytes; send fewer or shorter fields", c.headerBytes)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return c.Conn.Write(data)
	}
	if _, err := fmt.Fprintf(c.Conn, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), problemType, len(body)+1, body); err != nil {
		return 0, err
	}
	return len(data), nil
}

// CloseWrite lets the client read the answer before the connection is closed.
func (c problemConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
