package firestoretx

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/type/latlng"
)

// FuzzDecode gives every field of every document values of every type, also wrongly nested ones.
// Decoding refuses them with an error that names the field, without a panic. Accepted values can be
// written back.
func FuzzDecode(f *testing.F) {
	f.Add("status", `"IDLE"`)
	f.Add("route", `[{"type":"DEPOT_START","position":{"lat":1,"lon":2}},7]`)
	f.Add("unserved", `[{"orderId":[]}]`)
	f.Add("failedMissions", `[{"missionId":"M","failedAt":"2026-11-21T12:00:00Z"}]`)
	f.Add("priority", `3`)
	f.Add("reachedStops", `1.5`)
	f.Add("orderIds", `["a",null]`)
	f.Fuzz(func(t *testing.T, field, text string) {
		var raw any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		for _, stored := range []any{raw, asFirestoreHasIt(raw)} {
			fuzzField(t, droneCodec, field, stored)
			fuzzField(t, orderCodec, field, stored)
			fuzzField(t, missionCodec, field, stored)
			fuzzField(t, ledgerCodec, field, stored)
			fuzzField(t, eventCodec, field, stored)
			fuzzField(t, cycleCodec, field, stored)
			fuzzField(t, depotCodec, field, stored)
			fuzzField(t, warehouseCodec, field, stored)
			fuzzField(t, discardCodec, field, stored)
		}
	})
}

func fuzzField[T any](t *testing.T, c codec[T], name string, stored any) {
	for _, f := range c {
		if f.name != name || stored == nil {
			continue
		}
		var v, again T
		if f.set(&v, stored) != nil {
			continue
		}
		if written := f.get(&v); written != nil {
			if err := f.set(&again, written); err != nil {
				t.Errorf("%s: %v was read, but what it is written as, %v, is refused: %v", name, stored, written, err)
			}
		}
	}
}

// asFirestoreHasIt turns JSON's types into those of the Firestore client.
func asFirestoreHasIt(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = asFirestoreHasIt(v[i])
		}
		return list
	case map[string]any:
		lat, isLat := v["lat"].(float64)
		lon, isLon := v["lon"].(float64)
		if isLat && isLon && len(v) == 2 {
			return &latlng.LatLng{Latitude: lat, Longitude: lon}
		}
		m := make(map[string]any, len(v))
		for k := range v {
			m[k] = asFirestoreHasIt(v[k])
		}
		return m
	}
	return v
}
