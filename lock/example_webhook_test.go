package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// webhook handles each event once, however often and to however many processes it
// is delivered.
type webhook struct {
	locks lock.Backend
	done  map[string]bool // stands for a table of events that were handled
}

func (w *webhook) ServeHTTP(reply http.ResponseWriter, r *http.Request) {
	event := r.Header.Get("Event-Id")
	err := lock.Do(r.Context(), w.locks, "webhook:"+event, func(context.Context, *lock.Handle) error {
		if w.done[event] {
			return nil // delivered again
		}
		fmt.Println("handling", event)
		w.done[event] = true // in one transaction with the effect, if both are in one database
		return nil
	}, lock.WithTTL(30*time.Second), lock.WithAutoExtend(), lock.WithMaxRetries(0))

	switch {
	case errors.Is(err, lock.ErrAcquisitionTimeout): // another delivery is being handled
		reply.Header().Set("Retry-After", "5")
		http.Error(reply, "event is being handled", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(reply, "event was not handled", http.StatusInternalServerError)
	default:
		reply.WriteHeader(http.StatusNoContent)
	}
}

// A webhook whose sender repeats deliveries. The lock keeps two deliveries of one
// event apart; the record of handled events makes the second one do nothing.
func Example_webhook() {
	w := &webhook{locks: memlock.New(), done: map[string]bool{}}
	deliver := func(event string) {
		r := httptest.NewRequest(http.MethodPost, "/webhook", nil)
		r.Header.Set("Event-Id", event)
		reply := httptest.NewRecorder()
		w.ServeHTTP(reply, r)
		fmt.Println(event, reply.Code)
	}
	deliver("evt-1")
	deliver("evt-1")

	other, _, err := lock.TryAcquire(context.Background(), w.locks, "webhook:evt-2") // another process has it
	if err != nil {
		fmt.Println(err)
		return
	}
	deliver("evt-2")
	if err := other.Close(); err != nil {
		fmt.Println(err)
	}
	deliver("evt-2")
	// Output:
	// handling evt-1
	// evt-1 204
	// evt-1 204
	// evt-2 503
	// handling evt-2
	// evt-2 204
}
