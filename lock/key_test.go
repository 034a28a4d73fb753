package lock_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/lock"
)

// L-KEY-01, L-KEY-02
func TestNormalizeKey_Vectors(t *testing.T) {
	for _, row := range []struct {
		name, key, hex string // hex "": refused; "=": unchanged
	}{
		{"plain", "payment:42", "="},
		{"reserved looking", "fence:payment:42", "="},
		{"composed", "cafe\u0301", "636166c3a9"},
		{"angstrom sign", "\u212b", "c385"},
		{"grows", "\u0958", "e0a495e0a4bc"},
		{"marks are ordered", "q\u0307\u0323", "71cca3cc87"},
		{"512 bytes", strings.Repeat("a", 512), "="},
		{"512 bytes of four", strings.Repeat("\U0001F512", 128), "="},
		{"600 bytes raw, 400 in NFC", strings.Repeat("e\u0301", 200), hex.EncodeToString([]byte(strings.Repeat("\u00e9", 200)))},
		{"300 bytes raw, 600 in NFC", strings.Repeat("\u0958", 100), ""},
		{"513 bytes", strings.Repeat("a", 513), ""},
		{"2000 bytes", strings.Repeat("x", 2000), ""},
		{"empty", "", ""},
		{"invalid UTF-8", "a\xffb", ""},
		{"surrogate", "\xed\xa0\x80", ""},
		{"slashes", "key/with/slashes", "="},
	} {
		got, err := lock.NormalizeKey(row.key)
		switch {
		case row.hex == "":
			if !errors.Is(err, lock.ErrInvalidArgument) {
				t.Errorf("%s: got %v, want InvalidArgument", row.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.hex == "=" && got != row.key, row.hex != "=" && hex.EncodeToString([]byte(got)) != row.hex:
			t.Errorf("%s: got %x", row.name, got)
		}
	}
}

// L-KEY-03, L-KEY-04, L-TST-02
func TestStorageKey_Vectors(t *testing.T) {
	rep := strings.Repeat
	for _, row := range []struct {
		name, prefix, key string
		limit, reserve    int
		want              string // "": refused
	}{
		{"1500 bytes fit", "", rep("x", 1500), 1500, 0, rep("x", 1500)},
		{"1501 bytes do not", "", rep("x", 1501), 1500, 0, "d15TB9CEVFlvtf3GTf8Aqg"},
		{"2000 bytes", "", rep("x", 2000), 1500, 0, "XA4OpCFXHDALXfauwKEYtQ"},
		{"its counter", "", "fence:XA4OpCFXHDALXfauwKEYtQ", 1500, 0, "fence:XA4OpCFXHDALXfauwKEYtQ"},
		{"prefix", "app", rep("x", 2000), 1500, 0, "app:KVJ2MFtcjK2LPaSQl8s_TQ"},
		{"trailing colons", "app:::", rep("x", 2000), 1500, 0, "app:KVJ2MFtcjK2LPaSQl8s_TQ"},
		{"composed", "", rep("\u00e9", 751), 1500, 0, "pGw2PYjLafZ_GCZ9URvk6g"},
		{"decomposed", "", rep("e\u0301", 751), 1500, 0, "pGw2PYjLafZ_GCZ9URvk6g"},
		{"long counter", "", "fence:" + rep("y", 1497), 1500, 0, "FRlguMDr9rjbf5FuHtdMeQ"},
		{"reserve fits", "test", rep("x", 69), 100, 26, "test:" + rep("x", 69)},
		{"reserve does not", "test", rep("x", 70), 100, 26, "test:BeYSz8owR_3MKilT2xW5Kw"},
		{"longest prefix", rep("x", 27), rep("k", 100), 50, 0, rep("x", 27) + ":ZyNzKfoWnmaDyoTUEFRLsA"},
		{"prefix too long", rep("x", 28), rep("k", 100), 50, 0, ""},
		{"prefix fills the limit", rep("x", 50), rep("k", 100), 50, 0, ""},
		{"hash fills the limit", rep("x", 27), rep("k", 100), 51, 1, rep("x", 27) + ":ZyNzKfoWnmaDyoTUEFRLsA"},
		{"reserve leaves no room for the hash", rep("x", 27), rep("k", 100), 50, 1, ""},
		{"only colons", ":", "k", 50, 0, "k"},
		{"empty key", "p", "", 50, 0, ""},
		{"no room at all", "", rep("k", 100), 21, 0, ""},
	} {
		got, err := lock.StorageKey(row.prefix, row.key, row.limit, row.reserve)
		if row.want == "" {
			if !errors.Is(err, lock.ErrInvalidArgument) {
				t.Errorf("%s: got %q, %v, want InvalidArgument", row.name, got, err)
			}
			continue
		}
		if err != nil || got != row.want {
			t.Errorf("%s: got %q, %v, want %q", row.name, got, err, row.want)
		}
	}
}

// L-LKP-03
func TestHashKey_Vectors(t *testing.T) {
	for value, want := range map[string]string{
		"payment:42":            "6831d3d1611c045158f886b7",
		"cafe\u0301":            "850f7dc43910ff890f8879c0",
		"\u212b":                "0a94dc9d420d1142d6b71de6",
		"\U0001F512":            "6ae1d2ee2e9592ea2e665661",
		strings.Repeat("A", 22): "8a5bdb4cc15164126c6ef266",
	} {
		if got := lock.HashKey(value); got != want {
			t.Errorf("HashKey(%q) = %s, want %s", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"":                                "000000000000000000000000",
		"a":                               "0000006100000123000002a7",
		"\U0001F512":                      "001b0c75014469ff2f4d79d3",
		strings.Repeat("A", 22):           "761621603f31b080201c6800",
		"payment:42":                      "602228725e82081670294dde",
		"fence:payment:42":                "c2b05f5b9214bcf1f06bc45d",
		"cafe\u0301":                      "002e7a21248b3503a22cdb87",
		"\u212b":                          "000000c50000024f00000563",
		"\u0958":                          "000122c7000d9ff501fc9911",
		"q\u0307\u0323":                   "00020c750058227fc63e3a53",
		strings.Repeat("a", 512):          "9b502000d9518000d5380000",
		strings.Repeat("\U0001F512", 128): "b3688a803f64bf803808e980",
		"key/with/slashes":                "6d7cb05295b33576a1b3debe",
	} {
		if got := lock.SyncGuardHash(value); got != want {
			t.Errorf("SyncGuardHash(%q) = %s, want %s", value, got, want)
		}
	}
}

// B-11
func TestKeyedHasher_DependsOnItsSecret(t *testing.T) {
	if _, err := lock.KeyedHasher(nil); !errors.Is(err, lock.ErrInvalidArgument) {
		t.Errorf("empty secret: %v", err)
	}
	one, err := lock.KeyedHasher([]byte("one secret"))
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("another")
	two, err := lock.KeyedHasher(secret)
	if err != nil {
		t.Fatal(err)
	}
	before := two("k")
	clear(secret)
	switch {
	case one("cafe\u0301") != one("caf\u00e9"):
		t.Error("not deterministic over NFC")
	case one("k") == two("k"), one("k") == lock.HashKey("k"):
		t.Error("the secret does not matter")
	case two("k") != before:
		t.Error("the hasher lost its secret with its caller's")
	case len(one("k")) != 24:
		t.Errorf("length %d", len(one("k")))
	}
}

// L-ID-01
func TestNewLockID_IsRandom(t *testing.T) {
	const n = 100_000
	seen := make(map[string]struct{}, n)
	values := make(map[string]struct{}, 16*256) // of each byte: all of them are random
	for range n {
		id := lock.NewLockID()
		if err := lock.ValidateLockID(id); err != nil {
			t.Fatal(err)
		}
		raw, err := hexOf(id)
		if err != nil || len(raw) != 32 {
			t.Fatalf("%q is not 16 bytes", id)
		}
		for i := 0; i < len(raw); i += 2 {
			values[digits(int64(i))+raw[i:i+2]] = struct{}{}
		}
		seen[id] = struct{}{}
	}
	if len(values) != 16*256 {
		t.Errorf("%d values of the bytes, want all 16 times 256", len(values))
	}
	if len(seen) != n {
		t.Errorf("%d of %d ids are unique", len(seen), n)
	}
}

// L-ID-02
func TestValidateLockID_ChecksTheForm(t *testing.T) {
	good := "AZaz09_-AZaz09_-AZaz0B" // B is not canonical as last character
	if err := lock.ValidateLockID(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", good[1:], good + "A", good[1:] + "=", good[1:] + "+", good[1:] + "/", good[2:] + "\u00e9", strings.Repeat(" ", 22)} {
		if err := lock.ValidateLockID(bad); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// L-TIME-01
func TestIsLive_HasATolerance(t *testing.T) {
	for past, want := range map[int64]bool{-1: true, 0: true, 999: true, 1000: false, 1001: false} {
		if got := lock.IsLive(5000, 5000+past); got != want {
			t.Errorf("%d ms past the end: %v", past, got)
		}
	}
}

// L-FENCE-01, L-FENCE-03
func TestFormatFence_Has15Digits(t *testing.T) {
	for n, want := range map[int64]lock.Fence{
		1: "000000000000001", 42: "000000000000042", lock.FenceWarn: "090000000000000", lock.FenceMax: "900000000000000",
	} {
		if got, err := lock.FormatFence(n); err != nil || got != want {
			t.Errorf("%d: %q, %v", n, got, err)
		}
	}
	for _, n := range []int64{0, -1, lock.FenceMax + 1, 1<<63 - 1} {
		if _, err := lock.FormatFence(n); !errors.Is(err, lock.ErrInternal) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// L-FENCE-05
func TestParseFence_ReadsOlderForms(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "7": 7, "000000000000042": 42, "0000000000000000042": 42, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := lock.ParseFence(s); err != nil || got != want {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "-1", "+1", " 1", "1 ", "0x1f", "1e3", "1.0", "99999999999999999999", "9223372036854775808", "\u0661", "abc"} {
		if _, err := lock.ParseFence(s); !errors.Is(err, lock.ErrInternal) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// The order of the contract's note: a 19-digit fence sorts below every later
// 15-digit one.
func TestFence_OrdersAcrossWidths(t *testing.T) {
	for _, v := range []int64{1, 9, 10, 99_999, 100_000, 123_456_789_012, 899_999_999_999_999} {
		old := strings.Repeat("0", 19-len(digits(v))) + digits(v)
		later, err := lock.FormatFence(v + 1)
		if err != nil || string(later) <= old {
			t.Errorf("%s is not above %s (%v)", later, old, err)
		}
	}
}
