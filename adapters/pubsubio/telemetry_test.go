package pubsubio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/adapters/wire"
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

// F-GW-03, F-BAT-01: a drone whose document cannot be written holds up its own shard at most, also where
// drones of all shards share an ordering key, as behind a gateway.
func TestTelemetry_AStuckDroneDelaysNoOtherShard(t *testing.T) {
	l := newLine(t)
	applied := make(chan domain.DroneID, 10_000)
	stuck := applier(func(_ context.Context, t domain.Telemetry) error {
		if t.DroneID == "STUCK" {
			return status.Error(codes.Unavailable, "contended")
		}
		applied <- t.DroneID
		return nil
	})
	p := newTelemetryPipeline(l.settler(TopicTelemetry), Config{TelemetryShards: 2, Lease: time.Hour}.withDefaults(), func() TelemetryApplier { return stuck })
	ctx, giveUp := context.WithCancel(context.Background())
	var shards sync.WaitGroup
	for _, s := range p.shards {
		shards.Go(func() { s.run(ctx) })
	}
	t.Cleanup(func() { giveUp(); p.stop(); shards.Wait() })
	sub := l.client.Subscriber(Subscription(TopicTelemetry))
	sub.ReceiveSettings.MaxOutstandingMessages = 20_000
	receiving, stop := context.WithCancel(context.Background())
	received := make(chan error, 1)
	go func() {
		received <- sub.Receive(receiving, func(_ context.Context, msg *pubsub.Message) { p.handle(ctx, msg) })
	}()
	t.Cleanup(func() {
		giveUp()
		stop()
		if err := <-received; err != nil {
			t.Error(err)
		}
	})
	same, other := []domain.DroneID{"STUCK"}, domain.DroneID("")
	for i := 0; len(same) < 2000 || other == ""; i++ { // more than wait for one commit
		id := domain.DroneID(fmt.Sprint("D-", i))
		if p.shardOf(id) == p.shardOf("STUCK") {
			same = append(same, id)
		} else {
			other = id
		}
	}
	l.report("STUCK", "drones-0")
	l.reports(same, "drones-0")
	l.report(other, "drones-0")
	eventually(t, "the drone of the other shard is applied", func() bool {
		for {
			select {
			case id := <-applied:
				if id == other {
					return true
				}
			default:
				return false
			}
		}
	})
}

// F-BAT-01, F-DLQ-01: drones whose clocks are wrong hold up no other, however
// long their dead letters take; and nothing is acked before its letter is there,
// whether it has an ordering key or not.
func TestTelemetry_DeadLettersDelayNoOtherDrone(t *testing.T) {
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

// F-DLQ-01: what is given back because time is up leaves no dead letter behind: it
// will have one when it comes again.
func TestSettle_PublishesNoDeadLetterAfterItsContextEnded(t *testing.T) {
	l := newLine(t)
	s := l.settler(TopicOrders)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.deadLetters.publish(ctx, TopicOrders, &pubsub.Message{ID: "7", PublishTime: time.Now()}, "INVALID", errors.New("wrong"))
	s.deadLetters.publisher.Stop()
	if ids := l.letters(TopicOrders); err == nil || len(ids) > 0 {
		t.Errorf("error %v, letters %v", err, ids)
	}
}

// F-FLOW-01, F-DLQ-01: a shard ends when all it took is settled, poison included.
func TestTelemetry_WaitsForItsDeadLettersAtTheEnd(t *testing.T) {
	l := newLine(t)
	reached, release := make(chan struct{}), make(chan struct{})
	l.publishing(func(context.Context, string, []*pubsubpb.PubsubMessage) error {
		close(reached)
		<-release
		return nil
	})
	p := newTelemetryPipeline(l.settler(TopicTelemetry), Config{TelemetryShards: 1}.withDefaults(),
		func() TelemetryApplier { return futureOf("AHEAD") })
	ended := make(chan struct{})
	go func() { defer close(ended); p.shards[0].run(t.Context()) }()
	l.receive(TopicTelemetry, func(ctx context.Context, msg *pubsub.Message) { p.handle(ctx, msg) })
	l.report("AHEAD", "")
	<-reached
	p.stop()
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	<-ended
	if n := l.settled(meter.DeadLetter); n != 1 {
		t.Errorf("ended with %d of 1 dead letters", n)
	}
}

// F-FLOW-01: what comes when the shards have been told to stop is settled all the
// same: by them if they have taken it, and else by whoever brings it.
func TestTelemetry_SettlesReportsThatArriveDuringShutdown(t *testing.T) {
	l := newLine(t)
	s := l.settler(TopicTelemetry)
	const shards = 30 // each sees by chance first that it stops, or its report
	p := newTelemetryPipeline(s, Config{TelemetryShards: shards}.withDefaults(), func() TelemetryApplier { return futureOf("AHEAD") })
	data, attrs, err := wire.EncodeTelemetry(domain.Telemetry{
		DroneID: "D1", Timestamp: time.Now(), Position: domain.Position{Lat: 48.8566, Lon: 2.3522}, Battery: 90, Status: domain.DroneIdle,
	}, wire.Protobuf)
	if err != nil {
		t.Fatal(err)
	}
	msg := &pubsub.Message{ID: "7", PublishTime: time.Now(), Data: data, Attributes: attrs}
	for _, shard := range p.shards {
		s.hold(msg)
		shard.in <- &report{Telemetry: domain.Telemetry{DroneID: "D1"}, msg: msg, lease: time.Now().Add(time.Hour)}
	}
	p.stop()
	for _, shard := range p.shards {
		shard.run(t.Context())
		shard.in = nil // is taken from no more
	}
	if n := l.settled(meter.Applied); n != shards {
		t.Errorf("%d of %d reports that were taken are applied", n, shards)
	}
	p.handle(t.Context(), msg)
	if n := l.settled(meter.Nacked); n != 1 {
		t.Errorf("%d reports given back, want the one that nobody takes", n)
	}
	if n := s.backlog.Messages(); n != 0 {
		t.Errorf("%d messages are not settled", n)
	}
}

// F-DLQ-01: a message whose dead letter cannot be published in time is given
// back, not acked, and has its letter when that can be published again.
func TestSettle_NacksWhenTheDeadLetterIsNotPublishedInTime(t *testing.T) {
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

// F-DLQ-01: poison has its dead letter also when what is wrong with it cannot be
// said without bytes that are no text, which Pub/Sub takes in no attribute.
func TestSettle_DeadLettersBinaryErrors(t *testing.T) {
	l := newLine(t)
	l.pipeline(l.settler(TopicTelemetry), futureOf("AHEAD"))
	payload := []byte("{}\xdb")
	id, err := l.world.Publish(t.Context(), TopicTelemetry, payload, nil, "").Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message is settled", func() bool { acked, nacked := l.settlements(); return acked+nacked > 0 })
	if acked, nacked := l.settlements(); acked != 1 || nacked != 0 {
		t.Errorf("%d acked and %d given back", acked, nacked)
	}
	if ids := l.letters(TopicTelemetry); !slices.Equal(ids, []string{id}) {
		t.Errorf("letters %v, want %s", ids, id)
	}
}

// F-DLQ-01: neither does a letter hold such bytes of any other error.
func TestWrap_ReplacesInvalidUTF8InTheError(t *testing.T) {
	for _, text := range []string{"wrong: \xdb", strings.Repeat("\xdb", 2000), strings.Repeat("é\xdb", 1000)} {
		_, attrs := wrap(TopicOrders, &pubsub.Message{}, "INVALID", errors.New(text))
		if got := attrs[AttrError]; !utf8.ValidString(got) || len(got) > maxAttributeBytes || got == "" {
			t.Errorf("%d bytes, text %t: %.40q", len(got), utf8.ValidString(got), got)
		}
	}
}

// F-DLQ-01: a message may carry what a letter says of it, as one that was
// replayed does: the letter says what is true of this one.
func TestWrap_OverwritesAttributesOfAnEarlierLetter(t *testing.T) {
	msg := &pubsub.Message{ID: "7", PublishTime: time.Now(), OrderingKey: "D1", Attributes: map[string]string{"own": "kept"}}
	for _, name := range letterAttributes {
		msg.Attributes[name] = "forged"
	}
	_, attrs := wrap(TopicOrders, msg, "INVALID", errors.New("wrong"))
	want := map[string]string{
		"own": "kept", AttrReason: "INVALID", AttrError: "wrong", AttrMessageID: "7", AttrTopic: TopicOrders, AttrOrderingKey: "D1",
		AttrPublishTime: msg.PublishTime.UTC().Format(timeLayout),
	}
	if !maps.Equal(attrs, want) {
		t.Errorf("%v, want %v", attrs, want)
	}
}

// F-DLQ-01: a letter that comes again while a review collects, since its lease was
// over, is deleted by the newer lease: the server forgets the older one.
func TestReview_SettlesALetterByItsLatestLease(t *testing.T) {
	l := newLine(t)
	letters := l.outside.Publisher(DeadLetterTopic(TopicOrders))
	defer letters.Stop()
	if _, err := letters.Publish(t.Context(), &pubsub.Message{Data: []byte("x")}).Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	var leases, acked []string
	conn, err := grpc.NewClient(l.hosts.PubSubHost, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			switch r := req.(type) {
			case *pubsubpb.ModifyAckDeadlineRequest:
				if leases = append(leases, r.GetAckIds()...); len(leases) == 1 {
					r.AckDeadlineSeconds = 0
				}
			case *pubsubpb.AcknowledgeRequest:
				acked = append(acked, r.GetAckIds()...)
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	client, err := pubsub.NewClient(t.Context(), l.hosts.Project, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	review, err := OpenReview(t.Context(), client, TopicOrders, 0, 0)
	if err != nil || len(review.Letters) != 1 {
		t.Fatalf("review %+v, %v", review, err)
	}
	n, err := review.Discard(t.Context(), review.Letters, func(context.Context, DeadLetter) error { return nil })
	if err := errors.Join(err, review.Close(t.Context())); err != nil || n != 1 {
		t.Errorf("%d discarded, %v", n, err)
	}
	if len(leases) != 2 || len(acked) != 1 || acked[0] != leases[1] {
		t.Errorf("deleted by the leases %q of %q", acked, leases)
	}
}

// F-ORD-02, F-DLQ-01: a replay makes nothing newer than it is, and neither does who
// claims a later time.
func TestPublished_IsNeverAfterTheMessage(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for claim, want := range map[string]time.Time{
		"":                                    at,
		"yesterday":                           at,
		time.Time{}.Format(timeLayout):        at,
		at.Add(-time.Hour).Format(timeLayout): at.Add(-time.Hour),
		at.Add(time.Hour).Format(timeLayout):  at,
	} {
		msg := &pubsub.Message{PublishTime: at, Attributes: map[string]string{AttrPublishTime: claim}}
		if got := published(msg); !got.Equal(want) {
			t.Errorf("claims %q: %s, want %s", claim, got, want)
		}
	}
}

// F-DLQ-01: whatever a message carries, its letter is one that Pub/Sub accepts, and
// holds all of it where that is possible.
func TestWrap_FitsIntoOneMessage(t *testing.T) {
	size := func(data []byte, attrs map[string]string) int {
		n := len(data)
		for name, value := range attrs {
			n += len(name) + len(value) + attributeMargin
		}
		return n
	}
	long := map[string]string{}
	for i := range 90 {
		long[fmt.Sprintf("%0256d", i)] = strings.Repeat("x", maxAttributeBytes)
	}
	const limit = maxPublishBytes - publishMargin
	_, bare := wrap(TopicOrders, &pubsub.Message{}, "INVALID", errors.New("wrong"))
	for _, row := range []struct {
		name  string
		bytes int
		attrs map[string]string
		whole bool
	}{
		{"what just fits", limit - size(nil, bare), nil, true},
		{"a byte more", limit - size(nil, bare) + 1, nil, false},
		{"as much as a message may hold", maxPublishBytes - size(nil, long), long, false},
	} {
		data, attrs := wrap(TopicOrders, &pubsub.Message{Data: make([]byte, row.bytes), Attributes: row.attrs}, "INVALID", errors.New("wrong"))
		if whole := len(data) == row.bytes && attrs[AttrDataBytes] == ""; whole != row.whole {
			t.Errorf("%s: %d of %d bytes, the letter says of %q", row.name, len(data), row.bytes, attrs[AttrDataBytes])
		}
		if n := size(data, attrs); n > limit+size(nil, map[string]string{AttrDataBytes: "10000000"}) {
			t.Errorf("%s: the letter has %d bytes, %d may be", row.name, n, limit)
		}
		if want := len(row.attrs); attrs[AttrAttributesDropped] != "" || len(attrs) < want {
			t.Errorf("%s: %d attributes, %q dropped; %d find room", row.name, len(attrs), attrs[AttrAttributesDropped], want)
		}
	}
}

// F-DLQ-01: of more attributes than a letter has room for it keeps the one that
// says how its data is read, and counts the others.
func TestWrap_KeepsTheContentType(t *testing.T) {
	many := map[string]string{wire.AttrContentType: "application/json"}
	for i := range maxAttributes - 1 {
		many[fmt.Sprintf("a%02d", i)] = "x"
	}
	_, attrs := wrap(TopicOrders, &pubsub.Message{Attributes: many, OrderingKey: "D1", Data: make([]byte, maxPublishBytes)}, "INVALID", errors.New("wrong"))
	if len(attrs)+traceAttributes > maxAttributes {
		t.Errorf("%d attributes and %d of a trace", len(attrs), traceAttributes)
	}
	if attrs[wire.AttrContentType] != "application/json" || attrs["a88"] != "x" || attrs["a89"] != "" || attrs[AttrAttributesDropped] != "10" {
		t.Errorf("content type %q, a88 %q, a89 %q, %s dropped", attrs[wire.AttrContentType], attrs["a88"], attrs["a89"], attrs[AttrAttributesDropped])
	}
}

// answers is a store that answers by drone: what "REJECTED" and "POISON" report
// is refused, "LATER" is applied at the third attempt, "NEVER" at none, and all
// others at once. It notes every report it has applied.
type answers struct {
	*line
	mu       sync.Mutex
	attempts map[domain.DroneID]int
	applied  []domain.DroneID
	counted  []int64 // as applied, at the start of each attempt
}

func (a *answers) Apply(_ context.Context, reports []domain.Telemetry) []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted = append(a.counted, a.settled(meter.Applied))
	errs := make([]error, len(reports))
	for i, t := range reports {
		a.attempts[t.DroneID]++
		kind, _, _ := strings.Cut(string(t.DroneID), "-")
		switch {
		case kind == "REJECTED":
			errs[i] = &policy.Rejection{Reason: policy.ReasonStaleTelemetry, Subject: string(t.DroneID)}
		case kind == "POISON":
			errs[i] = &policy.Rejection{Reason: policy.ReasonFutureTimestamp, Subject: string(t.DroneID)}
		case kind == "LATER" && a.attempts[t.DroneID] < 3, kind == "NEVER":
			errs[i] = status.Errorf(codes.Unavailable, "not now for %s", t.DroneID)
		default:
			a.applied = append(a.applied, t.DroneID)
		}
	}
	return errs
}

func (*answers) Urgent(domain.Telemetry) bool { return true }
func (*answers) Forget()                      {}

// batch is what a shard holds of one report of each drone, without leases, which
// are the test's to give. What is given back comes again by the channel; what the
// test leaves there is acked at its end, so that the client can end.
func (l *line) batch(s *settler, ids []domain.DroneID) (batch []report, again <-chan *pubsub.Message) {
	l.t.Helper()
	l.reports(ids, "")
	received, over := make(chan *pubsub.Message), make(chan struct{})
	l.receive(TopicTelemetry, func(_ context.Context, msg *pubsub.Message) {
		select {
		case received <- msg:
		case <-over:
			msg.Ack()
		}
	})
	l.t.Cleanup(func() { close(over) })
	for range ids {
		msg := <-received
		s.hold(msg)
		decoded, err := wire.DecodeTelemetry(msg.Data, msg.Attributes)
		if err != nil {
			l.t.Fatal(err)
		}
		batch = append(batch, report{Telemetry: decoded, msg: msg, urgent: true})
	}
	return batch, received
}

// F-BAT-01, F-ACK-01, F-DLQ-01: of reports that share a commit, each is settled
// once and as its own result says, whatever becomes of the others: what is
// applied and what is refused at once, what fails for a passing reason when it
// has succeeded, or back to Pub/Sub when its lease ends.
func TestTelemetry_SettlesEachReportOfACommitByItsOwnResult(t *testing.T) {
	l := newLine(t)
	store := &answers{line: l, attempts: map[domain.DroneID]int{}}
	s := l.settler(TopicTelemetry)
	var logged bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&logged, nil))
	ctx := t.Context()
	shard := newTelemetryPipeline(s, Config{TelemetryShards: 1}.withDefaults(), func() TelemetryApplier { return store }).shards[0]
	const each = 3
	kinds := []string{"APPLIED", "REJECTED", "LATER", "POISON", "NEVER"}
	var ids []domain.DroneID
	for i := range each {
		for _, kind := range kinds {
			ids = append(ids, domain.DroneID(fmt.Sprintf("%s-%d", kind, i)))
		}
	}
	batch, _ := l.batch(s, ids)
	// A lease long enough for three attempts, and short enough to wait for.
	for i := range batch {
		batch[i].lease = time.Now().Add(5 * time.Second)
	}
	shard.commitSome(ctx, batch)
	shard.letters.Wait()
	l.awaitSettlements("every message is settled", 4*each, each)
	for outcome, want := range map[string]int64{meter.Applied: 2 * each, meter.Rejected: each, meter.DeadLetter: each, meter.Nacked: each} {
		if n := l.settled(outcome); n != want {
			t.Errorf("%d messages count as %s, want %d", n, outcome, want)
		}
	}
	if n := s.backlog.Messages(); n != 0 {
		t.Errorf("%d messages are still held", n)
	}
	slices.Sort(store.applied)
	if want := []domain.DroneID{"APPLIED-0", "APPLIED-1", "APPLIED-2", "LATER-0", "LATER-1", "LATER-2"}; !slices.Equal(store.applied, want) {
		t.Errorf("applied %v, want %v", store.applied, want)
	}
	// The later ones were settled by the third attempt only.
	if want := []int64{0, each, each, 2 * each}; len(store.counted) < 4 || !slices.Equal(store.counted[:4], want) {
		t.Errorf("settled as applied before each attempt: %v, want %v ...", store.counted, want)
	}
	for id, n := range store.attempts {
		if kind, _, _ := strings.Cut(string(id), "-"); kind != "LATER" && kind != "NEVER" && n != 1 {
			t.Errorf("%s was attempted %d times", id, n)
		}
	}
	if ids := l.letters(TopicTelemetry); len(ids) != each {
		t.Errorf("letters %v", ids)
	}
	for _, r := range batch {
		if !strings.HasPrefix(string(r.DroneID), "NEVER") {
			continue
		}
		why := fmt.Sprintf("not now for %s", r.DroneID)
		if !slices.ContainsFunc(strings.Split(logged.String(), "\n"), func(line string) bool {
			return strings.Contains(line, "message_id="+r.msg.ID+" ") && strings.Contains(line, why)
		}) {
			t.Errorf("the log does not say why %s was given back: %s", r.DroneID, logged.String())
		}
	}
}

// F-ACK-01: a report whose lease is over, or about to be, is given back alone. It
// takes no other with it whose lease would last.
func TestTelemetry_EndingLeaseNacksOnlyItsOwnReport(t *testing.T) {
	l := newLine(t)
	s := l.settler(TopicTelemetry)
	inTime := applier(func(ctx context.Context, _ domain.Telemetry) error { return ctx.Err() })
	cfg := Config{TelemetryShards: 1}.withDefaults()
	shard := newTelemetryPipeline(s, cfg, func() TelemetryApplier { return inTime }).shards[0]
	batch, again := l.batch(s, []domain.DroneID{"LONG-1", "OVER", "LONG-2", "ENDING"})
	left := map[domain.DroneID]time.Duration{"LONG-1": time.Hour, "LONG-2": time.Hour, "ENDING": cfg.Lease / 200}
	for i, r := range batch {
		batch[i].lease = time.Now().Add(left[r.DroneID])
	}
	shard.commit(t.Context(), batch)
	l.awaitSettlements("every message is settled", 2, 2)
	if n := s.backlog.Messages(); n != 0 {
		t.Errorf("%d messages are still held", n)
	}
	var back []domain.DroneID
	for range 2 {
		msg := <-again
		decoded, err := wire.DecodeTelemetry(msg.Data, msg.Attributes)
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, decoded.DroneID)
		msg.Ack()
	}
	slices.Sort(back)
	if want := []domain.DroneID{"ENDING", "OVER"}; !slices.Equal(back, want) {
		t.Errorf("given back %v, want %v", back, want)
	}
}
