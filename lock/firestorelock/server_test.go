package firestorelock

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

// serverAddr is the server under the tests: the one of FIRESTORE_EMULATOR_HOST,
// else an embedded one.
var serverAddr string

// official tells whether that server is not the embedded one.
var official bool

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// Most tests wait for leases and slow networks: more of them than cores run at once.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("16"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	serverAddr = os.Getenv("FIRESTORE_EMULATOR_HOST")
	// Or the client library dials it by itself, beside the connection it is given.
	if err := os.Unsetenv("FIRESTORE_EMULATOR_HOST"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stop := func() error { return nil }
	official = serverAddr != ""
	if !official {
		server, err := firestoreemu.Start(firestoreemu.Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		serverAddr, stop = server.Addr(), server.Close
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := leaktest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var databases atomic.Int64

// newClient returns a client of a fresh database at an address.
func newClient(tb testing.TB, addr string) *firestore.Client {
	tb.Helper()
	return clientOf(tb, addr, freshProject())
}

func freshProject() string {
	return fmt.Sprintf("lock-%d-%d", os.Getpid(), databases.Add(1))
}

func clientOf(tb testing.TB, addr, project string, opts ...grpc.DialOption) *firestore.Client {
	tb.Helper()
	c, _ := dial(tb, addr, project, opts...)
	return c
}

// dial returns a client and its only connection.
func dial(tb testing.TB, addr, project string, opts ...grpc.DialOption) (*firestore.Client, *grpc.ClientConn) {
	tb.Helper()
	conn, err := grpc.NewClient(addr, append(opts,
		DialOption(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(asOwner),
		grpc.WithStreamInterceptor(asOwnerStream))...)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := firestore.NewClient(context.Background(), project, option.WithGRPCConn(conn))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = c.Close()
		_ = conn.Close()
	})
	return c, conn
}

// asOwner gives requests the rights of the project's owner on Google's emulator.
func asOwner(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(owner(ctx), method, req, reply, cc, opts...)
}

func asOwnerStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return stream(owner(ctx), desc, cc, method, opts...)
}

func owner(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner")
}

// newBackend returns a backend on a client; the test waits for its background
// work.
func newBackend(tb testing.TB, c *firestore.Client, cfg Config) *Backend {
	tb.Helper()
	b, err := New(c, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// rig is a backend behind a fault proxy, and one beside it.
type rig struct {
	project string
	proxy   *faultproxy.Proxy
	faulty  *Backend
	direct  *Backend
	client  *firestore.Client // direct
}

func newRig(tb testing.TB, cfg Config) rig {
	tb.Helper()
	return newRigAt(tb, serverAddr, cfg)
}

// newRigAt is newRig on a server of its own.
func newRigAt(tb testing.TB, addr string, cfg Config) rig {
	tb.Helper()
	proxy, err := faultproxy.Start(addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			tb.Error(err)
		}
	})
	project := freshProject()
	direct := clientOf(tb, addr, project)
	return rig{
		project: project,
		proxy:   proxy,
		faulty:  newBackend(tb, clientOf(tb, proxy.Addr(), project), cfg),
		direct:  newBackend(tb, direct, cfg),
		client:  direct,
	}
}

// onlyLong leaves a test to the gate, as testkit/longtest does, which the library must not
// import.
func onlyLong(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("LONG_TESTS") == "" {
		t.Skip("left to the gate: " + why + "; set LONG_TESTS=1 to run it")
	}
}
