package pubsubio

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// futureOf refuses the reports of drones called so, and takes the others.
func futureOf(prefix string) applier {
	return func(_ context.Context, t domain.Telemetry) error {
		if strings.HasPrefix(string(t.DroneID), prefix) {
			return &policy.Rejection{Reason: policy.ReasonFutureTimestamp, Subject: string(t.DroneID)}
		}
		return nil
	}
}

// F-BAT-01, F-DLQ-01: drones whose clocks are wrong hold up no other, however
// long their dead letters take; and nothing is acked before its letter is there,
// whether it has an ordering key or not.
func TestTelemetry_DeadLettersHoldUpNoOtherDrone(t *testing.T) {
	l := newLine(t)
	release := l.stallLetters()
	defer release()
	s := l.settler(TopicTelemetry)
	s.deadLetters.timeout = time.Hour // the test decides
	l.pipeline(s, futureOf("AHEAD"))
	const keyed, others = 3, 5
	for range keyed {
		l.report("AHEAD-1", "AHEAD-1")
	}
	for range others {
		l.report("AHEAD-2", "")
	}
	held := l.meter.Backlog(TopicTelemetry, time.Now)
	eventually(t, "the first poison is in work", func() bool { return held.Messages() > 0 })
	l.report("HONEST", "HONEST")
	l.awaitSettlements("the honest report is applied, and nothing else acked", 1, 0)
	if n := l.settled(meter.Applied); n != 1 {
		t.Errorf("%d reports applied", n)
	}
	if ids := l.letters(TopicTelemetry); len(ids) > 0 {
		t.Errorf("letters %v while none can be published", ids)
	}
	release()
	l.awaitSettlements("all poison is acked", 1+keyed+others, 0)
	if ids := l.letters(TopicTelemetry); len(ids) != keyed+others {
		t.Errorf("letters %v", ids)
	}
	l.report("AHEAD-1", "AHEAD-1") // the key goes on
	l.awaitSettlements("one more", 2+keyed+others, 0)
}

// F-DLQ-01: a message whose dead letter cannot be published in time is given
// back, not acked, and has its letter when that can be published again.
func TestSettle_GivesBackWhatHasNoDeadLetterInTime(t *testing.T) {
	l := newLine(t)
	release := l.stallLetters()
	defer release()
	s := l.settler(TopicTelemetry)
	s.deadLetters.timeout = 50 * time.Millisecond
	l.pipeline(s, futureOf("AHEAD"))
	l.report("AHEAD", "")
	eventually(t, "the report is given back", func() bool { _, nacked := l.settlements(); return nacked > 0 })
	if acked, _ := l.settlements(); acked > 0 || l.settled(meter.DeadLetter) > 0 {
		t.Errorf("%d acked, %d counted as dead letters", acked, l.settled(meter.DeadLetter))
	}
	release()
	eventually(t, "the report is acked", func() bool { acked, _ := l.settlements(); return acked == 1 })
	if ids := l.letters(TopicTelemetry); len(ids) == 0 {
		t.Error("acked without a dead letter")
	}
}
