package boltfile_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// Whatever bit flips in a sealed value or its key, it is no longer accepted.
func TestUnseal_RefusesEveryFlippedBit(t *testing.T) { // E-DU-01, P-DUR-01
	key, value := []byte("drone-7"), []byte("a position")
	sealed := boltfile.Seal(key, append(boltfile.Unsealed(len(value)), value...))
	if got, err := boltfile.Unseal(key, sealed); err != nil || !bytes.Equal(got, value) {
		t.Fatalf("unsealed %q, %v", got, err)
	}
	for _, damaged := range [][]byte{sealed, key} {
		for i := range 8 * len(damaged) {
			damaged[i/8] ^= 1 << (i % 8)
			if got, err := boltfile.Unseal(key, sealed); !errors.Is(err, boltfile.ErrDamaged) {
				t.Errorf("bit %d: unsealed %q, %v", i, got, err)
			}
			damaged[i/8] ^= 1 << (i % 8)
		}
	}
	for short := range len(sealed) {
		if got, err := boltfile.Unseal(key, sealed[:short]); !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%d bytes: unsealed %q, %v", short, got, err)
		}
	}
}
