package faultsim

import (
	"context"
	"slices"
	"strings"
	"time"

	fspb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// faultInjector intercepts the product's connections and changes what passes, so
// that the product behaves as if it had a certain mistake in its code. Broken
// variants therefore need no switch in the product. The zero value changes
// nothing.
type faultInjector struct {
	// read may change a document that the product reads; true hides it.
	read func(doc document) (hide bool)
	// write may change the writes of a commit.
	write func(writes []*fspb.Write) []*fspb.Write
	// query may change a query, and listed a document that a query finds.
	query  func(q *fspb.StructuredQuery)
	listed func(doc document)
	// countNothing makes the product believe that no document matches what it counts.
	countNothing bool
	// believeFailures reports a commit that failed as done.
	believeFailures bool
	// ackNacks turns every nack into an ack.
	ackNacks bool
	// dropDeadLetters tells the product that its dead letters were published.
	dropDeadLetters bool
}

// document is a stored document with its collection and id.
type document struct {
	collection, id string
	fields         map[string]*fspb.Value
}

func documentOf(name string, fields map[string]*fspb.Value) document {
	_, path, _ := strings.Cut(name, "/documents/")
	collection, id, _ := strings.Cut(path, "/")
	return document{collection, id, fields}
}

// written is the document that w writes.
func written(w *fspb.Write) document {
	return documentOf(w.GetUpdate().GetName(), w.GetUpdate().GetFields())
}

func (d document) text(field string) string { return d.fields[field].GetStringValue() }

// about reports whether w writes an entity of the collection or an event of such
// an entity.
func about(w *fspb.Write, collection string) bool {
	d := written(w)
	return d.collection == collection || d.collection == "events" && d.text("entity")+"s" == collection
}

func without(writes []*fspb.Write, drop func(*fspb.Write) bool) []*fspb.Write {
	return slices.DeleteFunc(slices.Clone(writes), drop)
}

// set makes w store a field, whatever the product wanted to store there.
func set(w *fspb.Write, field string, v *fspb.Value) {
	w.GetUpdate().Fields[field] = v
	if m := w.GetUpdateMask(); m != nil && !slices.Contains(m.FieldPaths, field) {
		m.FieldPaths = append(m.FieldPaths, field)
	}
}

func textValue(s string) *fspb.Value {
	return &fspb.Value{ValueType: &fspb.Value_StringValue{StringValue: s}}
}
func flagValue(b bool) *fspb.Value {
	return &fspb.Value{ValueType: &fspb.Value_BooleanValue{BooleanValue: b}}
}
func wholeValue(n int64) *fspb.Value {
	return &fspb.Value{ValueType: &fspb.Value_IntegerValue{IntegerValue: n}}
}

// earlier moves a time field back.
func (d document) earlier(field string, by time.Duration) {
	if v := d.fields[field]; v.GetTimestampValue() != nil {
		t := v.GetTimestampValue().AsTime().Add(-by)
		d.fields[field] = &fspb.Value{ValueType: &fspb.Value_TimestampValue{TimestampValue: timestamppb.New(t)}}
	}
}

func (i *faultInjector) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(i.unary), grpc.WithChainStreamInterceptor(i.stream)}
}

func (i *faultInjector) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch r := req.(type) {
	case *fspb.CommitRequest:
		return i.commit(ctx, method, r, reply.(*fspb.CommitResponse), cc, invoke, opts...)
	case *pubsubpb.ModifyAckDeadlineRequest:
		if i.ackNacks && r.GetAckDeadlineSeconds() == 0 {
			ack := &pubsubpb.AcknowledgeRequest{Subscription: r.GetSubscription(), AckIds: r.GetAckIds()}
			return invoke(ctx, pubsubpb.Subscriber_Acknowledge_FullMethodName, ack, &emptypb.Empty{}, cc, opts...)
		}
	case *pubsubpb.PublishRequest:
		if i.dropDeadLetters && strings.HasSuffix(r.GetTopic(), "-dead-letter") {
			ids := make([]string, len(r.GetMessages()))
			for n := range ids {
				ids[n] = "lost"
			}
			proto.Merge(reply.(*pubsubpb.PublishResponse), &pubsubpb.PublishResponse{MessageIds: ids})
			return nil
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (i *faultInjector) commit(ctx context.Context, method string, req *fspb.CommitRequest, reply *fspb.CommitResponse, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	asked := len(req.GetWrites())
	if i.write != nil {
		req = proto.CloneOf(req)
		req.Writes = i.write(req.GetWrites())
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil && i.believeFailures && status.Code(err) == codes.Unavailable {
		reply.CommitTime, err = timestamppb.Now(), nil
	}
	if err == nil {
		// The client expects a result for each write it sent.
		for len(reply.WriteResults) < asked {
			reply.WriteResults = append(reply.WriteResults, &fspb.WriteResult{UpdateTime: reply.CommitTime})
		}
	}
	return err
}

func (i *faultInjector) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil || i.read == nil && i.query == nil && i.listed == nil && !i.countNothing {
		return stream, err
	}
	return &falseReads{stream, i}, nil
}

// falseReads is a stream of reads that the injector may change.
type falseReads struct {
	grpc.ClientStream
	injector *faultInjector
}

func (f *falseReads) SendMsg(m any) error {
	if r, ok := m.(*fspb.RunQueryRequest); ok && f.injector.query != nil {
		r = proto.CloneOf(r)
		f.injector.query(r.GetStructuredQuery())
		m = r
	}
	return f.ClientStream.SendMsg(m)
}

func (f *falseReads) RecvMsg(m any) error {
	if err := f.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	switch r := m.(type) {
	case *fspb.BatchGetDocumentsResponse:
		found := r.GetFound()
		if found != nil && f.injector.read != nil && f.injector.read(documentOf(found.GetName(), found.GetFields())) {
			r.Result = &fspb.BatchGetDocumentsResponse_Missing{Missing: found.GetName()}
		}
	case *fspb.RunQueryResponse:
		if d := r.GetDocument(); d != nil && f.injector.listed != nil {
			f.injector.listed(documentOf(d.GetName(), d.GetFields()))
		}
	case *fspb.RunAggregationQueryResponse:
		for name := range r.GetResult().GetAggregateFields() {
			if f.injector.countNothing {
				r.Result.AggregateFields[name] = wholeValue(0)
			}
		}
	}
	return nil
}
