package postgreslock

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/lock"
)

// A role with the rights that docs/lock.md grants may do all that a backend does.
func TestBackend_NeedsNoMorePermissionsThanDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/lock.md")
	if err != nil {
		t.Fatal(err)
	}
	grant := regexp.MustCompile(`(?m)^    (GRANT .* TO app)$`).FindSubmatch(page)
	if grant == nil {
		t.Fatal("docs/lock.md grants nothing")
	}
	needPostgres(t)
	dsn := database(t)
	owner := newPool(t, dsn)
	if err := Migrate(bg, owner, Config{}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"CREATE ROLE app LOGIN", string(grant[1])} {
		if _, err := owner.Exec(bg, sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // a role is the server's, not the database's
		for _, sql := range []string{"DROP OWNED BY app", "DROP ROLE app"} {
			if _, err := owner.Exec(bg, sql); err != nil {
				t.Error(err)
			}
		}
	})
	pool := newPool(t, strings.Replace(dsn, "://postgres@", "://app@", 1))
	if err := Migrate(bg, pool, Config{}); err == nil {
		t.Error("the role may change the schema")
	}
	b := newBackend(t, pool, Config{})
	const key = "vehicle:7"
	held := mustAcquire(t, b, key)
	ref := lock.Ref{LockID: held.LockID, Key: key}
	for name, call := range map[string]func() error{
		"extend":     func() error { _, err := b.Extend(bg, ref, ttl); return err },
		"isLocked":   func() error { _, err := b.IsLocked(bg, key); return err },
		"lookup":     func() error { _, err := b.Lookup(bg, lock.Query{LockID: held.LockID}); return err },
		"list":       func() error { _, err := b.List(bg); return err },
		"fence":      func() error { _, err := b.HighestFence(bg, key); return err },
		"durability": func() error { _, err := b.CheckDurability(bg); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustRelease(t, b, ref)
	woken := make(chan error, 1)
	first := mustAcquire(t, b, key)
	go func() {
		next, err := lock.Acquire(bg, b, key, lock.WithTimeout(ttl), lock.WithMaxRetries(1<<30))
		if err == nil {
			err = next.Close()
		}
		woken <- err
	}()
	mustRelease(t, b, lock.Ref{LockID: first.LockID, Key: key})
	if err := <-woken; err != nil {
		t.Errorf("waiting: %v", err)
	}
}
