package fault

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// DialOptions make a client send its name as owner with each request, so that rules
// and Server.KillConnections can single it out.
func DialOptions(owner string) []grpc.DialOption {
	tag := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, OwnerHeader, owner)
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(tag(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(tag(ctx), desc, cc, method, opts...)
		}),
	}
}

// OwnerOf returns the owner that a client sent with a request, or "".
func OwnerOf(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, OwnerHeader); len(values) > 0 {
		return values[0]
	}
	return ""
}
