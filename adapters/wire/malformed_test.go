package wire_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/wire"
)

// malformed is one entry of testdata/malformed.json: a payload, as text or as
// hexadecimal, that is refused, and the whole line that must say why.
type malformed struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	ContentType string `json:"contentType,omitempty"`
	Text        string `json:"text,omitempty"`
	Hex         string `json:"hex,omitempty"`
	Reason      string `json:"reason"`
	Error       string `json:"error"`
}

const malformedFile = "testdata/malformed.json"

func (m malformed) payload(t testing.TB) []byte {
	t.Helper()
	if m.Hex == "" {
		return []byte(m.Text)
	}
	data, err := hex.DecodeString(m.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var decoders = map[string]func([]byte, map[string]string) (any, error){
	"telemetry": decoder(wire.DecodeTelemetry),
	"order":     decoder(wire.DecodeOrder),
	"decision":  decoder(wire.DecodeDecision),
	"command":   decoder(wire.DecodeCommand),
}

func readMalformed(t testing.TB) []malformed {
	t.Helper()
	text, err := os.ReadFile(malformedFile)
	if err != nil {
		t.Fatal(err)
	}
	var corpus []malformed
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	return corpus
}

// F-WIRE-03
func TestDecode_MalformedMessagesAreRefusedInOneLine(t *testing.T) {
	corpus := readMalformed(t)
	for i, m := range corpus {
		t.Run(m.Kind+" "+m.Name, func(t *testing.T) {
			attrs := map[string]string{}
			if m.ContentType != "" {
				attrs["content-type"] = m.ContentType
			}
			_, err := decoders[m.Kind](m.payload(t), attrs)
			reasoned, ok := err.(interface{ Reason() string })
			if !ok {
				t.Fatalf("error is %v, want one with a reason", err)
			}
			if *update {
				corpus[i].Reason, corpus[i].Error = reasoned.Reason(), err.Error()
				return
			}
			if reasoned.Reason() != m.Reason || err.Error() != m.Error {
				t.Errorf("refused as\n%s: %s\nwant\n%s: %s", reasoned.Reason(), err, m.Reason, m.Error)
			}
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Error("the error is longer than one line")
			}
		})
	}
	if *update {
		text, err := json.MarshalIndent(corpus, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(malformedFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// F-WIRE-03: one error names every bad field.
func TestDecode_AllBadFieldsAtOnce(t *testing.T) {
	_, err := wire.DecodeTelemetry([]byte(`{"position":{"lat":-91,"lon":"NaN"},"batteryPercentage":100.5,"speedKmh":"Infinity","status":77,"currentMissionId":"a/b"}`), nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"drone_id", "timestamp", "position.lat", "position.lon", "battery_percentage", "speed_kmh", "status", "current_mission_id"} {
		if !strings.Contains(err.Error(), field+" ") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

// F-WIRE-03
func TestDecodeOrder_AllBadFieldsAtOnce(t *testing.T) {
	text := strings.Repeat("x", 129)
	_, err := wire.DecodeOrder([]byte(`{"id":"..","status":77,"priority":9,"productType":"`+text+`","requesterId":"`+text+`","packageWeightKg":-1,
		"pickupLocation":{"lon":181},"deliveryLocation":{"lat":"NaN"}}`), nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"id", "status", "priority", "product_type", "requester_id", "package_weight_kg", "pickup_location.lon", "delivery_location.lat"} {
		if !strings.Contains(err.Error(), " "+field+" is ") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

// F-WIRE-03
func TestDecode_LimitOf256KiB(t *testing.T) {
	largest := `{"id":"O","deliveryLocation":{"lat":1,"lon":0},"productType":"BLOOD"}`
	largest += strings.Repeat(" ", wire.MaxBytes-len(largest))
	if _, err := wire.DecodeOrder([]byte(largest), nil); err != nil {
		t.Errorf("payload of the limit: %v", err)
	}
	_, err := wire.DecodeOrder([]byte(largest+" "), nil)
	if err == nil || err.Error() != "undecodable order: payload is 262145 bytes; send at most 262144" {
		t.Errorf("payload above the limit: %v", err)
	}
}
