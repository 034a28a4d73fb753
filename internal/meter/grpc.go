package meter

import (
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

func operation(ctx context.Context) string {
	if name, ok := ctx.Value(operationKey{}).(string); ok {
		return name
	}
	return "other"
}

// DialOptions make a gRPC connection to Firestore count its calls, with the
// documents they read and write, in m.
func (m *Meter) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(m.unary),
		grpc.WithChainStreamInterceptor(m.stream),
	}
}

func (m *Meter) rpc(ctx context.Context, method string) *rpcCounts {
	return entry(m, m.firestore, rpcKey{operation(ctx), path.Base(method)})
}

func (m *Meter) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c := m.rpc(ctx, method)
	c.calls.Inc()
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		c.failed.Inc()
		return err
	}
	switch r := req.(type) {
	case *firestorepb.CommitRequest:
		c.writes.Add(int64(len(r.GetWrites())))
	case *firestorepb.BatchWriteRequest:
		c.writes.Add(int64(len(r.GetWrites())))
	}
	return nil
}

func (m *Meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c := m.rpc(ctx, method)
	c.calls.Inc()
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		c.failed.Inc()
		return nil, err
	}
	return &countedStream{ClientStream: s, counts: c}, nil
}

type countedStream struct {
	grpc.ClientStream
	counts *rpcCounts
}

func (s *countedStream) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.counts.failed.Inc()
		}
		return err
	}
	switch r := msg.(type) {
	case *firestorepb.BatchGetDocumentsResponse:
		if r.GetResult() != nil {
			s.counts.reads.Inc()
		}
	case *firestorepb.RunQueryResponse:
		if r.GetDocument() != nil {
			s.counts.reads.Inc()
		}
	case *firestorepb.ListenResponse:
		if r.GetDocumentChange() != nil {
			s.counts.reads.Inc()
		}
	}
	return nil
}
