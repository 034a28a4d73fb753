package firestoreemu

import (
	"context"
	"log/slog"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

func (s *Server) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	count(&s.counters.rpcs, method)
	answer, err := handle(ctx, req)
	s.note(ctx, method, err)
	return answer, err
}

func (s *Server) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	method := path.Base(info.FullMethod)
	count(&s.counters.rpcs, method)
	err := handle(srv, stream)
	s.note(stream.Context(), method, err)
	return err
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
