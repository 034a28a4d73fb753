package httpapi

// Statuses of a check, worst last.
const (
	CheckOK      = "ok"
	CheckWarning = "warning" // ready, but an operator should look
	CheckFailing = "failing" // not ready
)

// Check is the state of one thing that the process depends on.
type Check struct {
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
	TookMs int64  `json:"tookMs"`

	// Clock: the server's time minus the local time, and how far the true offset may
	// be from that.
	OffsetMs      *float64 `json:"offsetMs,omitempty"`
	UncertaintyMs *float64 `json:"uncertaintyMs,omitempty"`

	// Backlog: the age of the oldest message in memory, by kind.
	AgeMs map[string]int64 `json:"ageMs,omitempty"`
	// Lock: whether this process holds it, and how long ago an attempt to acquire it
	// was last answered.
	Held       *bool  `json:"held,omitempty"`
	TriedAgoMs *int64 `json:"triedAgoMs,omitempty"`
	// Cycle: how long ago one last ended, in this process or, as far as this process
	// saw, in another.
	EndedAgoMs *int64 `json:"endedAgoMs,omitempty"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status string           `json:"status"`
	Checks map[string]Check `json:"checks"`
}

// worst is the status of the worst check.
func worst(checks map[string]Check) string {
	verdict := CheckOK
	for _, c := range checks {
		if c.Status == CheckFailing || c.Status == CheckWarning && verdict == CheckOK {
			verdict = c.Status
		}
	}
	return verdict
}
