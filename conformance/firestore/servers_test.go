package conformance

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// startupPatience bounds the start of the official emulator, which runs on Java.
const startupPatience = 90 * time.Second

// startEmbedded starts an embedded server for one test and returns its address.
func startEmbedded(t testing.TB) string {
	t.Helper()
	return firestoreemu.StartT(t, firestoreemu.Options{}).Addr()
}

// officialEmulator finds or starts Google's emulator once.
type officialEmulator struct {
	once    sync.Once
	addr    string
	missing string // why there is none
	broken  error  // why the requested one does not work
	process *exec.Cmd
}

// address returns host:port of the official emulator: the one that
// FIRESTORE_OFFICIAL_EMULATOR names, else one started for these tests, in the gate and where
// it is installed. Without either it skips the test.
func (o *officialEmulator) address(t testing.TB) string {
	t.Helper()
	if os.Getenv("FIRESTORE_OFFICIAL_EMULATOR") == "" {
		longtest.Only(t, "starts the official emulator")
	}
	o.once.Do(o.find)
	if o.broken != nil {
		t.Fatalf("FIRESTORE_OFFICIAL_EMULATOR: %v", o.broken)
	}
	if o.missing != "" {
		t.Skip("no official Firestore emulator: " + o.missing)
	}
	return o.addr
}

func (o *officialEmulator) find() {
	given := os.Getenv("FIRESTORE_OFFICIAL_EMULATOR")
	if _, _, err := net.SplitHostPort(given); err == nil {
		o.addr = given
		return
	}
	launcher := given
	if launcher == "" {
		launcher = installedLauncher()
	}
	if launcher == "" {
		o.missing = "not installed; set FIRESTORE_OFFICIAL_EMULATOR to its host:port or launcher"
		return
	}
	if _, err := exec.LookPath("java"); err != nil {
		o.missing = "java is not installed"
		return
	}
	err := o.start(launcher)
	switch {
	case err == nil:
	case given != "":
		o.broken = err
	default:
		o.missing = err.Error()
	}
}

// installedLauncher returns the launcher in an installed gcloud, or "".
func installedLauncher() string {
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		return ""
	}
	if gcloud, err = filepath.EvalSymlinks(gcloud); err != nil {
		return ""
	}
	launcher := filepath.Join(filepath.Dir(gcloud), "..", "platform", "cloud-firestore-emulator", "cloud_firestore_emulator")
	if _, err := os.Stat(launcher); err != nil {
		return ""
	}
	return launcher
}

func (o *officialEmulator) start(launcher string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o.addr = listener.Addr().String()
	host, port, _ := net.SplitHostPort(o.addr)
	if err := listener.Close(); err != nil {
		return err
	}
	o.process = exec.Command(launcher, "start", "--host="+host, "--port="+port)
	o.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the launcher is a script around java
	if err := o.process.Start(); err != nil {
		o.process = nil
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startupPatience)
	defer cancel()
	conn, err := dial(o.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = pb.NewFirestoreClient(conn).ListCollectionIds(ctx,
		&pb.ListCollectionIdsRequest{Parent: "projects/start/databases/(default)/documents"}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("%s did not start: %w", launcher, err)
	}
	return nil
}

// stop ends the process that start started. Do not call it concurrently with address.
func (o *officialEmulator) stop() {
	if o.process == nil {
		return
	}
	_ = syscall.Kill(-o.process.Process.Pid, syscall.SIGKILL)
	_ = o.process.Wait() // reports the kill
}

// dial connects as an administrator, who is exempt from security rules.
func dial(addr string) (*grpc.ClientConn, error) {
	owner := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner")
	}
	return grpc.NewClient(strings.TrimPrefix(addr, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoker(owner(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(owner(ctx), desc, cc, method, opts...)
		}),
	)
}

// mustDial is dial for one test.
func mustDial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}
