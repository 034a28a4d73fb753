package conformance

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

// run is the tests, after which the official emulator stops.
type run struct{ *testing.M }

func (r run) Run() int {
	defer google.stop()
	return r.M.Run()
}

func TestMain(m *testing.M) {
	leaktest.Main(run{m})
}

// server is one server under test with stubs and a client, closed with the test.
type server struct {
	t        testing.TB
	client   *pubsub.Client
	embedded *pubsubemu.Server // nil: Google's emulator
	pub      pubsubpb.PublisherClient
	sub      pubsubpb.SubscriberClient
}

func embedded(t testing.TB) *server {
	t.Helper()
	s := pubsubemu.StartT(t, pubsubemu.Options{})
	out := connect(t, s.Addr())
	out.embedded = s
	return out
}

func connect(t testing.TB, addr string) *server {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := pubsub.NewClient(t.Context(), "fleet", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // closes conn
	return &server{t: t, client: client, pub: pubsubpb.NewPublisherClient(conn), sub: pubsubpb.NewSubscriberClient(conn)}
}

// deadline bounds a wait for something that must happen.
func (s *server) deadline() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

func texts(prefix string, n int) []*pubsubpb.PubsubMessage {
	messages := make([]*pubsubpb.PubsubMessage, n)
	for i := range messages {
		messages[i] = &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "%s%d", prefix, i)}
	}
	return messages
}

func ackIDs(messages []*pubsubpb.ReceivedMessage) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.AckId
	}
	return ids
}

// randomSeed is the first seed; PUBSUB_SEED sets another.
func randomSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("PUBSUB_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}
