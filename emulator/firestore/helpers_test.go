package firestoreemu

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func wrapInt32(n int32) *wrapperspb.Int32Value { return wrapperspb.Int32(n) }

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func wantCode(t testing.TB, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: got %v (%v), want %v", what, got, err, want)
	}
}

// codeOf is status.Code, which also unwraps errors of the client.
func codeOf(err error) codes.Code { return status.Code(err) }
