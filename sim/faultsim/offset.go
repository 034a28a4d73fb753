package faultsim

import (
	"context"
	"slices"
	"time"

	fspb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// clockOffset makes a process's clock ahead of the server's by this much. It intercepts
// the process's connection: times from the server are moved back, and preconditions that
// return them are moved forward again.
type clockOffset time.Duration

func (o clockOffset) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(o.unary), grpc.WithChainStreamInterceptor(o.stream)}
}

// shifted moves a time from the server back by the offset.
func (o clockOffset) shifted(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(t.AsTime().Add(-time.Duration(o)))
}

func (o clockOffset) document(d *fspb.Document) {
	if d != nil {
		d.UpdateTime, d.CreateTime = o.shifted(d.UpdateTime), o.shifted(d.CreateTime)
	}
}

func (o clockOffset) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if commit, ok := req.(*fspb.CommitRequest); ok && slices.ContainsFunc(commit.GetWrites(), hasUpdateTime) {
		commit = proto.CloneOf(commit)
		for _, w := range commit.Writes {
			if hasUpdateTime(w) {
				w.CurrentDocument = &fspb.Precondition{ConditionType: &fspb.Precondition_UpdateTime{UpdateTime: (-o).shifted(w.CurrentDocument.GetUpdateTime())}}
			}
		}
		req = commit
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if r, ok := reply.(*fspb.CommitResponse); ok && err == nil {
		r.CommitTime = o.shifted(r.CommitTime)
		for _, w := range r.WriteResults {
			w.UpdateTime = o.shifted(w.UpdateTime)
		}
	}
	return err
}

func hasUpdateTime(w *fspb.Write) bool { return w.GetCurrentDocument().GetUpdateTime() != nil }

func (o clockOffset) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &offsetReads{stream, o}, nil
}

type offsetReads struct {
	grpc.ClientStream
	offset clockOffset
}

func (s *offsetReads) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	switch r := m.(type) {
	case *fspb.BatchGetDocumentsResponse:
		r.ReadTime = s.offset.shifted(r.ReadTime)
		s.offset.document(r.GetFound())
	case *fspb.RunQueryResponse:
		r.ReadTime = s.offset.shifted(r.ReadTime)
		s.offset.document(r.GetDocument())
	}
	return nil
}
