package connect_test

import (
	"context"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-GW-01: a read-only client reads in every way and writes in none.
func TestReadOnly_RefusesEveryWrite(t *testing.T) {
	t.Parallel()
	hosts := emutest.Hosts(t)
	if _, err := emutest.Connect(t, hosts).Firestore.Doc("things/a").Set(t.Context(), map[string]any{"n": 1}); err != nil {
		t.Fatal(err)
	}
	hosts.ReadOnly = true
	client := emutest.Connect(t, hosts).Firestore
	ref, data := client.Doc("things/a"), map[string]any{"n": 2}
	bulk := func(ctx context.Context) error {
		w := client.BulkWriter(ctx)
		job, err := w.Set(ref, data)
		if err != nil {
			return err
		}
		w.End()
		_, err = job.Results()
		return err
	}
	for name, write := range map[string]func(context.Context) error{
		"set":    func(ctx context.Context) error { _, err := ref.Set(ctx, data); return err },
		"create": func(ctx context.Context) error { _, err := client.Doc("things/b").Create(ctx, data); return err },
		"delete": func(ctx context.Context) error { _, err := ref.Delete(ctx); return err },
		"transaction": func(ctx context.Context) error {
			return client.RunTransaction(ctx, func(_ context.Context, t *firestore.Transaction) error { return t.Set(ref, data) })
		},
		"bulk": bulk,
	} {
		if err := write(t.Context()); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, read := range map[string]func(context.Context) error{
		"get": func(ctx context.Context) error { _, err := ref.Get(ctx); return err },
		"query": func(ctx context.Context) error {
			_, err := client.Collection("things").Documents(ctx).GetAll()
			return err
		},
		"listen": func(ctx context.Context) error {
			it := ref.Snapshots(ctx)
			defer it.Stop()
			_, err := it.Next()
			return err
		},
		"transaction": func(ctx context.Context) error {
			return client.RunTransaction(ctx, func(_ context.Context, t *firestore.Transaction) error { _, err := t.Get(ref); return err }, firestore.ReadOnly)
		},
	} {
		if err := read(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := ref.Get(t.Context()); err != nil || got.Data()["n"] != int64(1) {
		t.Errorf("the document has %v, %v", got.Data(), err)
	}
}
