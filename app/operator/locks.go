package operator

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
)

// lockCollection is the name of locks in cursors.
const lockCollection = "locks"

// HeldLocks returns one page of the live locks, ordered by the hash of their key. It also returns
// the hash that the next page comes after, if there is one.
//
// Cost: 1 RPC; a read per lock document, live or not.
func HeldLocks(ctx context.Context, store lock.Store, page firestoretx.Page) (locks []lock.RawInfo, next string, err error) {
	locks, err = store.List(ctx)
	if err != nil {
		return nil, "", err
	}
	locks = slices.DeleteFunc(locks, func(l lock.RawInfo) bool { return l.KeyHash <= page.After })
	slices.SortFunc(locks, func(a, b lock.RawInfo) int { return cmp.Compare(a.KeyHash, b.KeyHash) })
	if page.Limit > 0 && len(locks) > page.Limit {
		locks = locks[:page.Limit]
		next = locks[page.Limit-1].KeyHash
	}
	return locks, next, nil
}

// CheckKeyHash says what is wrong with the hash that a page of locks comes after.
func CheckKeyHash(hash string) error {
	if _, err := hex.DecodeString(hash); err != nil || hash == "" {
		return errors.New("is not the hash of a lock's key")
	}
	return nil
}

// ListLocks prints one page of the live locks: the hashes of their keys and ids or, if raw, the
// keys and ids themselves. Keys in known are not secret and always shown.
//
// Cost: see HeldLocks.
func (d *Desk) ListLocks(ctx context.Context, raw bool, known []string, page firestoretx.Page) error {
	locks, next, err := HeldLocks(ctx, d.Locks, page)
	if err != nil {
		return err
	}
	if d.JSON {
		if raw {
			return d.printJSON(entity.Page(lockCollection, locks, next, nil))
		}
		return d.printJSON(entity.Page(lockCollection, entity.Each(locks, func(l lock.RawInfo) lock.Info { return l.Info }), next, nil))
	}
	if len(locks) == 0 {
		d.say("No lock is held.")
		if !d.CSV {
			return nil
		}
	}
	if err := d.lockTable(locks, raw, known); err != nil {
		return err
	}
	d.footer(lockCollection, next, nil)
	return nil
}

// Lock returns the lock of one key; nil if nobody holds it.
//
// Cost: 1 RPC, 1 read.
func (c Commands) Lock(ctx context.Context, key string) (*lock.RawInfo, error) {
	if key == "" {
		return nil, ofField("key", CheckLockKey(key))
	}
	l, err := c.Locks.LookupRaw(ctx, lock.Query{Key: key})
	if err != nil {
		return nil, keyError(key, err)
	}
	return l, nil
}

// ShowLock prints the lock of one key. A free lock is not an error.
//
// Cost: 1 RPC, 1 read.
func (d *Desk) ShowLock(ctx context.Context, key string, raw bool) error {
	l, err := d.Commands.Lock(ctx, key)
	if err != nil {
		return err
	}
	switch {
	case d.JSON && l == nil:
		return d.printJSON(map[string]any{"locked": false})
	case d.JSON && raw:
		return d.printJSON(map[string]any{"locked": true, "lock": l})
	case d.JSON:
		return d.printJSON(map[string]any{"locked": true, "lock": l.Info})
	case l == nil:
		d.say("Nobody holds %s.", key)
		return nil
	}
	return d.lockTable([]lock.RawInfo{*l}, raw, []string{key})
}

// keyError returns a *FieldError if the library rejected the key, and err otherwise. The library's
// own fixes address programs, not operators.
func keyError(key string, err error) error {
	refused, is := errors.AsType[*lock.Error](err)
	if !is || refused.Code != lock.CodeInvalidArgument {
		return err
	}
	text, is := errors.AsType[lock.SafeTexter](refused.Err)
	if !is {
		return err
	}
	why, is := strings.CutPrefix(text.SafeText(), "key ")
	if !is { // of the call, not of the key
		return err
	}
	why, _, _ = strings.Cut(why, ";")
	return ofField("key", fmt.Errorf("%.80q is invalid: it %s; \"locks list\" shows what is held", key, why))
}

// BreakLock ends the lock of a key, whoever holds it, and prints it; see Commands. A free
// lock is not an error.
func (d *Desk) BreakLock(ctx context.Context, key, reason string) error {
	broken, err := d.Commands.BreakLock(ctx, key, reason)
	switch {
	case err != nil:
		return err
	case d.JSON && broken == nil:
		return d.printJSON(map[string]any{"broken": false})
	case d.JSON:
		return d.printJSON(map[string]any{"broken": true, "lock": broken})
	case broken == nil:
		d.say("Nobody holds %s.", key)
		return nil
	}
	d.say("Broke %s: fence %s, held since %s, would have expired %s. Its next holder gets a higher fence.",
		key, broken.Fence, d.ago(atMs(broken.AcquiredAtMs)), d.ago(atMs(broken.ExpiresAtMs)))
	return nil
}

func (d *Desk) lockTable(locks []lock.RawInfo, raw bool, known []string) error {
	isKnown := map[string]bool{}
	for _, key := range known {
		if normal, err := lock.NormalizeKey(key); err == nil { // as locks are stored
			isKnown[normal] = true
		}
	}
	header := []string{"LOCK", "KEY HASH", "ID HASH", "FENCE", "ACQUIRED", "EXPIRES"}
	if raw {
		header = append(header, "LOCK ID")
	}
	t := d.table(header...)
	for _, l := range locks {
		name := ""
		if raw || isKnown[l.Key] {
			name = l.Key
		}
		row := []string{name, l.KeyHash, l.LockIDHash, string(l.Fence), d.ago(atMs(l.AcquiredAtMs)), d.ago(atMs(l.ExpiresAtMs))}
		if raw {
			row = append(row, l.LockID)
		}
		t.row(row...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if raw {
		d.say("Keep lock ids secret: anyone who has one can release the lock.")
	}
	return nil
}

// atMs converts Unix milliseconds to a time; 0 stands for the zero time.
func atMs(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// KnownKeys returns the keys of the fleet's own locks, which are not secret: the
// managers' and, for each well-formed depot, the cycle's.
//
// Cost: 1 RPC; a read per depot.
func (d *Desk) KnownKeys(ctx context.Context, managers []string, cycle func(domain.DepotID) string) ([]string, error) {
	depots, err := d.Store.Depots(ctx)
	if err != nil {
		return nil, err
	}
	keys := slices.Clone(managers)
	for _, depot := range depots.Items {
		keys = append(keys, cycle(depot.ID))
	}
	return keys, nil
}
