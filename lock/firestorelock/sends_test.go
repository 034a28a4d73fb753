package firestorelock

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/lock"
)

// The client library sends a commit again when the connection breaks, whether or not the
// server got the first one.
func TestSendCounter_CountsEachSendingOfACommit(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{"lost": {Before: codes.Unavailable}, "applied": {After: codes.Unavailable}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			client := clientOf(t, r.proxy.Addr(), r.project)
			r.proxy.Add(faultproxy.Rule{RPC: "Commit", Skip: 1, Times: 2, Do: fault})
			for i, want := range []int64{1, 3, 1} {
				ctx, sent := countSends(t.Context())
				if _, err := client.Doc("sends/a").Set(ctx, map[string]any{"i": i}); err != nil {
					t.Fatal(err)
				}
				if n := sent.sent.Load(); n != want || sent.repeated() != (want > 1) {
					t.Errorf("commit %d counts as sent %d times, want %d", i, n, want)
				}
			}
		})
	}
}

// Without DialOption no commit counts as resent, and one log line asks for the option.
func TestDialOption_IsAskedForIfItIsMissing(t *testing.T) {
	conn, err := grpc.NewClient(serverAddr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(asOwner), grpc.WithStreamInterceptor(asOwnerStream))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client, err := firestore.NewClient(t.Context(), freshProject(), option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var out bytes.Buffer
	b := newBackend(t, client, Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	for range 3 {
		mustRelease(t, b, lock.Ref{LockID: mustAcquire(t, b, "k").LockID, Key: "k"})
	}
	settle(t, b)
	if text := out.String(); strings.Count(text, "DialOption") != 1 {
		t.Errorf("the log has\n%s", text)
	}
}
