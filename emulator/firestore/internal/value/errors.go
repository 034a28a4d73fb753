package value

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func invalidf(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// unimplemented refuses a part of the protocol that the server does not implement
// (E-RPC-03).
func unimplemented(feature string) error {
	return status.Errorf(codes.Unimplemented, "embedded firestore: %s not implemented (E-RPC-03)", feature)
}
