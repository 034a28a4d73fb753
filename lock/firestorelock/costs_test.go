package firestorelock

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/lock"
)

// bill counts what Firestore is asked for and what it charges.
type bill struct{ requests, reads, writes atomic.Int64 }

func (b *bill) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	b.requests.Add(1)
	if commit, ok := req.(*firestorepb.CommitRequest); ok {
		b.writes.Add(int64(len(commit.Writes)))
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (b *bill) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	b.requests.Add(1)
	s, err := open(ctx, desc, cc, method, opts...)
	return billedStream{s, b}, err
}

type billedStream struct {
	grpc.ClientStream
	bill *bill
}

// RecvMsg counts the documents that come, and the lookups that find none.
func (s billedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		return err
	}
	switch answer := m.(type) {
	case *firestorepb.BatchGetDocumentsResponse:
		if answer.Result != nil {
			s.bill.reads.Add(1)
		}
	case *firestorepb.RunQueryResponse:
		if answer.Document != nil {
			s.bill.reads.Add(1)
		}
	}
	return nil
}

// costs is the table of costs in README.md, by operation: its three columns.
func costs(t *testing.T) map[string][3]string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Operation | Requests |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string][3]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 4 {
			rows[strings.TrimSpace(cells[0])] = [3]string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		}
	}
	return rows
}

// number is what a cell begins with or, after "at least", ends with; - is none.
func number(t *testing.T, cell string) int64 {
	t.Helper()
	if cell == "-" {
		return 0
	}
	_, least, found := strings.Cut(cell, "at least ")
	if !found {
		least, _, _ = strings.Cut(cell, ":")
	}
	n, err := strconv.ParseInt(least, 10, 64)
	if err != nil {
		t.Errorf("%q is not a number", cell)
	}
	return n
}

// The table of costs in README.md is measured, in requests, documents read and
// documents written, with the server-time guard as by default.
func TestReadme_CostsAreMeasured(t *testing.T) {
	var total bill
	project := freshProject()
	b := newBackend(t, clientOf(t, serverAddr, project, grpc.WithChainUnaryInterceptor(total.unary), grpc.WithChainStreamInterceptor(total.stream)), Config{})
	elsewhere := newBackend(t, clientOf(t, serverAddr, project), Config{})
	documented := costs(t)

	costsOf := func(row string, do func() (ok bool, err error)) {
		t.Helper()
		requests, reads, writes := total.requests.Load(), total.reads.Load(), total.writes.Load()
		if ok, err := do(); err != nil || !ok {
			t.Errorf("%s: %v, %v", row, ok, err)
		}
		got := [3]int64{total.requests.Load() - requests, total.reads.Load() - reads, total.writes.Load() - writes}
		cells, found := documented[row]
		if !found {
			t.Fatalf("README.md has no row %q", row)
		}
		if want := [3]int64{number(t, cells[0]), number(t, cells[1]), number(t, cells[2])}; got != want {
			t.Errorf("%s: %v requests, reads and writes; README.md says %v", row, got, want)
		}
	}
	var held lock.Ref
	acquire := func() (bool, error) {
		res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
		held = lock.Ref{Key: key, LockID: res.LockID}
		return res.OK, err
	}
	extend := func(ref func() lock.Ref) func() (bool, error) {
		return func() (bool, error) {
			res, err := b.Extend(bg, ref(), ttl)
			return res.OK, err
		}
	}
	release := func(ref func() lock.Ref) func() (bool, error) {
		return func() (bool, error) {
			res, err := b.Release(bg, ref())
			return res.OK, err
		}
	}
	keyed := func() lock.Ref { return held }
	byID := func() lock.Ref { return lock.Ref{LockID: held.LockID} }

	costsOf("acquire, first ever of a key", acquire)
	costsOf("release or extend with key, by the backend that acquired", extend(keyed))
	costsOf("release or extend with key, by the backend that acquired", release(keyed))
	costsOf("acquire, free", acquire)
	for _, probe := range []bool{false, true} {
		costsOf("acquire, held by another (also as probe)", func() (bool, error) {
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl, Probe: probe})
			return res.Reason == lock.ReasonLocked, err
		})
	}
	costsOf("isLocked, lookup by key", func() (bool, error) { return b.IsLocked(bg, key) })
	costsOf("isLocked, lookup by key", func() (bool, error) {
		info, err := b.Lookup(bg, lock.Query{Key: key})
		return info != nil, err
	})
	costsOf("lookup by id", func() (bool, error) {
		info, err := b.Lookup(bg, lock.Query{LockID: held.LockID})
		return info != nil, err
	})
	costsOf("release or extend by id alone", extend(byID))
	costsOf("release or extend by id alone", release(byID))

	for _, what := range []func(func() lock.Ref) func() (bool, error){extend, release} {
		taken := mustAcquire(t, elsewhere, key)
		held = lock.Ref{Key: key, LockID: taken.LockID}
		costsOf("release or extend with key, else", what(keyed))
		if _, err := elsewhere.Release(bg, held); err != nil {
			t.Fatal(err)
		}
	}
}
