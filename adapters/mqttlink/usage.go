package mqttlink

import (
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A minute's worth of what one drone may send through one gateway.
const (
	maxReports = 600    // 10 a second
	maxLate    = 60_000 // older than a minute: what was kept during an outage comes all at once
	maxAnswers = 60     // of the gateway, to hellos and to what it refuses
)

const usagePeriod = time.Minute

// maxUsers bounds the memory of usages, far above any fleet.
const maxUsers = 100_000

// usages counts what each drone sends, minute by minute.
type usages struct {
	mu    sync.Mutex
	began time.Time
	of    map[domain.DroneID]usage
}

type usage struct{ reports, late, answers int }

// report counts a report of a time and says whether it is within the allowance.
func (u *usages) report(drone domain.DroneID, now, at time.Time) bool {
	return u.count(drone, now, func(n *usage) bool {
		if now.Sub(at) > usagePeriod {
			n.late++
			return n.late <= maxLate
		}
		n.reports++
		return n.reports <= maxReports
	})
}

// answer counts an answer and says whether it is within the allowance.
func (u *usages) answer(drone domain.DroneID, now time.Time) bool {
	return u.count(drone, now, func(n *usage) bool { n.answers++; return n.answers <= maxAnswers })
}

// count starts anew with each period. A clock that jumps begins a new one.
func (u *usages) count(drone domain.DroneID, now time.Time, add func(*usage) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if passed := now.Sub(u.began); u.of == nil || passed < 0 || passed >= usagePeriod || len(u.of) >= maxUsers {
		u.began, u.of = now, map[domain.DroneID]usage{}
	}
	n := u.of[drone]
	within := add(&n)
	u.of[drone] = n
	return within
}
