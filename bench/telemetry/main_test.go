package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

// Flags with which nothing could be measured are refused.
func TestMain_RefusesBadFlags(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--skip=foo":                    "--skip",
		"--duration=-1s":                "duration (flag --duration)",
		"--backlog=0":                   "backlog (flag --backlog)",
		"--backlog=9223372036854775807": "backlog (flag --backlog)",
		"--drones=9223372036854775807":  "drones (flag --drones)",
		"--hz=Inf":                      "hz (flag --hz)",
		"--burst=Inf":                   "burst (flag --burst)",
	})
}

// A worker that fails ends the measurement at once with its error: the messages would
// never be settled.
func TestCommand_EndsWithErrorOfWorker(t *testing.T) {
	t.Setenv(connect.FirestoreHost, "")
	t.Setenv(connect.PubSubHost, "")
	broken := errors.New("broken")
	fail := func(context.Context, *connect.Clients) error { return broken }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := &command{Drones: 2, Hz: 1, Duration: time.Hour}
	if _, err := c.drain(ctx, "drain", 3, fail); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("drain ended with %v", err)
	}
	if err := c.sustain(ctx, fail); !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("the sustained load ended with %v", err)
	}
}

// A failed publish ends the sustained load at once with its error: the report would
// never be settled.
func TestSustain_EndsWithErrorOfPublisher(t *testing.T) {
	t.Setenv(connect.FirestoreHost, "")
	t.Setenv(connect.PubSubHost, "")
	noTopic := func(ctx context.Context, clients *connect.Clients) error {
		topic := fmt.Sprintf("projects/%s/topics/%s", clients.PubSub.Project(), pubsubio.TopicTelemetry)
		if err := clients.PubSub.TopicAdminClient.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topic}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := &command{Drones: 2, Hz: 100, Duration: time.Hour}
	if err := c.sustain(ctx, noTopic); status.Code(err) != codes.NotFound || ctx.Err() != nil {
		t.Errorf("ended with %v", err)
	}
}
