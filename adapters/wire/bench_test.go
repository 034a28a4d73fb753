package wire_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/adapters/wire"
)

func BenchmarkDecodeTelemetry(b *testing.B) {
	for _, format := range []wire.Format{wire.Protobuf, wire.JSON} {
		data, attrs, err := wire.EncodeTelemetry(goldenTelemetry(), format)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(format), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.DecodeTelemetry(data, attrs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
