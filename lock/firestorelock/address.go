package firestorelock

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
)

const (
	maxDocumentIDBytes   = 1500
	maxNestedCollections = 100
	counterPrefix        = "fence:"
)

// address is where the documents of one key are.
type address struct {
	key     string // NFC
	base    string
	nested  bool                   // the base holds slashes: queries do not see the lock
	lock    *firestore.DocumentRef // Collection/base
	counter *firestore.DocumentRef // FenceCollection/fence:base
	legacy  *firestore.DocumentRef // FenceCollection/base, the counter of SyncGuard 1.x
}

// locate normalises a key and finds its documents. Keys Firestore cannot
// address are refused, or hashed if so configured.
func (b *Backend) locate(key string) (address, error) {
	key, base, counter, err := b.ids(key)
	if err != nil {
		return address{}, err
	}
	// Client.Doc checks nested paths, which CollectionRef.Doc does not.
	return address{
		key:     key,
		base:    base,
		nested:  strings.Contains(base, "/"),
		lock:    b.client.Doc(b.lockPath + "/" + base),
		counter: b.client.Doc(b.counterPath + "/" + counter),
		legacy:  b.client.Doc(b.counterPath + "/" + base),
	}, nil
}

// ids normalises a key and finds the ids of its lock and of its counter.
func (b *Backend) ids(given string) (key, base, counter string, err error) {
	if key, err = lock.NormalizeKey(given); err != nil {
		return "", "", "", err
	}
	if base, err = lock.StorageKey("", key, maxDocumentIDBytes, 0); err != nil {
		return "", "", "", err
	}
	if err := b.checkBase(base); err != nil {
		if b.cfg.UnaddressableKeys != HashKeys {
			return "", "", "", err
		}
		base = hashedBase(key)
	}
	counter, err = lock.StorageKey("", counterPrefix+base, maxDocumentIDBytes, 0)
	return key, base, counter, err
}

// checkBase refuses what is not a document path below the lock collection: Firestore or
// SyncGuard would refuse it too, or silently take it for another key.
func (b *Backend) checkBase(base string) error {
	segments := strings.Split(base, "/")
	if slices.Contains(segments, "") {
		return lock.Invalid("key has an empty path segment; drop the extra slash or set UnaddressableKeys to HashKeys")
	}
	if len(segments)%2 == 0 {
		return lock.Invalid("key has an odd number of slashes; replace one or set UnaddressableKeys to HashKeys")
	}
	if slices.ContainsFunc(segments, func(s string) bool { return !isSegment(s) }) {
		return lock.Invalid("key has a path segment reserved by Firestore (., .. or __x__); rename it or set UnaddressableKeys to HashKeys")
	}
	deepest := max(strings.Count(b.lockPath, "/"), strings.Count(b.counterPath, "/")) + 1
	if (deepest+len(segments))/2 > maxNestedCollections {
		return lock.Invalid("key nests more than 100 collections; use fewer slashes or set UnaddressableKeys to HashKeys")
	}
	return nil
}

// isSegment tells whether Firestore accepts a path segment.
func isSegment(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > maxDocumentIDBytes || !utf8.ValidString(s) {
		return false
	}
	return len(s) < 4 || !strings.HasPrefix(s, "__") || !strings.HasSuffix(s, "__")
}

// hashedBase stands for a key that is not a valid path.
func hashedBase(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
