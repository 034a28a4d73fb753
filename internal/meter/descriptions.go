package meter

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Description is one metric as dashboards and alerts know it.
type Description struct {
	Name   string
	Type   string // counter, gauge or histogram (of seconds)
	Labels []string
	Help   string
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// desc is a Description with Prometheus' own.
type desc struct {
	Description
	prometheus *prometheus.Desc
}

// all is every metric, in the order of declaration below.
var all []desc

func describe(name, kind, help string, labels ...string) desc {
	name = "dronefleet_" + name
	d := desc{Description{Name: name, Type: kind, Labels: labels, Help: help}, prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, d)
	return d
}

var (
	settledTotal = describe("messages_settled_total", counter,
		"Messages acked or nacked, by kind (telemetry, orders, decisions), outcome (applied, rejected, dead_letter, nacked) and reason.", "kind", "outcome", "reason")
	rpcsTotal = describe("firestore_rpcs_total", counter,
		"Firestore calls, by the operation they serve.", "operation", "method")
	rpcsFailedTotal = describe("firestore_rpcs_failed_total", counter,
		"Firestore calls that ended in an error.", "operation", "method")
	readsTotal = describe("firestore_reads_total", counter,
		"Documents that Firestore returned, and lookups that found none, each of which it bills as a read. It also bills queries that found none and counts, which are not in here.", "operation")
	writesTotal = describe("firestore_writes_total", counter,
		"Documents written or deleted by commits that succeeded; Firestore bills deletions by themselves.", "operation")
	commitRetriesTotal = describe("commit_retries_total", counter,
		"Transactions run again and commits refused because another writer was faster.", "operation")
	cyclesTotal = describe("cycles_total", counter,
		"Solve cycles, by outcome (run, skipped because another process was at it, failed).", "outcome")
	plansRefusedTotal = describe("plans_refused_total", counter,
		"Plans that broke the rules and were not published.")
	sweepsTotal = describe("sweeps_total", counter,
		"Sweeps of the fleet for what no message says; one that failed is not counted.")
	sweepsSkippedTotal = describe("sweeps_skipped_total", counter,
		"Sweeps left to other processes because this one's clock is wrong.")
	commandsPublishedTotal = describe("commands_published_total", counter,
		"Mission commands and revocations sent to drones.")
	outboxOverflowTotal = describe("outbox_overflow_total", counter,
		"Mission commands left to the sweeper because the outbox was full.")
	pickedUpAgainTotal = describe("parcels_picked_up_again_total", counter,
		"Orders whose parcel had been put down, as a late report shows, when another mission had picked one up again.")
	publishToCommitSeconds = describe("publish_to_commit_seconds", histogram,
		"Seconds from a message's publication to the commit of its effect; telemetry_status and telemetry_position are telemetry's two tiers.", "kind")
	cycleSeconds = describe("cycle_seconds", histogram,
		"Seconds that a solve cycle took which ran to its end, from asking for its lock to the last decision published.")
	lockWaitSeconds = describe("lock_wait_seconds", histogram,
		"Seconds until a lock that was asked for was granted, or found to be held by another.", "lock")
	backlogAgeSeconds = describe("backlog_age_seconds", gauge,
		"Seconds since the publication of the oldest message that this process holds and has not settled; 0 if it holds none.", "kind")
	backlogMessages = describe("backlog_messages", gauge,
		"Messages that this process holds and has not settled.", "kind")
	ordersUnserved = describe("orders_unserved", gauge,
		"Orders that have waited for three intervals, so that no depot has served them, and that the last cycle left out too, by priority.", "priority")
	clockOffsetSeconds = describe("clock_offset_seconds", gauge,
		"Seconds by which Firestore's clock was ahead of the local one when last measured; negative if it was behind.")
	lockHeld = describe("lock_held", gauge,
		"1 while this process holds the lock, else 0.", "lock")
	readsPerThousand = describe("firestore_reads_per_thousand_messages", gauge,
		"Documents read since the process began (see firestore_reads_total), for a thousand messages acked.", "kind")
	writesPerThousand = describe("firestore_writes_per_thousand_messages", gauge,
		"Documents written since the process began (see firestore_writes_total), for a thousand messages acked.", "kind")
)

// Descriptions lists every metric a meter has.
func Descriptions() []Description {
	list := make([]Description, len(all))
	for i, d := range all {
		list[i] = d.Description
		list[i].Labels = slices.Clone(d.Labels)
	}
	return list
}

// Names lists the names of all metrics. A histogram's series have the suffixes
// _bucket, _sum and _count.
func Names() []string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Name
	}
	return names
}
