package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"
)

// clientStep is one call of an application.
type clientStep struct {
	what string
	run  func(context.Context, *firestore.Client) (result string, err error)
}

// clientDrawing draws calls of the Go client over a few documents.
type clientDrawing struct{ *rapid.T }

func (d clientDrawing) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.T, label)
}

func (d clientDrawing) path() string {
	return d.pick("document", "c/a", "c/b", "c/d", "c/a/s/x", "d/a")
}

func (d clientDrawing) field() string { return d.pick("field", "n", "s", "tags", "m.k") }

func (d clientDrawing) value() any {
	return rapid.SampledFrom([]any{
		nil, true, 0, 1, 2, 1.0, 1.5, "a", "b", []any{1, "a"}, []any{"b"}, fields{"k": 1}, fields{"k": "a", "l": nil},
		time.Unix(1, 0).UTC(), []byte("a"), firestore.Vector64{1},
	}).Draw(d.T, "value")
}

func (d clientDrawing) data() fields {
	data := fields{}
	for range rapid.IntRange(0, 3).Draw(d.T, "fields") {
		data[d.pick("top field", "n", "s", "tags")] = d.value()
	}
	if rapid.Bool().Draw(d.T, "with a map") {
		data["m"] = fields{"k": d.value()}
	}
	return data
}

func (d clientDrawing) updates() []firestore.Update {
	seen := map[string]bool{}
	var updates []firestore.Update
	for range rapid.IntRange(1, 3).Draw(d.T, "updates") {
		field := d.field()
		if seen[field] {
			continue // the client itself refuses a path twice
		}
		seen[field] = true
		u := firestore.Update{Path: field}
		switch d.pick("update", "value", "value", "delete", "increment", "union", "remove", "maximum") {
		case "value":
			u.Value = d.value()
		case "delete":
			u.Value = firestore.Delete
		case "increment":
			u.Value = firestore.Increment(rapid.SampledFrom([]any{1, -1, 0.5}).Draw(d.T, "by"))
		case "union":
			u.Value = firestore.ArrayUnion(1, d.pick("element", "a", "b"))
		case "remove":
			u.Value = firestore.ArrayRemove(1, d.pick("element", "a", "b"))
		case "maximum":
			u.Value = firestore.FieldTransformMaximum(rapid.SampledFrom([]any{1, 1.5}).Draw(d.T, "at least"))
		}
		updates = append(updates, u)
	}
	return updates
}

func (d clientDrawing) step() clientStep {
	path := d.path()
	switch d.pick("call", "set", "set", "set", "merge", "create", "update", "update", "delete", "get", "query", "query", "query", "transaction") {
	case "set":
		data := d.data()
		return clientStep{fmt.Sprintf("Set %s %v", path, data), func(ctx context.Context, c *firestore.Client) (string, error) {
			_, err := c.Doc(path).Set(ctx, data)
			return "", err
		}}
	case "merge":
		data := d.data()
		return clientStep{fmt.Sprintf("MergeAll %s %v", path, data), func(ctx context.Context, c *firestore.Client) (string, error) {
			_, err := c.Doc(path).Set(ctx, data, firestore.MergeAll)
			return "", err
		}}
	case "create":
		data := d.data()
		return clientStep{fmt.Sprintf("Create %s %v", path, data), func(ctx context.Context, c *firestore.Client) (string, error) {
			_, err := c.Doc(path).Create(ctx, data)
			return "", err
		}}
	case "update":
		updates := d.updates()
		return clientStep{fmt.Sprintf("Update %s %v", path, updates), func(ctx context.Context, c *firestore.Client) (string, error) {
			_, err := c.Doc(path).Update(ctx, updates)
			return "", err
		}}
	case "delete":
		return clientStep{"Delete " + path, func(ctx context.Context, c *firestore.Client) (string, error) {
			_, err := c.Doc(path).Delete(ctx, firestore.Exists)
			return "", err
		}}
	case "get":
		return clientStep{"Get " + path, func(ctx context.Context, c *firestore.Client) (string, error) {
			doc, err := c.Doc(path).Get(ctx)
			if err != nil {
				return "", err
			}
			return showSnapshot(doc), nil
		}}
	case "transaction":
		return d.transaction()
	default:
		return d.query()
	}
}

func (d clientDrawing) query() clientStep {
	field, op, operand := d.field(), d.pick("operator", "<", "<=", "==", "!=", ">", ">=", "array-contains", "in", "not-in", "array-contains-any"), d.value()
	if op == "in" || op == "not-in" || op == "array-contains-any" {
		operand = []any{operand, d.value()}
	}
	ordered, descending, limit := d.field(), rapid.Bool().Draw(d.T, "descending"), rapid.IntRange(0, 3).Draw(d.T, "limit")
	fromEnd := rapid.Bool().Draw(d.T, "from the end")
	build := func(c *firestore.Client) firestore.Query {
		direction := firestore.Asc
		if descending {
			direction = firestore.Desc
		}
		q := c.Collection("c").Where(field, op, operand).OrderBy(ordered, direction)
		switch {
		case limit > 0 && fromEnd:
			return q.LimitToLast(limit)
		case limit > 0:
			return q.Limit(limit)
		default:
			return q
		}
	}
	what := fmt.Sprintf("query %s %s %v ordered by %s descending %t limit %d from the end %t", field, op, operand, ordered, descending, limit, fromEnd)
	return clientStep{what, func(ctx context.Context, c *firestore.Client) (string, error) {
		docs, err := build(c).Documents(ctx).GetAll()
		return showSnapshots(docs), err
	}}
}

// transaction reads two documents and a query, then writes.
func (d clientDrawing) transaction() clientStep {
	first, second, updates, data := d.path(), d.path(), d.updates(), d.data()
	fail := d.pick("end", "commit", "commit", "commit", "fail") == "fail"
	what := fmt.Sprintf("transaction: get %s and %s, query, update %v, set %v, fail %t", first, second, updates, data, fail)
	return clientStep{what, func(ctx context.Context, c *firestore.Client) (string, error) {
		shown := ""
		err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			docs, err := tx.GetAll([]*firestore.DocumentRef{c.Doc(first), c.Doc(second)})
			if err != nil {
				return err
			}
			found, err := tx.Documents(c.Collection("c").Where("n", ">=", 1)).GetAll()
			if err != nil {
				return err
			}
			shown = showSnapshots(docs) + showSnapshots(found)
			if err := tx.Set(c.Doc(second), data); err != nil {
				return err
			}
			if err := tx.Update(c.Doc(first), updates); err != nil {
				return err
			}
			if fail {
				return errors.New("changed its mind")
			}
			return nil
		})
		return shown, err
	}}
}

func showSnapshots(docs []*firestore.DocumentSnapshot) string {
	shown := ""
	for _, doc := range docs {
		shown += showSnapshot(doc)
	}
	return shown
}

func showSnapshot(doc *firestore.DocumentSnapshot) string {
	if !doc.Exists() {
		return "\n      " + doc.Ref.Path + " missing"
	}
	return fmt.Sprintf("\n      %s %#v", doc.Ref.Path, doc.Data())
}

// E-PR-03: both servers give the same answers to random calls of the real Go client.
func TestRandomClientCalls(t *testing.T) {
	officialAddr, embeddedAddr := official.address(t), startEmbedded(t)
	t.Setenv("FIRESTORE_EMULATOR_HOST", "") // or both clients would go where it points
	rapid.Check(t, func(rt *rapid.T) {
		ctx := stepContext(t)
		project := fmt.Sprintf("calls-%d-%d", time.Now().UnixNano(), sequenceCount.Add(1))
		officialClient, embeddedClient := projectClient(ctx, rt, officialAddr, project), projectClient(ctx, rt, embeddedAddr, project)
		defer func() { _ = officialClient.Close() }()
		defer func() { _ = embeddedClient.Close() }()

		report := ""
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) clientStep { return clientDrawing{rt}.step() }), 8, 30).Draw(rt, "calls")
		for i, s := range steps {
			want, wantErr := s.run(ctx, officialClient)
			got, gotErr := s.run(ctx, embeddedClient)
			report += fmt.Sprintf("%d. %s\n   official: %v %s\n", i, s.what, wantErr, want)
			if status.Code(gotErr) != status.Code(wantErr) || got != want {
				rt.Logf("%s   embedded: %v %s", report, gotErr, got)
				rt.Fatal("the servers differ in the last call")
			}
		}
	})
}

func projectClient(ctx context.Context, rt *rapid.T, addr, project string) *firestore.Client {
	conn, err := dial(addr)
	if err != nil {
		rt.Fatal(err)
	}
	client, err := firestore.NewClient(ctx, project, option.WithGRPCConn(conn))
	if err != nil {
		rt.Fatal(err)
	}
	return client
}
