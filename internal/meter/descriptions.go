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

// desc is a Description with its Prometheus form.
type desc struct {
	Description
	prometheus *prometheus.Desc
}

// all lists every metric in the order of the declarations below.
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
		"Documents that Firestore returned, and lookups that found none, each of which it bills as a read. Firestore also bills empty queries and count queries, which are not included.", "operation")
	writesTotal = describe("firestore_writes_total", counter,
		"Documents written or deleted by successful commits. Firestore bills deletions separately.", "operation")
	commitRetriesTotal = describe("commit_retries_total", counter,
		"Transactions retried and commits refused because another writer was faster.", "operation")
	cyclesTotal = describe("cycles_total", counter,
		"Solve cycles, by outcome (run, skipped because another process owns the area or held its lock, failed, clock_wrong: no lock taken because the clock of this process is wrong).", "outcome")
	cyclesRememberedTotal = describe("cycles_remembered_total", counter,
		"Cycles that ran with what their planner remembered of the area's cycle before. Other cycles began anew: they were the area's first in this process, or another process had run cycles in between.")
	plansRefusedTotal = describe("plans_refused_total", counter,
		"Plans that violated the rules and were not published.")
	amendmentsTotal = describe("amendments_published_total", counter,
		"Published decisions that change a mission under way. How they were judged is among the decisions, by reason.")
	exchangedTotal = describe("orders_exchanged_total", counter,
		"Orders that published amendments take from a drone in flight before it has fetched them, so that another one serves them or a CRITICAL one has room.")
	handOversTotal = describe("orders_handed_over_total", counter,
		"Orders handed over to another planning area, because their own could not serve them in time.")
	standbyTotal = describe("standby_missions_published_total", counter,
		"Published decisions without orders: a drone is to wait where urgent orders are expected, or to charge.")
	sweepsTotal = describe("sweeps_total", counter,
		"Completed sweeps, which look for what no message reports, such as silent drones and overdue missions.")
	sweepsSkippedTotal = describe("sweeps_skipped_total", counter,
		"Sweeps skipped because this process's clock is wrong; another process sweeps instead.")
	dueCorrectedTotal = describe("due_corrected_total", counter,
		"Drones and orders whose dueAt was missing or wrong and was corrected by a sweep of everything. An earlier version or another tool wrote them.")
	commandsPublishedTotal = describe("commands_published_total", counter,
		"Mission commands and revocations sent to drones.")
	outboxOverflowTotal = describe("outbox_overflow_total", counter,
		"Mission commands left to the sweeper because the outbox was full.")
	lockEventsTotal = describe("lock_events_total", counter,
		"Calls of the locks' store, by type (acquire, release, extend, isLocked, lookup), result (ok, fail) and reason (locked, expired, not-found, or the code of an error).", "type", "result", "reason")
	lockEventsDroppedTotal = describe("lock_events_dropped_total", counter,
		"Calls of the locks' store that are missing in lock_events_total because they came too fast to be counted.")
	pickedUpAgainTotal = describe("parcels_picked_up_again_total", counter,
		"Orders picked up by a second mission although, as a late report shows, their parcel had already been put down.")
	refusalsTotal = describe("refusals_total", counter,
		"Dead-lettered messages by what the collection refusals holds of them: recorded (a record of its own), counted (only a number), lost (the write failed).", "record")
	httpLimitedTotal = describe("http_limited_total", counter,
		"HTTP requests refused with 429 because their caller had used up its limit, by budget (reads, commands, streams).", "budget")
	webhookAttemptsTotal = describe("webhook_attempts_total", counter,
		"Attempts to send a message to a webhook, by outcome (delivered, failed: it is sent again, dead_letter: given up).", "outcome")
	webhookOldestSeconds = describe("webhook_oldest_seconds", gauge,
		"Seconds that the oldest message to a webhook has waited since its event; 0 if none waits. Only the process that sends has it.", "webhook")
	collectionWritesTotal = describe("collection_writes_total", counter,
		"Documents written or deleted in Firestore, by collection.", "collection")
	indexShards = describe("index_shards", gauge,
		"Ranges over which the index on the times of events is spread; each takes some 500 writes a second. See docs/auditing.md.")
	rampHeldTotal = describe("ramp_held_total", counter,
		"How often writes were held back because a new database takes few at first, by collection. See --ramp.", "collection")
	historyBehindSeconds = describe("history_behind_seconds", gauge,
		"Seconds that the history is behind beyond its usual delay. Only the process that publishes it has it.")
	historyRowsTotal = describe("history_rows_total", counter,
		"Rows published for the history, by table.", "table")
	liveReportsTotal = describe("live_reports_total", counter,
		"Reports of drones that Pub/Sub delivered to the live feed, once more than to the State Managers.")
	liveReportsBytesTotal = describe("live_reports_bytes_total", counter,
		"Bytes of those reports' messages.")
	mqttReportsTotal = describe("mqtt_reports_total", counter,
		"Reports and hellos that a gateway received from an MQTT broker, by outcome (published, refused, slowed_down: beyond the drone's allowance, dropped: sent without acks while Pub/Sub was slow).", "outcome")
	mqttCommandsTotal = describe("mqtt_commands_total", counter,
		"Mission commands by what became of them at an MQTT broker (sent, failed: they will be sent again); unheard counts those sent for which the broker knows no subscriber.", "outcome")
	mqttConnected = describe("mqtt_connected", gauge,
		"1 while a gateway receives reports from its MQTT broker, else 0; always 0 in processes without a broker.")
	linkSessions = describe("link_sessions", gauge,
		"Drones that are connected to this gateway.")
	linkOpenedTotal = describe("link_sessions_opened_total", counter,
		"Sessions that drones have begun at a gateway.")
	linkEndedTotal = describe("link_sessions_ended_total", counter,
		"Sessions that have ended, by reason: GOODBYE, DISCONNECTED (the connection broke without a goodbye), or the refusal that the drone was told.", "reason")
	linkRefusedTotal = describe("link_connections_refused_total", counter,
		"Connections that got no session because of their credentials or their hello, or because the gateway is full or stopping, by the reason that the drone was told.", "reason")
	linkReportsTotal = describe("link_reports_total", counter,
		"Reports that a gateway has taken from connected drones, by outcome (acked, refused: told to the drone with a reason, failed: Pub/Sub did not take it, so the session ended).", "outcome", "reason")
	linkPending = describe("link_reports_pending", gauge,
		"Reports that this gateway has handed to Pub/Sub and that are not answered yet, over the link or from a broker.")
	linkAckSeconds = describe("link_ack_seconds", histogram,
		"Seconds from a report's arrival at a gateway until its ack was ready to be sent.")
	linkCommandsTotal = describe("link_commands_total", counter,
		"Commands that a gateway has sent to connected drones, by kind (mission, revocation).", "kind")
	linkStatesTotal = describe("link_states_total", counter,
		"Link states that a gateway has published, by status (OPENED, LOST, RESTORED).", "status")
	publishToCommitSeconds = describe("publish_to_commit_seconds", histogram,
		"Seconds from a message's publication to the commit of its effect; telemetry_status and telemetry_position are telemetry's two tiers, and telemetry_sent is telemetry from its timestamp, by the drone's clock, on.", "kind")
	cycleSeconds = describe("cycle_seconds", histogram,
		"Seconds that completed solve cycles took, from their beginning to the last decision published.")
	cycleWaitSeconds = describe("cycle_wait_seconds", histogram,
		"Seconds that solve cycles waited for their turn to search; at most --searches of them search at once in one process.")
	lockWaitSeconds = describe("lock_wait_seconds", histogram,
		"Seconds from asking for a lock until it was granted or found to be held.", "lock")
	backlogAgeSeconds = describe("backlog_age_seconds", gauge,
		"Seconds since the publication of the oldest message that this process holds and has not settled; 0 if it holds none.", "kind")
	backlogMessages = describe("backlog_messages", gauge,
		"Messages that this process holds and has not settled.", "kind")
	ordersUnserved = describe("orders_unserved", gauge,
		"Orders that have waited for three cycle intervals and that the last cycle did not assign either, by priority.", "priority")
	orders = describe("orders", gauge,
		"Orders that are neither delivered nor cancelled, by status, as the State Manager that sweeps counts them in the store. Take the maximum of instances: another one may have swept a minute ago.", "status")
	ordersHeld = describe("orders_held", gauge,
		"Pending orders that wait for an operator, counted as dronefleet_orders are.")
	ordersOverdue = describe("orders_overdue", gauge,
		"Orders past their deadline that are neither delivered nor cancelled, by priority, counted as dronefleet_orders are. They were not on time, and no delivery says so yet.", "priority")
	drones = describe("drones", gauge,
		"Drones by status, counted as dronefleet_orders are.", "status")
	dronesUnregistered = describe("drones_unregistered", gauge,
		"Drones that report and that nobody has registered, counted as dronefleet_orders are. Above 1000, reports of further ones are refused.")
	oldestWaitingSeconds = describe("oldest_waiting_order_seconds", gauge,
		"Seconds since the creation of the oldest order that waits for a drone, by priority; 0 if none waits. Held orders wait for an operator.", "priority")
	deliveriesTotal = describe("deliveries_total", counter,
		"Orders whose delivery this process committed, by priority and outcome (on_time, late). A commit whose answer was lost is not counted.", "priority", "outcome")
	deliverySeconds = describe("delivery_seconds", histogram,
		"Seconds from an order's creation to its delivery, as the drone's clock says, by priority.", "priority")
	depotWithoutCycles = describe("depot_without_cycles", gauge,
		"1 while the depot has had no cycle for three intervals though orders wait, as this State Manager last saw, 0 after that.", "depot")
	clockOffsetSeconds = describe("clock_offset_seconds", gauge,
		"Seconds by which Firestore's clock was ahead of the local one when last measured; negative if it was behind.")
	lockHeld = describe("lock_held", gauge,
		"1 while this process holds the lock, else 0.", "lock")
	readsPerThousand = describe("firestore_reads_per_thousand_messages", gauge,
		"Documents read per thousand acked messages since the process began (see firestore_reads_total).", "kind")
	writesPerThousand = describe("firestore_writes_per_thousand_messages", gauge,
		"Documents written per thousand acked messages since the process began (see firestore_writes_total).", "kind")
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
