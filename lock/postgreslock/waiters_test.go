package postgreslock

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/lock"
)

// waitingFor returns once that many sessions hold the advisory lock of those that wait.
func waitingFor(t *testing.T, pool *pgxpool.Pool, sessions int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var n int
		err := pool.QueryRow(bg, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1819239275 "+
			"AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&n)
		if err == nil && n == sessions {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d sessions wait, want %d (%v)", n, sessions, err)
		}
	}
}

// patient waits by signals alone: it polls once an hour.
func patient() []lock.Option {
	return []lock.Option{lock.WithTimeout(time.Minute), lock.WithRetryDelay(time.Hour), lock.WithBackoff(lock.BackoffFixed),
		lock.WithMaxRetries(1000), lock.WithTTL(time.Hour)}
}

// B-07: a process that waits is told of a release by another one, whoever deletes the row;
// with nobody waiting nobody is notified.
func TestBackend_WakesWaitersOfOtherProcesses(t *testing.T) {
	t.Parallel()
	holder, pool := fresh(t)
	for name, free := range map[string]func(key string, res lock.AcquireResult){
		"release": func(key string, res lock.AcquireResult) {
			mustRelease(t, holder, lock.Ref{Key: key, LockID: res.LockID})
		},
		"by hand": func(key string, res lock.AcquireResult) {
			if _, err := pool.Exec(bg, "DELETE FROM syncguard_locks WHERE key = $1", key); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			waiter := newBackend(t, pool, Config{})
			res := mustAcquire(t, holder, name)
			done := make(chan *lock.Handle, 1)
			go func() {
				h, err := lock.Acquire(bg, waiter, name, patient()...)
				if err != nil {
					t.Error(err)
				}
				done <- h
			}()
			waitingFor(t, pool, 1)
			free(name, res)
			if h := <-done; h != nil {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
			waitingFor(t, pool, 0)
		})
	}
}

// B-07: the listening connection is made anew, and what happened meanwhile is seen.
func TestBackend_ListensAgainAfterItsConnectionWasCut(t *testing.T) {
	t.Parallel()
	holder, pool := fresh(t)
	waiter := newBackend(t, pool, Config{})
	res := mustAcquire(t, holder, "k")
	done := make(chan error, 1)
	go func() {
		h, err := lock.Acquire(bg, waiter, "k", patient()...)
		if err == nil {
			err = h.Close()
		}
		done <- err
	}()
	waitingFor(t, pool, 1)
	if _, err := pool.Exec(bg, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1819239275 "+
		"AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, holder, lock.Ref{Key: "k", LockID: res.LockID})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Waiting is fair enough: of 64 waiters, spread over four processes, nobody waits longer
// than four times the median.
func TestBackend_WaitsFairly(t *testing.T) {
	t.Parallel()
	const processes = 4
	_, pool := fresh(t)
	var backends []lock.Backend
	for range processes {
		backends = append(backends, newBackend(t, pool, Config{}))
	}
	history.CheckFairness(t, "k", func() { waitingFor(t, pool, processes) }, backends...)
}
