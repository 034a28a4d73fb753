package faultproxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server answers each line with its name and the line, and keeps what it got.
type server struct {
	name     string
	listener net.Listener

	mu  sync.Mutex
	got []string
}

func startServer(t *testing.T, name string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{name: name, listener: listener}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					s.mu.Lock()
					s.got = append(s.got, lines.Text())
					s.mu.Unlock()
					if _, err := fmt.Fprintf(conn, "%s %s\n", name, lines.Text()); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return s
}

func (s *server) received() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, " ")
}

// ask sends a line over a new connection; the answer is empty if there is none.
func ask(t *testing.T, p *TCPProxy, line string) string {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return askOn(conn, line)
}

func askOn(conn net.Conn, line string) string {
	_, _ = fmt.Fprintln(conn, line)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(answer)
}

func start(t *testing.T) (*server, *TCPProxy) {
	s := startServer(t, "a")
	p, err := StartTCP(s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return s, p
}

func has(line string) func([]byte) bool {
	return func(request []byte) bool { return strings.Contains(string(request), line) }
}

func TestTCPProxy_FailsRequestsAsAsked(t *testing.T) {
	for _, row := range []struct {
		name     string
		fault    TCPFault
		answer   string
		received string
	}{
		{"none", TCPFault{}, "a two", "one two three"},
		{"cut before", TCPFault{CutBefore: true}, "", "one three"},
		{"cut after", TCPFault{CutAfter: true}, "", "one two three"},
		{"reply", TCPFault{Reply: []byte("-READONLY\n")}, "-READONLY", "one three"},
		{"delay", TCPFault{Delay: time.Millisecond}, "a two", "one two three"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, p := start(t)
			var hooked atomic.Int32
			p.Add(TCPRule{Match: has("two"), Do: row.fault, Hook: func() { hooked.Add(1) }})
			first, second, third := ask(t, p, "one"), ask(t, p, "two"), ask(t, p, "three")
			if err := p.Settle(context.Background()); err != nil {
				t.Fatal(err)
			}
			if first != "a one" || second != row.answer || third != "a three" || s.received() != row.received || hooked.Load() != 1 || p.Requests() != 3 {
				t.Errorf("answers %q %q %q, received %q, hooked %d, requests %d", first, second, third, s.received(), hooked.Load(), p.Requests())
			}
		})
	}
}

func TestTCPProxy_SkipsAndCounts(t *testing.T) {
	s, p := start(t)
	p.Add(TCPRule{Skip: 1, Times: 1, Do: TCPFault{CutBefore: true}})
	answers := ask(t, p, "1") + "|" + ask(t, p, "2") + "|" + ask(t, p, "3")
	if want := "a 1||a 3"; answers != want || s.received() != "1 3" {
		t.Errorf("answers %q, received %q", answers, s.received())
	}
}

func TestTCPProxy_SwallowsUntilTheConnectionEnds(t *testing.T) {
	for name, fault := range map[string]TCPFault{"request": {BlackHole: true}, "reply": {HoldReply: true}} {
		t.Run(name, func(t *testing.T) {
			s, p := start(t)
			arrived := make(chan struct{})
			p.Add(TCPRule{Match: has("lost"), Times: 1, Do: fault, Hook: func() { close(arrived) }})
			conn, err := net.Dial("tcp", p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintln(conn, "lost")
			<-arrived
			if answer := ask(t, p, "other"); answer != "a other" {
				t.Errorf("another connection got %q", answer)
			}
			p.Cut()
			if rest, _ := io.ReadAll(conn); len(rest) > 0 {
				t.Errorf("the silent connection got %q", rest)
			}
			if err := p.Settle(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(s.received(), "lost"); got != fault.HoldReply {
				t.Errorf("the server got %q", s.received())
			}
		})
	}
}

func TestTCPProxy_RefusesUntilCleared(t *testing.T) {
	_, p := start(t)
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer := askOn(conn, "open"); answer != "a open" {
		t.Fatal(answer)
	}
	p.Refuse()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("an open connection was not cut")
	}
	if answer := ask(t, p, "refused"); answer != "" {
		t.Errorf("a new connection got %q", answer)
	}
	p.Clear()
	p.Redirect(startServer(t, "b").listener.Addr().String())
	if answer := ask(t, p, "again"); answer != "b again" {
		t.Errorf("after Clear and Redirect: %q", answer)
	}
}
