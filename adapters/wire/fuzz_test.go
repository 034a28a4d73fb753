package wire_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dronefleet/dronefleet/adapters/wire"
)

// The fuzz targets hold three things about any bytes: a decoder never panics,
// a refusal is one of the two errors in one line, and what was accepted can be
// published again unchanged.

func FuzzDecodeTelemetry(f *testing.F) {
	fuzz(f, "telemetry", wire.DecodeTelemetry, wire.EncodeTelemetry)
}

func FuzzDecodeOrder(f *testing.F) {
	fuzz(f, "order", wire.DecodeOrder, wire.EncodeOrder)
}

func FuzzDecodeDecision(f *testing.F) {
	fuzz(f, "decision", wire.DecodeDecision, wire.EncodeDecision)
}

func FuzzDecodeCommand(f *testing.F) {
	fuzz(f, "command", wire.DecodeCommand, wire.EncodeCommand)
}

func FuzzDecodeSnapshot(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "golden", "snapshot.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(`{"flights": [{}], "drones": [{}], "charging": [{}], "orders": [{}], "warehouses": [{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := wire.DecodeSnapshot(data)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if _, err := wire.MarshalSnapshot(s); err != nil {
			t.Errorf("accepted snapshot cannot be written: %v", err)
		}
	})
}

func fuzz[T any](f *testing.F, kind string,
	decode func([]byte, map[string]string) (T, error),
	encode func(T, wire.Format) ([]byte, map[string]string, error),
) {
	contentTypes := []string{"", "application/json", "application/protobuf", "text/plain"}
	golden, err := os.ReadFile(filepath.Join("testdata", "golden", kind+".json"))
	if err != nil {
		f.Fatal(err)
	}
	value, err := decode(golden, nil)
	if err != nil {
		f.Fatal(err)
	}
	binary, _, err := encode(value, wire.Protobuf)
	if err != nil {
		f.Fatal(err)
	}
	for i := range contentTypes {
		f.Add(golden, byte(i))
		f.Add(binary, byte(i))
	}
	f.Add([]byte("{}\xdb"), byte(0)) // is quoted in the error
	for _, m := range readMalformed(f) {
		if m.Kind == kind {
			f.Add(m.payload(f), byte(0))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, contentType byte) {
		attrs := map[string]string{"content-type": contentTypes[int(contentType)%len(contentTypes)]}
		first, err := decode(data, attrs)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		for _, format := range []wire.Format{wire.Protobuf, wire.JSON} {
			again, attrs, err := encode(first, format)
			if err != nil {
				t.Fatalf("accepted %s cannot be written as %s: %v", kind, format, err)
			}
			second, err := decode(again, attrs)
			if err != nil {
				t.Fatalf("accepted %s is refused when published again as %s: %v", kind, format, err)
			}
			if !reflect.DeepEqual(first, second) {
				t.Errorf("%s changed on its way as %s:\n%+v\n%+v", kind, format, first, second)
			}
		}
	})
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var (
		invalid     *wire.ValidationError
		undecodable *wire.UndecodableError
	)
	if !errors.As(err, &invalid) && !errors.As(err, &undecodable) {
		t.Errorf("error of type %T: %v", err, err)
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("error of more than one line: %q", err)
	}
	if !utf8.ValidString(err.Error()) { // F-DLQ-01: no attribute of a dead letter
		t.Errorf("error that is no text: %q", err)
	}
}
