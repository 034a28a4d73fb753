package pubsubio

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// F-ACK-01: a subscription that is interrupted is asked for again after a pause,
// and the log says so, whether the client names an error or none.
func TestWorker_PausesBeforeReceivingAgain(t *testing.T) {
	for name, failure := range map[string]error{
		"an error": status.Error(codes.FailedPrecondition, "detached"),
		"no error": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				w := &Worker{log: slog.New(slog.NewTextHandler(&log, nil))}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				began := time.Now()
				var after []time.Duration
				w.keepReceiving(ctx, t.Context(), TopicOrders, func() error {
					if after = append(after, time.Since(began)); len(after) == 4 {
						stop()
					}
					return failure
				})
				if after[1] < 500*time.Millisecond || after[3] > 10*time.Second {
					t.Errorf("begun after %v, want pauses of a few seconds", after)
				}
				if n := strings.Count(log.String(), "subscription interrupted; retrying"); n != 3 || strings.Contains(log.String(), "err=<nil>") {
					t.Errorf("%d lines:\n%s", n, log.String())
				}
			})
		})
	}
}

// F-API-01: a subscription that was deleted, or that the account may not consume, is
// an outage until it can be consumed again.
func TestWorker_ReportsASubscriptionItCannotConsume(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.NotFound:         "subscription orders-statemanager does not exist; " + Remedy,
		codes.PermissionDenied: "if it was deleted, " + Remedy,
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			w := &Worker{log: slog.New(slog.NewTextHandler(&log, nil))}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			tries := 0
			var atFirst []error // when it is there again
			go func() {
				defer close(done)
				w.keepReceiving(ctx, t.Context(), TopicOrders, func() error {
					if tries++; tries > 3 {
						atFirst = w.Outages()
						<-ctx.Done()
						return nil
					}
					return status.Error(code, "gone")
				})
			}()
			synctest.Wait()
			if f := w.Outages(); len(f) != 1 || !strings.Contains(f[0].Error(), want) {
				t.Errorf("%s: outages %v, want %q", code, f, want)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(atFirst) != 1 {
				t.Errorf("%s: outages %v as soon as the client tries again, want one", code, atFirst)
			}
			if f := w.Outages(); len(f) > 0 || tries != 4 {
				t.Errorf("%s: after %d tries the outages are %v", code, tries, f)
			}
			if n := strings.Count(log.String(), "subscription cannot be consumed"); n != 1 {
				t.Errorf("%s: logged %d times:\n%s", code, n, log.String())
			}
			stop()
			<-done
		})
	}
}
