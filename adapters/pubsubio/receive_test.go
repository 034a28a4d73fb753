package pubsubio

import (
	"bytes"
	"context"
	"errors"
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
func TestWorker_PausesBeforeItReceivesAgain(t *testing.T) {
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
				err := w.keepReceiving(ctx, t.Context(), TopicOrders, func() error {
					if after = append(after, time.Since(began)); len(after) == 4 {
						stop()
					}
					return failure
				})
				if err != nil {
					t.Error(err)
				}
				if after[3] != 3*time.Second {
					t.Errorf("begun after %v, want once a second", after)
				}
				if n := strings.Count(log.String(), "subscription interrupted; trying again"); n != 3 || strings.Contains(log.String(), "err=<nil>") {
					t.Errorf("%d lines:\n%s", n, log.String())
				}
			})
		})
	}
}

// A subscription that is not there, or not for this account, is given up at once.
func TestWorker_GivesUpAForbiddenSubscription(t *testing.T) {
	refused := status.Error(codes.PermissionDenied, "not yours")
	w := &Worker{log: slog.New(slog.DiscardHandler)}
	if err := w.keepReceiving(t.Context(), t.Context(), TopicOrders, func() error { return refused }); !errors.Is(err, refused) || !strings.Contains(err.Error(), "orders-statemanager") {
		t.Errorf("error %v", err)
	}
}
