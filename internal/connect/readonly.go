package connect

import (
	"context"
	"path"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refuseWrites makes a connection to Firestore refuse each call that is not known to read.
func refuseWrites() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if err := checkReads(method, req); err != nil {
				return err
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if err := checkReads(method, nil); err != nil {
				return nil, err
			}
			return open(ctx, desc, cc, method, opts...)
		}),
	}
}

// checkReads returns an error for a call that may write.
func checkReads(method string, req any) error {
	switch name := path.Base(method); name {
	case "GetDocument", "ListDocuments", "BatchGetDocuments", "RunQuery", "RunAggregationQuery", "PartitionQuery", "ListCollectionIds", "Listen", "Rollback":
		return nil
	case "BeginTransaction":
		if begin, is := req.(*firestorepb.BeginTransactionRequest); is && begin.GetOptions().GetReadOnly() != nil {
			return nil
		}
	case "Commit": // of a transaction that only reads
		if commit, is := req.(*firestorepb.CommitRequest); is && len(commit.GetWrites()) == 0 {
			return nil
		}
	}
	return status.Errorf(codes.PermissionDenied, "%s may write, and this program only reads from Firestore", path.Base(method))
}
