//go:build linux

package deploy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dronefleet/dronefleet/testkit/tfmodule"
)

// guard is a Pub/Sub with the rights of one of Terraform's accounts: it passes what the
// account was granted and refuses everything else, as the service would.
type guard struct {
	pubsubpb.UnimplementedPublisherServer
	pubsubpb.UnimplementedSubscriberServer

	account             string
	publishes, consumes map[string]bool // short names of topics and subscriptions
	publisher           pubsubpb.PublisherClient
	subscriber          pubsubpb.SubscriberClient
}

// startGuard puts a guard before the server at host and returns its address.
func startGuard(t *testing.T, host, account string, p *tfmodule.Plan) string {
	t.Helper()
	conn, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{
		account: account, publishes: map[string]bool{}, consumes: map[string]bool{},
		publisher: pubsubpb.NewPublisherClient(conn), subscriber: pubsubpb.NewSubscriberClient(conn),
	}
	member := "serviceAccount:" + account + "@" + testProject + ".iam.gserviceaccount.com"
	for _, i := range p.Instances {
		switch {
		case i.Text("member") != member:
		case i.Type == "google_pubsub_topic_iam_member" && i.Text("role") == "roles/pubsub.publisher":
			g.publishes[i.Text("topic")] = true
		case i.Type == "google_pubsub_subscription_iam_member" && i.Text("role") == "roles/pubsub.subscriber":
			g.consumes[i.Text("subscription")] = true
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pubsubpb.RegisterPublisherServer(server, g)
	pubsubpb.RegisterSubscriberServer(server, g)
	var serving errgroup.Group
	serving.Go(func() error { return server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		if err := errors.Join(serving.Wait(), conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func (g *guard) may(granted map[string]bool, name string) error {
	if granted[path.Base(name)] {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s may not use %s", g.account, name)
}

func (g *guard) Publish(ctx context.Context, r *pubsubpb.PublishRequest) (*pubsubpb.PublishResponse, error) {
	if err := g.may(g.publishes, r.GetTopic()); err != nil {
		return nil, err
	}
	return g.publisher.Publish(ctx, r)
}

// Getting a topic or a subscription needs a role that no account has.
func (g *guard) GetTopic(_ context.Context, r *pubsubpb.GetTopicRequest) (*pubsubpb.Topic, error) {
	return nil, g.may(nil, r.GetTopic())
}

func (g *guard) GetSubscription(_ context.Context, r *pubsubpb.GetSubscriptionRequest) (*pubsubpb.Subscription, error) {
	return nil, g.may(nil, r.GetSubscription())
}

// On emulators the State Manager creates missing topics, which on Google Cloud it does only
// when told to. Here, as there, everything exists already.
func (g *guard) CreateTopic(_ context.Context, r *pubsubpb.Topic) (*pubsubpb.Topic, error) {
	return nil, status.Errorf(codes.AlreadyExists, "%s", r.GetName())
}

func (g *guard) CreateSubscription(_ context.Context, r *pubsubpb.Subscription) (*pubsubpb.Subscription, error) {
	return nil, status.Errorf(codes.AlreadyExists, "%s", r.GetName())
}

func (g *guard) Acknowledge(ctx context.Context, r *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	if err := g.may(g.consumes, r.GetSubscription()); err != nil {
		return nil, err
	}
	return g.subscriber.Acknowledge(ctx, r)
}

func (g *guard) ModifyAckDeadline(ctx context.Context, r *pubsubpb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	if err := g.may(g.consumes, r.GetSubscription()); err != nil {
		return nil, err
	}
	return g.subscriber.ModifyAckDeadline(ctx, r)
}

func (g *guard) StreamingPull(in pubsubpb.Subscriber_StreamingPullServer) error {
	first, err := in.Recv()
	if err != nil {
		return err
	}
	if err := g.may(g.consumes, first.GetSubscription()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	out, err := g.subscriber.StreamingPull(ctx)
	if err != nil {
		return err
	}
	if err := out.Send(first); err != nil {
		return err
	}
	go func() { // ends with the call, which ends in's stream
		for {
			r, err := in.Recv()
			if err != nil {
				_ = out.CloseSend() // out's receiver returns the error
				return
			}
			if err := out.Send(r); err != nil {
				return // likewise
			}
		}
	}()
	for {
		r, err := out.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := in.Send(r); err != nil {
			return err
		}
	}
}
