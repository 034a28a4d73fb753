package redislock

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
)

// The user that docs/lock.md sets up may do all that a backend does, and nothing else.
func TestBackend_NeedsNoMorePermissionsThanDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/lock.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^    (ACL SETUSER app .*)$`).FindSubmatch(page)
	if rule == nil {
		t.Fatal("docs/lock.md sets up no user")
	}
	server := startRedis(t)
	var words []any
	for _, word := range strings.Fields(string(rule[1])) {
		words = append(words, word)
	}
	if err := dial(t, server.Addr()).Do(bg, words...).Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "app", Password: "PASSWORD", DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Set(bg, "other", "1", 0).Err(); err == nil || !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("the user may write other keys: %v", err)
	}

	b := newBackend(t, client, Config{SkipDurabilityCheck: true})
	held, err := lock.Acquire(bg, b, key)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan error, 1)
	go func() {
		next, err := lock.Acquire(bg, b, key, lock.WithTimeout(time.Minute), lock.WithMaxRetries(1<<30))
		if err == nil {
			err = next.Close()
		}
		woken <- err
	}()
	for name, call := range map[string]func() error{
		"extend":     func() error { _, err := held.Extend(bg, ttl); return err },
		"isLocked":   func() error { _, err := b.IsLocked(bg, key); return err },
		"lookup":     func() error { _, err := b.Lookup(bg, lock.Query{LockID: held.LockID()}); return err },
		"list":       func() error { _, err := b.List(bg); return err },
		"fence":      func() error { _, err := b.HighestFence(bg, key); return err },
		"durability": func() error { _, err := b.CheckDurability(bg); return err },
		"clock":      func() error { _, err := b.CheckClock(bg); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	if err := <-woken; err != nil {
		t.Errorf("waiting: %v", err)
	}
	soon, cancel := context.WithTimeout(bg, 100*time.Millisecond)
	defer cancel()
	if err := b.follow(soon, key); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("listening: %v", err)
	}
}
