package entity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/entity"
)

// F-API-09: a cursor decodes to what it was made of. Only cursors of the same collection are
// accepted, and only unchanged.
func FuzzCursor(f *testing.F) {
	for _, text := range []string{"", "D1", "b3JkZXJzAE8x", "b3JkZXJzAE8x=", "b3JkZXJzAE8y\n", "\xff", "b3JkZXJz", "a b", strings.Repeat("A", 3000)} {
		f.Add("orders", text)
	}
	f.Fuzz(func(t *testing.T, collection, text string) {
		none := func(last string) error {
			if last == "" {
				return errors.New("is empty")
			}
			return nil
		}
		if !strings.Contains(collection, "\x00") {
			made := entity.Cursor(collection, text)
			if of, last := entity.ReadCursor(made); of != collection || last != text {
				t.Errorf("a cursor of %q after %q is read as %q after %q", collection, text, of, last)
			}
			if err := entity.CheckCursor(collection+"x", made, none); err == nil {
				t.Error("another collection takes the cursor")
			}
		}
		if err := entity.CheckCursor("orders", text, none); err == nil {
			if of, last := entity.ReadCursor(text); entity.Cursor(of, last) != text {
				t.Errorf("%q is a second form of the cursor of %q after %q", text, of, last)
			}
		}
	})
}
