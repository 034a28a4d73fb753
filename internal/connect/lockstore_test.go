package connect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// secret is the password of each address; it must never be printed.
const secret = "hunter2"

func TestParseLockStore_ReadsAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"redis://h:6380/2":     "redis://h:6380/2",
		"redis://h":            "redis://h:6379/0",
		"redis://:hunter2@h:1": "redis://h:1/0",
		"redis://app:hunter2@h:1/0?prefix=fleet&replicas=2":  "redis://h:1/0",
		"redis://app@h:1?dial_timeout=3s":                    "redis://h:1/0",
		"redis://[::1]:1":                                    "redis://[::1]:1/0",
		"rediss://:hunter2@h:1/3":                            "rediss://h:1/3",
		"rediss://h:1?skip_verify=true":                      "rediss://h:1/0",
		"postgres://app@h:5433/locks":                        "postgres://h:5433/locks",
		"postgresql://app@h/locks":                           "postgres://h:5432/locks",
		"postgres://app:hunter2@h/locks?sslmode=verify-full": "postgres://h:5432/locks",
		"postgres://app:hunter%402@h/locks?pool_max_conns=4": "postgres://h:5432/locks",
		"postgres://app@h/locks?password=hunter2":            "postgres://h:5432/locks",
		"postgres:///locks?host=/run/postgresql&user=app":    "postgres:///locks?host=/run/postgresql",
		"postgres://app@a:1,b:2/locks":                       "postgres://a:1/locks",
		"firestore://my-project":                             "firestore://my-project/(default)",
		"firestore://my-project/(default)":                   "firestore://my-project/(default)",
		"firestore://my-project/locks":                       "firestore://my-project/locks",
	} {
		store, err := connect.ParseLockStore(text)
		if err != nil || !store.Set() {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := store.String(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
		if all := fmt.Sprintf("%v %+v %#v", store, store, store); strings.Contains(all, secret) {
			t.Errorf("%s is printed as %s", text, all)
		}
	}
}

// A refusal says what to give, and quotes nothing that may hold a password.
func TestParseLockStore_RefusesWithoutThePassword(t *testing.T) {
	const forms = "is not the address of a lock store; give redis://"
	for text, want := range map[string]string{
		"":                                             forms,
		"h:6379":                                       forms,
		"redis:/h:6379":                                forms,
		"unix:///run/redis.sock?hunter2":               forms,
		"mysql://u:hunter2@h/db":                       forms,
		"Redis://h":                                    forms,
		"host=h user=u password=hunter2":               forms,
		"redis://":                                     "give redis://HOST:PORT/DB",
		"redis://:6379":                                "give redis://HOST:PORT/DB",
		"redis://:hunter2@:6379/0":                     "give redis://HOST:PORT/DB",
		"redis://:hunter2@h:port":                      "escape special characters of the password",
		"redis://:hunter2%zz@h:1":                      "escape special characters of the password",
		"redis://:hunter2/x@h:1":                       "escape special characters of the password",
		"redis://:hunter2@h:1/locks":                   "give redis://HOST:PORT/DB",
		"redis://:hunter2@h:1/0?colour=red":            "give redis://HOST:PORT/DB",
		"redis://:hunter2@h:1?replicas=all":            "replicas that is not a whole number",
		"redis://:hunter2@h:1?replicas=-1":             "replicas that is not a whole number",
		"postgres://":                                  "give postgres://USER@HOST:PORT/DB",
		"postgres:///locks":                            "give postgres://USER@HOST:PORT/DB",
		"postgres://u:hunter2@h:port/db":               "give postgres://USER@HOST:PORT/DB",
		"postgres://u:hunter2%zz@h/db":                 "give postgres://USER@HOST:PORT/DB",
		"postgres://u:hunter2@h/db?sslmode=maybe":      "give postgres://USER@HOST:PORT/DB",
		"postgres://u:hunter2@h/db?pool_max_conns=few": "give postgres://USER@HOST:PORT/DB",
		"firestore://":                                 "is not a Google Cloud project id",
		"firestore://My Project":                       "is not a Google Cloud project id",
		"firestore://my-project/a/b":                   "is not a Firestore database id",
	} {
		_, err := connect.ParseLockStore(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The password of LOCK_PASSWORD is used where the address has none; a wrong one is told
// apart from a server that is down, and neither error nor log shows a password.
func TestLockStore_PasswordIsTakenFromTheVariableAndNeverShown(t *testing.T) {
	server := storeserver.Redis(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), DisableIdentity: true})
	defer admin.Close()
	for _, rule := range [][]any{{"locks", "on", ">" + secret, "~*", "&*", "+@all"}, {"default", "off"}} {
		if err := admin.Do(t.Context(), append([]any{"ACL", "SETUSER"}, rule...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	at := strings.TrimPrefix(server.URL, "redis://")
	const down = "127.0.0.1:1" // nobody listens there
	for _, c := range []struct {
		variable, address string
		want              error
	}{
		{secret, "redis://locks@" + at, nil},
		{"another", "redis://locks:" + secret + "@" + at, nil},
		{secret, "redis://locks:" + secret + "s@" + at, lock.ErrAuthFailed},
		{secret + "s", "redis://locks@" + at, lock.ErrAuthFailed},
		{"", "redis://" + at, lock.ErrAuthFailed},
		{secret, "redis://locks@" + down, lock.ErrServiceUnavailable},
		{secret, "postgres://locks@" + down + "/locks", lock.ErrServiceUnavailable},
		{"another", "postgres://locks:" + secret + "@" + down + "/locks", lock.ErrServiceUnavailable},
	} {
		t.Setenv(connect.LockPassword, c.variable)
		store, err := connect.ParseLockStore(c.address)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		err = use(t, store, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if (err == nil) != (c.want == nil) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", store, err, c.want)
		}
		if shown := fmt.Sprintf("%v %+v %s", err, err, log.String()); strings.Contains(shown, secret) {
			t.Errorf("%s shows the password: %s", store, shown)
		}
	}
}

// use takes a lock and gives it back.
func use(t *testing.T, store connect.LockStore, log *slog.Logger) error {
	t.Helper()
	locks, stop, err := store.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	h, free, err := lock.TryAcquire(t.Context(), locks, "k", lock.WithTimeout(10*time.Second), lock.WithLogger(log))
	if free {
		err = h.Close()
	}
	if closed := locks.Close(context.Background()); closed != nil {
		t.Error(closed)
	}
	if stopped := stop(); stopped != nil {
		t.Error(stopped)
	}
	return err
}
