package firestoreemu

import "testing"

func TestSyncMode_TextRoundTrip(t *testing.T) {
	for _, want := range []SyncMode{SyncFull, SyncOS} {
		var got SyncMode
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%v read back as %v, %v", want, got, err)
		}
	}
	if err := new(SyncMode).UnmarshalText([]byte("never")); err == nil {
		t.Error("an unknown mode was accepted")
	}
}
