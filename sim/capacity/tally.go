package capacity

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// Count is what Firestore bills, and the bytes both ways.
type Count struct {
	Calls, Reads, Writes, Deletes float64
	Sent, Received                float64
	// Units are the write units of Enterprise edition, deletions included.
	Units float64
}

func (c Count) plus(d Count) Count {
	return Count{c.Calls + d.Calls, c.Reads + d.Reads, c.Writes + d.Writes, c.Deletes + d.Deletes, c.Sent + d.Sent, c.Received + d.Received, c.Units + d.Units}
}

func (c Count) times(n float64) Count {
	return Count{c.Calls * n, c.Reads * n, c.Writes * n, c.Deletes * n, c.Sent * n, c.Received * n, c.Units * n}
}

// Kind is a kind of count: which work it was, and in which collection. Calls, and reads of queries that find
// nothing, have none.
type Kind struct{ Work, Collection string }

// Tally counts the calls of a connection. It is safe for concurrent use.
type Tally struct {
	mu        sync.Mutex
	counts    map[Kind]Count
	times     map[string]float64 // writes of fields that hold a time, by "collection.field", and of ranges by rangeKey
	documents map[string]float64 // writes of each document
	expiring  map[string]bool    // documents that a TTL policy will delete
	shelf     *shelf
	largest   int // request, in bytes
	entries   *entryCounter
}

// changes is the key of times that counts the events of drones: their changes of status.
const changes = "changes"

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{counts: map[Kind]Count{}, times: map[string]float64{}, documents: map[string]float64{}, expiring: map[string]bool{}, shelf: newShelf(), entries: newEntryCounter()}
}

// DialOptions make a connection count.
func (t *Tally) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(t.unary), grpc.WithChainStreamInterceptor(t.stream)}
}

func (t *Tally) add(work, collection string, c Count) {
	at := Kind{work, collection}
	t.counts[at] = t.counts[at].plus(c)
}

func (t *Tally) addUnits(work string, units map[string]float64) {
	for kind, n := range units {
		t.add(work, kind, Count{Units: n})
	}
}

// calls is how many calls a work has made.
func (t *Tally) calls(work string) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[Kind{work, ""}].Calls
}

// called counts a call and its request. The bytes of a write are those of its collection.
func (t *Tally) called(work string, req proto.Message) {
	size := proto.Size(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.largest = max(t.largest, size)
	rest := float64(size)
	if commit, is := req.(*firestorepb.CommitRequest); is {
		for _, w := range commit.GetWrites() {
			bytes := float64(proto.Size(w))
			t.add(work, collectionOf(w.GetUpdate().GetName()+w.GetDelete()), Count{Sent: bytes})
			rest -= bytes
		}
	}
	t.add(work, "", Count{Calls: 1, Sent: rest})
}

func (t *Tally) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	work := meter.Operation(ctx)
	t.called(work, req.(proto.Message))
	err := invoke(ctx, method, req, reply, cc, opts...)
	if commit, is := req.(*firestorepb.CommitRequest); is && err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, w := range commit.GetWrites() {
			t.wrote(work, w)
		}
	}
	return err
}

// wrote counts a write of a commit that was applied.
func (t *Tally) wrote(work string, w *firestorepb.Write) {
	if name := w.GetDelete(); name != "" {
		t.add(work, collectionOf(name), Count{Deletes: 1})
		t.addUnits(work, t.shelf.write(w))
		t.documents[name]++
		return
	}
	doc := w.GetUpdate()
	name, collection := doc.GetName(), collectionOf(doc.GetName())
	t.documents[name]++
	c := Count{Writes: 1}
	t.addUnits(work, t.shelf.write(w))
	if collection == firestoretx.Events && doc.GetFields()["entity"].GetStringValue() == string(domain.EntityDrone) {
		t.times[changes]++
	}
	for field, value := range doc.GetFields() {
		if value.GetTimestampValue() == nil {
			continue
		}
		t.times[collection+"."+field]++
		if field == "expireAt" && !t.expiring[name] {
			t.expiring[name] = true
			c.Deletes = 1
			t.addUnits(work, t.shelf.units(name))
		}
	}
	t.entries.wrote(w, collection, t.times)
	t.add(work, collection, c)
}

func (t *Tally) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &talliedStream{ClientStream: s, tally: t, work: meter.Operation(ctx), query: strings.HasSuffix(method, "RunQuery")}, nil
}

type talliedStream struct {
	grpc.ClientStream
	tally *Tally
	work  string
	query bool // it has found nothing so far
}

func (s *talliedStream) SendMsg(msg any) error {
	s.tally.called(s.work, msg.(proto.Message))
	return s.ClientStream.SendMsg(msg)
}

func (s *talliedStream) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	if errors.Is(err, io.EOF) && s.query { // an empty answer is billed as a read
		s.tally.add(s.work, "", Count{Reads: 1})
	}
	if err != nil {
		return err
	}
	size := float64(proto.Size(msg.(proto.Message)))
	name, read := "", 0.0
	switch r := msg.(type) {
	case *firestorepb.BatchGetDocumentsResponse:
		if r.GetResult() != nil {
			name, read = r.GetFound().GetName()+r.GetMissing(), 1
		}
	case *firestorepb.RunQueryResponse:
		if r.GetDocument() != nil {
			name, read, s.query = r.GetDocument().GetName(), 1, false
		}
	case *firestorepb.RunAggregationQueryResponse:
		read = 1 // and one for every 1,000 documents counted, which a sample does not have
	}
	s.tally.add(s.work, collectionOf(name), Count{Reads: read, Received: size})
	return nil
}

// collectionOf is the collection of a document's name.
func collectionOf(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(path.Dir(name))
}
