package value

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func invalidf(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// unimplemented names a protocol feature that the embedded server refuses
// instead of silently ignoring it.
func unimplemented(feature string) error {
	return status.Errorf(codes.Unimplemented, "embedded firestore: %s not implemented (E-RPC-03)", feature)
}
