package conformance

import (
	"context"
	"strings"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
)

// E-IX-06: with the real client, a query that production would refuse for lack of an
// index fails with the JSON to add, and succeeds with it.
func TestIndexes_ErrorHasIndexThatServes(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", "") // Google's emulator checks no indexes
	refused := map[string]func(*firestore.Client) firestore.Query{
		"equality ordered by another field": func(c *firestore.Client) firestore.Query {
			return c.Collection("c").Where("x", "==", 1).OrderBy("q", firestore.Asc)
		},
		"equality and inequality": func(c *firestore.Client) firestore.Query {
			return c.Collection("c").Where("owner", "==", "a").Where("t", "<", 1)
		},
		"descending name": func(c *firestore.Client) firestore.Query {
			return c.Collection("c").OrderBy(firestore.DocumentID, firestore.Desc)
		},
		"group": func(c *firestore.Client) firestore.Query { return c.CollectionGroup("c").Where("x", "==", 1) },
	}
	for rule, build := range refused {
		t.Run(rule, func(t *testing.T) {
			_, err := queryWithIndexes(t, `{}`, build)
			if status.Code(err) != codes.FailedPrecondition {
				t.Fatalf("%v, want FailedPrecondition", err)
			}
			_, declared, found := strings.Cut(status.Convert(err).Message(), "The query requires an index. Add to firestore.indexes.json: ")
			if !found {
				t.Fatalf("no JSON in %v", err)
			}
			if _, err := queryWithIndexes(t, declared, build); err != nil {
				t.Errorf("with %s: %v", declared, err)
			}
		})
	}
}

// queryWithIndexes runs a query on a server with declared indexes.
func queryWithIndexes(t *testing.T, indexes string, build func(*firestore.Client) firestore.Query) ([]*firestore.DocumentSnapshot, error) {
	t.Helper()
	server, err := firestoreemu.Start(firestoreemu.Options{Indexes: []byte(indexes)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	conn, err := dial(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suitePatience)
	defer cancel()
	client, err := firestore.NewClient(ctx, "indexes", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	return build(client).Documents(ctx).GetAll()
}
