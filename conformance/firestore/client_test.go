package conformance

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/uuid"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The client suite (E-PR-02) calls the surface of the Go client on one server.

// suitePatience bounds a test of the suite that could hang.
const suitePatience = 60 * time.Second

// suite is a client and a collection of its own for a test.
type suite struct {
	*testing.T
	ctx    context.Context
	client *firestore.Client
	coll   *firestore.CollectionRef
}

// newSuite connects to the server at FIRESTORE_EMULATOR_HOST, or else to an embedded
// one.
func newSuite(t *testing.T) suite {
	t.Helper()
	addr := os.Getenv("FIRESTORE_EMULATOR_HOST")
	if addr == "" {
		addr = startEmbedded(t)
	}
	t.Setenv("FIRESTORE_EMULATOR_HOST", "") // or the client would dial by itself
	conn, err := dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suitePatience)
	t.Cleanup(cancel)
	client, err := firestore.NewClient(ctx, "suite-"+uuid.NewString(), option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil { // closes the connection too
			t.Error(err)
		}
	})
	return suite{t, ctx, client, client.Collection("c")}
}

type fields = map[string]any

// set writes a document in the collection.
func (s suite) set(id string, data any) *firestore.DocumentRef {
	s.Helper()
	ref := s.coll.Doc(id)
	if _, err := ref.Set(s.ctx, data); err != nil {
		s.Fatalf("set %s: %v", id, err)
	}
	return ref
}

func (s suite) get(ref *firestore.DocumentRef) *firestore.DocumentSnapshot {
	s.Helper()
	doc, err := ref.Get(s.ctx)
	if err != nil {
		s.Fatalf("get %s: %v", ref.ID, err)
	}
	return doc
}

// wantData compares the fields of a document.
func (s suite) wantData(what string, ref *firestore.DocumentRef, want fields) {
	s.Helper()
	if diff := diffData(want, s.get(ref).Data()); diff != "" {
		s.Errorf("%s: %s", what, diff)
	}
}

func (s suite) wantCode(what string, err error, want codes.Code) {
	s.Helper()
	if status.Code(err) != want {
		s.Errorf("%s: %v, want %s", what, err, want)
	}
}

func (s suite) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// ids runs a query and lists the ids of the results in order.
func (s suite) ids(q firestore.Query) []string {
	s.Helper()
	docs, err := q.Documents(s.ctx).GetAll()
	if err != nil {
		s.Fatalf("query: %v", err)
	}
	return idsOf(docs)
}

func idsOf(docs []*firestore.DocumentSnapshot) []string {
	ids := []string{}
	for _, doc := range docs {
		ids = append(ids, doc.Ref.ID)
	}
	return ids
}

func (s suite) wantIDs(what string, q firestore.Query, want ...string) {
	s.Helper()
	if got := s.ids(q); !slices.Equal(got, want) {
		s.Errorf("%s: got %q, want %q", what, got, want)
	}
}
