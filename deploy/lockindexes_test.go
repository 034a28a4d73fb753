package deploy_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dronefleet/dronefleet/deploy"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// With the deployed indexes a lock is found by its id alone (L-IDX-01), and no
// other field of locks and counters is indexed (L-IDX-02). The library's README
// says so to those who deploy it elsewhere.
func TestIndexes_ServeLocksByID(t *testing.T) {
	server, err := firestoreemu.Start(firestoreemu.Options{Indexes: deploy.FirestoreIndexes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client, err := firestore.NewClient(t.Context(), testProject, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	backend, err := firestorelock.New(client, firestorelock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	res, err := backend.Acquire(t.Context(), lock.AcquireRequest{Key: "optimizer", TTL: time.Minute})
	if err != nil || !res.OK {
		t.Fatal(res, err)
	}
	byID := lock.Ref{LockID: res.LockID}
	if info, err := backend.Lookup(t.Context(), lock.Query{LockID: res.LockID}); info == nil || err != nil {
		t.Errorf("lookup by id: %+v, %v", info, err)
	}
	if res, err := backend.Extend(t.Context(), byID, time.Minute); !res.OK || err != nil {
		t.Errorf("extension by id: %+v, %v", res, err)
	}

	var file indexFile
	if err := json.Unmarshal(deploy.FirestoreIndexes, &file); err != nil {
		t.Fatal(err)
	}
	exempt := map[string]bool{}
	for _, o := range file.FieldOverrides {
		exempt[o.CollectionGroup+"."+o.FieldPath] = len(o.Indexes) == 0
	}
	for _, collection := range []string{firestorelock.DefaultCollection, firestorelock.DefaultFenceCollection} {
		docs, err := client.Collection(collection).Documents(t.Context()).GetAll()
		if err != nil || len(docs) != 1 {
			t.Fatalf("%d documents in %s: %v", len(docs), collection, err)
		}
		for field := range docs[0].Data() {
			if want := field != "lockId"; exempt[collection+"."+field] != want {
				t.Errorf("%s.%s is exempted from indexing: %t, want %t", collection, field, !want, want)
			}
		}
	}
	if res, err := backend.Release(t.Context(), byID); !res.OK || err != nil {
		t.Errorf("release by id: %+v, %v", res, err)
	}

	page, err := os.ReadFile("../lock/README.md")
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(strings.Fields(string(page)), " ")
	for _, part := range []string{
		"ascending collection-scope index on `lockId`", "Exempt all other fields of both collections from indexing",
	} {
		if !strings.Contains(told, part) {
			t.Errorf("lock/README.md does not say: %s", part)
		}
	}
}
