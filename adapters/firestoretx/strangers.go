package firestoretx

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

const (
	// maxStrangers is how many unregistered drones may exist before reports of further ones are
	// refused. Otherwise anyone who may publish telemetry could create documents without end.
	maxStrangers = 1000
	// strangersRemembered is how long a count of them is used.
	strangersRemembered = 15 * time.Second
)

// strangerCount is the last count of unregistered drones, and the number that this process has
// added since.
type strangerCount struct {
	mu      sync.Mutex
	n       int64
	counted time.Time // machine time
}

func (c *strangerCount) keep(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.counted = n, time.Now()
}

func (c *strangerCount) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

// fresh is the number; false if it must be counted.
func (c *strangerCount) fresh() (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, time.Since(c.counted) <= strangersRemembered
}

// unregistered queries the drones that nobody registered.
func (s *Store) unregistered() firestore.Query {
	return s.client.Collection(Drones).Where("unregistered", "==", true)
}

// checkStranger refuses a report of an unknown drone while too many others are unregistered. With
// PlanUnregistered it refuses none.
//
// Cost: 1 RPC and 2 reads, if nothing counted in the last 15 s.
func (s *Store) checkStranger(ctx context.Context, id domain.DroneID) error {
	if s.drone.PlanUnregistered {
		return nil
	}
	n, fresh := s.strangers.fresh()
	if !fresh {
		var err error
		if n, err = count(ctx, s.unregistered()); err != nil {
			return wrap(err, "unregistered drones")
		}
		s.strangers.keep(n)
	}
	if n <= maxStrangers {
		return nil
	}
	return &StrangerError{&policy.Rejection{Reason: policy.ReasonDroneUnknown, Subject: string(id),
		Detail: fmt.Sprintf("no such drone, and %d others are not registered; register the drone, or retire the others", n)}}
}

// StrangerError refuses a report of an unknown drone.
type StrangerError struct{ Err error }

func (e *StrangerError) Error() string { return e.Err.Error() }
func (e *StrangerError) Unwrap() error { return e.Err }
