package connect

import (
	"context"
	"net"
	"strings"
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// refusing is a Firestore and a Pub/Sub that answer every call with a fixed code; OK
// means an empty answer.
type refusing struct {
	firestorepb.UnimplementedFirestoreServer
	pubsubpb.UnimplementedPublisherServer
	firestore, pubsub codes.Code
}

func (r *refusing) BatchGetDocuments(req *firestorepb.BatchGetDocumentsRequest, stream firestorepb.Firestore_BatchGetDocumentsServer) error {
	if r.firestore != codes.OK {
		return status.Error(r.firestore, "no")
	}
	return stream.Send(&firestorepb.BatchGetDocumentsResponse{
		Result: &firestorepb.BatchGetDocumentsResponse_Missing{Missing: req.GetDocuments()[0]},
	})
}

func (r *refusing) GetTopic(_ context.Context, req *pubsubpb.GetTopicRequest) (*pubsubpb.Topic, error) {
	return &pubsubpb.Topic{Name: req.GetTopic()}, status.Error(r.pubsub, "no")
}

// F-API-02: credentials that are invalid or cannot read Firestore are reported at
// startup. Pub/Sub only has to answer: most accounts may use topics but not get them.
func TestClients_CheckNamesTheServiceThatRefuses(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		refusing
		want string
	}{
		{refusing{}, ""},
		{refusing{firestore: codes.PermissionDenied}, "Firestore at %s refuses these credentials"},
		{refusing{firestore: codes.Unauthenticated}, "Firestore at %s refuses these credentials"},
		{refusing{firestore: codes.NotFound}, "Firestore at %s: "}, // no such database
		{refusing{pubsub: codes.NotFound}, ""},
		{refusing{pubsub: codes.PermissionDenied}, ""},
		{refusing{pubsub: codes.Unauthenticated}, "Pub/Sub at %s refuses these credentials"},
		{refusing{pubsub: codes.InvalidArgument}, "Pub/Sub at %s: "},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		firestorepb.RegisterFirestoreServer(server, &c.refusing)
		pubsubpb.RegisterPublisherServer(server, &c.refusing)
		go server.Serve(listener)
		defer server.Stop()

		addr := listener.Addr().String()
		clients, err := Open(t.Context(), Config{FirestoreHost: addr, PubSubHost: addr}, meter.New())
		if err != nil {
			t.Fatal(err)
		}
		defer clients.Close()
		err = clients.Check(t.Context(), func(string) {})
		want := strings.Replace(c.want, "%s", addr, 1)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("Firestore %s, Pub/Sub %s: %v, want %q", c.firestore, c.pubsub, err, want)
		}
	}
}
