package conform

import (
	"context"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// droneTime is the fleet's time in the examination of a drone. It runs speed times as fast as the
// machine's; above 1 it is the drone's own at its first report, so that a simulated drone can have
// any time.
type droneTime struct {
	drone domain.DroneID
	speed float64
	began time.Time // of the machine

	mu    sync.Mutex
	ahead time.Duration // at began
	met   bool
}

func newDroneTime(id domain.DroneID, speed float64) *droneTime {
	return &droneTime{drone: id, speed: speed, began: time.Now()}
}

// Now implements Line.
func (d *droneTime) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now()
}

// now is Now; the lock must be held.
func (d *droneTime) now() time.Time {
	return d.began.Round(0).Add(d.ahead + time.Duration(float64(time.Since(d.began))*d.speed))
}

// meet takes the drone's time over at its first report, if time runs faster than the machine's.
func (d *droneTime) meet(data []byte, attrs map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.met || d.speed == 1 {
		return
	}
	if t, err := wire.DecodeTelemetry(data, attrs); err == nil && t.DroneID == d.drone {
		d.met = true
		d.ahead += t.Timestamp.Sub(d.now())
	}
}

// second is a second of the fleet's time, as a timer of the machine.
func (d *droneTime) second() *time.Timer {
	return time.NewTimer(time.Duration(float64(time.Second) / d.speed))
}

// next waits about a second for a message.
func (d *droneTime) next(ctx context.Context, messages <-chan Message) (Message, bool, error) {
	second := d.second()
	defer second.Stop()
	select {
	case m := <-messages:
		return m, true, nil
	case <-second.C:
		return Message{}, false, nil
	case <-ctx.Done():
		return Message{}, false, ctx.Err()
	}
}

// Slack is what DroneConfig.Slack should be for a speed: a quarter of a second of the machine's
// time, or nothing where no time runs faster.
func Slack(speed float64) time.Duration {
	if speed == 1 {
		return 0
	}
	return time.Duration(speed * float64(250*time.Millisecond))
}
