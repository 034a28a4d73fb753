package firestoreemu

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

func (s *Server) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	count(&s.counters.rpcs, method)
	s.connections.note(ctx)
	if err := refuseUnknown(req); err != nil {
		s.note(ctx, method, err)
		return nil, err
	}
	answer, err := s.unaryUnderFaults(ctx, method, req, handle)
	s.note(ctx, method, err)
	return answer, err
}

func (s *Server) unaryUnderFaults(ctx context.Context, method string, req any, handle grpc.UnaryHandler) (any, error) {
	if !s.opts.Faults.Active() {
		return handle(ctx, req)
	}
	call := callOf(ctx, method, req)
	if err := s.act(ctx, call, fault.Before); err != nil {
		return nil, err
	}
	answer, err := handle(context.WithValue(ctx, callKey{}, call), req)
	if fail := s.act(ctx, call, fault.After); fail != nil {
		return nil, fail
	}
	return answer, err
}

func (s *Server) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	method := path.Base(info.FullMethod)
	count(&s.counters.rpcs, method)
	s.connections.note(stream.Context())
	err := s.streamUnderFaults(srv, stream, method, handle)
	s.note(stream.Context(), method, err)
	return err
}

func (s *Server) streamUnderFaults(srv any, stream grpc.ServerStream, method string, handle grpc.StreamHandler) error {
	if !s.opts.Faults.Active() {
		return handle(srv, strictStream{stream})
	}
	faulty := &faultyStream{ServerStream: strictStream{stream}, server: s, method: method}
	err := handle(srv, faulty)
	if fail := s.act(stream.Context(), faulty.call, fault.After); fail != nil {
		return fail
	}
	return err
}

// strictStream refuses requests with fields that this server does not know.
type strictStream struct{ grpc.ServerStream }

// RecvMsg receives a request.
func (s strictStream) RecvMsg(req any) error {
	if err := s.ServerStream.RecvMsg(req); err != nil {
		return err
	}
	return refuseUnknown(req)
}

// refuseUnknown returns an error if a request has, at any depth, a field that is
// newer than this server (E-RPC-03).
func refuseUnknown(req any) error {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	return unknownIn(m.ProtoReflect())
}

// unknownIn checks a message and everything inside it.
func unknownIn(m protoreflect.Message) error {
	err := unknownHere(m)
	switch t := m.Interface().(type) {
	case *pb.Value:
		return unknownInValue(t)
	case *pb.Document: // its times are ignored in requests
		return cmp.Or(err, unknownInFields(t.GetFields()))
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case err != nil:
			return false
		case field.IsMap():
			if field.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					err = unknownIn(v.Message())
					return err == nil
				})
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				if err = unknownIn(v.List().Get(i).Message()); err != nil {
					break
				}
			}
		default:
			err = unknownIn(v.Message())
		}
		return err == nil
	})
	return err
}

// unknownInValue is unknownIn without reflection, because values are most of a
// request. Of their types only arrays and maps have fields of their own; the others
// that do are refused as a whole.
func unknownInValue(v *pb.Value) error {
	if err := unknownHere(v.ProtoReflect()); err != nil {
		return err
	}
	switch t := v.GetValueType().(type) {
	case *pb.Value_ArrayValue:
		if err := unknownHere(t.ArrayValue.ProtoReflect()); err != nil {
			return err
		}
		for _, element := range t.ArrayValue.GetValues() {
			if err := unknownInValue(element); err != nil {
				return err
			}
		}
	case *pb.Value_MapValue:
		if err := unknownHere(t.MapValue.ProtoReflect()); err != nil {
			return err
		}
		return unknownInFields(t.MapValue.GetFields())
	}
	return nil
}

func unknownInFields(fields map[string]*pb.Value) error {
	for _, v := range fields {
		if err := unknownInValue(v); err != nil {
			return err
		}
	}
	return nil
}

// unknownHere checks the fields of one message.
func unknownHere(m protoreflect.Message) error {
	unknown := m.GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	number, _, _ := protowire.ConsumeTag(unknown)
	return unimplemented(fmt.Sprintf("field %d of %s", number, m.Descriptor().Name()))
}

// faultyStream applies the rules when the first request arrives.
type faultyStream struct {
	grpc.ServerStream
	server *Server
	method string
	call   fault.Call // set by the first request
}

// RecvMsg receives a request or returns the failure that a rule injects.
func (f *faultyStream) RecvMsg(req any) error {
	if err := f.ServerStream.RecvMsg(req); err != nil || f.call.RPC != "" {
		return err
	}
	f.call = callOf(f.Context(), f.method, req)
	return f.server.act(f.Context(), f.call, fault.Before)
}

// note counts and logs a failed RPC.
func (s *Server) note(ctx context.Context, method string, err error) {
	if err == nil {
		return
	}
	count(&s.counters.failed, method)
	s.opts.Logger.DebugContext(ctx, "rpc failed",
		slog.String("method", method), slog.String("code", status.Code(err).String()), slog.Any("err", err))
}
