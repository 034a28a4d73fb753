package grpconly_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/dronefleet/dronefleet/emulator/internal/grpconly"
)

const hint = "this server speaks gRPC only"

func serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(grpconly.Listen(l, hint))
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// F-KIT-02: HTTP/1 gets the hint, also with a body larger than what the server reads; gRPC works
// beside it.
func TestListen_AnswersHTTP1(t *testing.T) {
	t.Parallel()
	addr := serve(t)
	for _, request := range []func() (*http.Response, error){
		func() (*http.Response, error) { return http.Get("http://" + addr + "/") },
		func() (*http.Response, error) {
			return http.Post("http://"+addr+"/v1/projects/p/topics/t:publish", "application/json", strings.NewReader(strings.Repeat("x", 200_000)))
		},
	} {
		resp, err := request()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusHTTPVersionNotSupported || string(body) != hint+"\n" || err != nil {
			t.Errorf("answer %s %q %v", resp.Status, body, err)
		}
	}
	client, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := grpc_health_v1.NewHealthClient(client).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
}

// A client that sends the preface byte by byte is not taken for HTTP/1, and one that leaves
// early keeps nothing open.
func TestListen_WaitsForSlowClients(t *testing.T) {
	t.Parallel()
	addr := serve(t)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, b := range []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00") {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	frame := make([]byte, 9)
	if _, err := io.ReadFull(c, frame); err != nil || frame[3] != 4 { // SETTINGS
		t.Errorf("the server sent %x, %v; want a SETTINGS frame", frame, err)
	}
	early, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	early.Close()
}
