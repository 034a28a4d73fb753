package meter

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
)

type operationKey struct{}

// WithOperation names the operation that the Firestore calls made with the
// returned context serve, such as "telemetry".
func WithOperation(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operationKey{}, name)
}

// Operation is the operation that WithOperation named; "other" without one.
func Operation(ctx context.Context) string {
	if name, ok := ctx.Value(operationKey{}).(string); ok {
		return name
	}
	return "other"
}

// DialOptions makes a gRPC connection to Firestore count its calls and the documents
// they read and write in m. See also TraceCalls.
func (m *Meter) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(m.unary),
		grpc.WithChainStreamInterceptor(m.stream),
	}
}

func (m *Meter) rpc(ctx context.Context, method string) *rpcCounts {
	return entry(m, m.firestore, rpcKey{Operation(ctx), path.Base(method)})
}

func (m *Meter) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c := m.rpc(ctx, method)
	c.calls.Inc()
	ctx, span := m.startCall(ctx, method)
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		c.failed.Inc()
		span.end(err)
		return err
	}
	var writes []*firestorepb.Write
	switch r := req.(type) {
	case *firestorepb.CommitRequest:
		writes = r.GetWrites()
	case *firestorepb.BatchWriteRequest:
		writes = r.GetWrites()
	}
	c.writes.Add(int64(len(writes)))
	m.tellWrites(writes)
	span.wrote(int64(len(writes)))
	span.end(nil)
	return nil
}

// tellWrites counts writes by collection, and calls the function of OnWrites.
func (m *Meter) tellWrites(writes []*firestorepb.Write) {
	byCollection := map[string]int{}
	for _, w := range writes {
		name := cmp.Or(w.GetUpdate().GetName(), w.GetDelete())
		byCollection[path.Base(path.Dir(name))]++
	}
	tell := m.written.Load()
	for collection, n := range byCollection {
		entry(m, m.collectionWrites, collection).Add(int64(n))
		if tell != nil {
			(*tell)(collection, n)
		}
	}
}

func (m *Meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c := m.rpc(ctx, method)
	c.calls.Inc()
	ctx, span := m.startCall(ctx, method)
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		c.failed.Inc()
		span.end(err)
		return nil, err
	}
	span.endWith(ctx)
	return &countedStream{ClientStream: s, counts: c, span: span}, nil
}

type countedStream struct {
	grpc.ClientStream
	counts *rpcCounts
	span   *callSpan
}

func (s *countedStream) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	if errors.Is(err, io.EOF) {
		s.span.end(nil)
		return err
	}
	if err != nil {
		s.counts.failed.Inc()
		s.span.end(err)
		return err
	}
	if carriesDocument(msg) {
		s.counts.reads.Inc()
		s.span.read()
	}
	return nil
}

// carriesDocument reports whether an answer costs a read.
func carriesDocument(msg any) bool {
	switch r := msg.(type) {
	case *firestorepb.BatchGetDocumentsResponse:
		return r.GetResult() != nil
	case *firestorepb.RunQueryResponse:
		return r.GetDocument() != nil
	case *firestorepb.ListenResponse:
		return r.GetDocumentChange() != nil
	}
	return false
}
