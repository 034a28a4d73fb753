package connect

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc"
)

// A service that is back after ten minutes is found within seconds.
func TestOptions_ReconnectSoonHoweverLongTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := time.Now()
		var longest time.Duration
		opts, err := options("127.0.0.1:1", grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			longest = max(longest, time.Since(last))
			last = time.Now()
			return nil, errors.New("connection refused")
		}))
		if err != nil {
			t.Fatal(err)
		}
		client, err := firestore.NewClient(t.Context(), "p", opts...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := client.Doc("control/decisions").Get(ctx); err == nil {
			t.Error("an answer from nobody")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if longest = max(longest, time.Since(last)); longest > 6*time.Second {
			t.Errorf("nobody asked for the service for %s", longest)
		}
	})
}
