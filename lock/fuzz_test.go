package lock_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/dronefleet/dronefleet/lock"
)

func FuzzNormalizeKey(f *testing.F) {
	for _, seed := range []string{"", "payment:42", "cafe\u0301", "\u0958", "a\xff", strings.Repeat("\u212b", 300), "key/with/slashes"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		got, err := lock.NormalizeKey(key)
		if err != nil {
			if !errors.Is(err, lock.ErrInvalidArgument) {
				t.Fatal(err)
			}
			return
		}
		if got == "" || len(got) > lock.MaxKeyBytes || !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) {
			t.Fatalf("%q became %q", key, got)
		}
		if again, err := lock.NormalizeKey(got); err != nil || again != got {
			t.Fatalf("%q became %q, then %q (%v)", key, got, again, err)
		}
		if lock.HashKey(key) != lock.HashKey(got) || lock.SyncGuardHash(key) != lock.SyncGuardHash(got) {
			t.Fatalf("%q and its normal form have different hashes", key)
		}
	})
}

func FuzzStorageKey(f *testing.F) {
	f.Add("", "k", 1500, 0)
	f.Add("app:::", strings.Repeat("x", 2000), 1500, 26)
	f.Add(strings.Repeat("x", 28), strings.Repeat("k", 100), 50, 0)
	f.Add("p", "e\u0301", 22, 3)
	f.Fuzz(func(t *testing.T, prefix, key string, limit, reserve int) {
		if reserve < 0 || limit < 0 || limit > 1<<20 || reserve > 1<<20 {
			return
		}
		got, err := lock.StorageKey(prefix, key, limit, reserve)
		if err != nil {
			if !errors.Is(err, lock.ErrInvalidArgument) {
				t.Fatal(err)
			}
			return
		}
		if got == "" || len(got)+reserve > limit {
			t.Fatalf("%d bytes and %d reserved exceed %d", len(got), reserve, limit)
		}
		if again, err := lock.StorageKey(prefix+":", norm.NFC.String(key), limit, reserve); err != nil || again != got {
			t.Fatalf("%q and %q (%v) for one key", got, again, err)
		}
	})
}

func FuzzParseFence(f *testing.F) {
	for _, seed := range []string{"", "0", "000000000000042", "9223372036854775807", "9223372036854775808", "-1", "0x1f", "\u0661"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := lock.ParseFence(s)
		if err != nil {
			if !errors.Is(err, lock.ErrInternal) {
				t.Fatal(err)
			}
			return
		}
		if want, err := strconv.ParseInt(s, 10, 64); err != nil || n != want || n < 0 {
			t.Fatalf("%q became %d", s, n)
		}
		fence, err := lock.FormatFence(n)
		if err != nil {
			if n >= 1 && n <= lock.FenceMax {
				t.Fatal(err)
			}
			return
		}
		if back, err := lock.ParseFence(string(fence)); err != nil || back != n || len(fence) != 15 {
			t.Fatalf("%d became %s, then %d (%v)", n, fence, back, err)
		}
	})
}
