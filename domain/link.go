package domain

import "time"

// LinkStatus is what became of a drone's session at a gateway.
type LinkStatus string

// The statuses of links.
const (
	LinkOpened   LinkStatus = "OPENED"   // a session has begun
	LinkLost     LinkStatus = "LOST"     // a session ended without a goodbye, and the drone did not come back
	LinkRestored LinkStatus = "RESTORED" // a session has begun after one was lost
)

// LinkStatuses lists them all.
var LinkStatuses = []LinkStatus{LinkOpened, LinkLost, LinkRestored}

// LinkState says what became of a session.
type LinkState struct {
	DroneID DroneID
	Session string
	Status  LinkStatus
	At      time.Time // when the session began or ended, by the gateway's clock
}
