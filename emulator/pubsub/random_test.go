package pubsubemu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
)

// randomTime is how long random runs continue after the fixed number of them;
// PUBSUB_RANDOM=1m sets it.
func randomTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PUBSUB_RANDOM")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// randomSeed is the first seed; PUBSUB_SEED=9 sets another.
func randomSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("PUBSUB_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// trial is one random run: each worker has its own subscriptions and publishes to its
// own topic and to one that all share.
type trial struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	clock   *clockwork.FakeClock
	server  *pubsubemu.Server
	conn    *grpc.ClientConn
	pub     pubsubpb.PublisherClient
	sub     pubsubpb.SubscriberClient
	broken  grpc.UnaryClientInterceptor // what a broken server would do, nil for none
	random  *rand.Rand
	workers []*worker
	times   []int64 // of the clock, in all rounds so far
}

const letters = "letters"

func (x *trial) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *trial) now() int64 { return x.clock.Now().UnixNano() }

func (x *trial) open() {
	x.t.Helper()
	server, err := pubsubemu.Start(pubsubemu.Options{Clock: x.clock, DataDir: x.dir})
	x.must(err)
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if x.broken != nil {
		options = append(options, grpc.WithUnaryInterceptor(x.broken))
	}
	conn, err := grpc.NewClient(server.Addr(), options...)
	x.must(err)
	x.server, x.conn, x.pub, x.sub = server, conn, pubsubpb.NewPublisherClient(conn), pubsubpb.NewSubscriberClient(conn)
}

func (x *trial) close() {
	x.t.Helper()
	x.must(errors.Join(x.conn.Close(), x.server.Close()))
}

// run makes random calls in rounds, moves the clock between them, and returns the
// violations.
func (x *trial) run(seed uint64, rounds int) []string {
	x.clock = clockwork.NewFakeClockAt(epoch)
	x.random = rand.New(rand.NewPCG(seed, 0))
	x.open()
	defer func() { x.close() }()
	_, err := x.pub.CreateTopic(x.ctx, &pubsubpb.Topic{Name: topicName(letters)})
	x.must(err)
	_, err = x.sub.CreateSubscription(x.ctx, &pubsubpb.Subscription{Name: subscriptionName(letters), Topic: topicName(letters)})
	x.must(err)
	_, err = x.pub.CreateTopic(x.ctx, &pubsubpb.Topic{Name: topicName("shared")})
	x.must(err)
	shared := &history{}
	for i := range 3 {
		w := &worker{trial: x, id: fmt.Sprintf("w%d", i), shared: shared, random: rand.New(rand.NewPCG(seed, uint64(i+1))), lettered: map[string]int{}}
		x.workers = append(x.workers, w)
		w.createTopic()
		w.subscribe(0)
		w.subscribe(1)
	}
	for range rounds {
		x.times = append(x.times, x.now())
		var wg sync.WaitGroup
		for _, w := range x.workers {
			wg.Go(func() {
				for range 12 {
					w.step()
				}
			})
		}
		wg.Wait()
		if x.dir != "" && x.random.IntN(6) == 0 {
			x.restart()
		}
		x.advance(time.Duration(x.random.IntN(25)) * time.Second)
		if faults := x.faults(); len(faults) > 0 {
			return faults
		}
	}
	x.advance(time.Hour)
	for _, w := range x.workers {
		for at := range w.subs {
			w.drain(at)
			w.retire(at)
		}
	}
	x.checkLetters()
	return x.faults()
}

func (x *trial) faults() []string {
	var all []string
	for _, w := range x.workers {
		all = append(all, w.faults...)
		for _, m := range w.subs {
			all = append(all, m.faults...)
		}
	}
	return all
}

// advance moves the clock. The server's timers forward dead letters of leases that
// end, so it waits for them.
func (x *trial) advance(by time.Duration) {
	for _, w := range x.workers {
		for at := range w.subs {
			w.loosen(at)
		}
	}
	x.clock.Advance(by)
	ctx, cancel := context.WithTimeout(x.ctx, time.Minute)
	defer cancel()
	for _, w := range x.workers {
		for _, m := range w.subs {
			m.absorb()
			m.advanced(x.now())
			for int(x.server.Counters().Subscriptions[m.config.Name].DeadLettered)+m.lost < m.letters() {
				if ctx.Err() != nil {
					m.fault("dead letters are not forwarded")
					return
				}
				runtime.Gosched()
			}
		}
	}
}

// restart stops the server and starts it again on its data directory.
func (x *trial) restart() {
	x.close()
	x.open()
	for _, w := range x.workers {
		for _, m := range w.subs {
			m.restarted()
			m.lost = m.letters()
		}
	}
}

// checkLetters compares the dead letters with the messages that had their last
// attempt.
func (x *trial) checkLetters() {
	got, want := map[string]int{}, map[string]int{}
	for {
		//lint:ignore SA1019 an empty answer at once says that nothing is left
		resp, err := x.sub.Pull(x.ctx, &pubsubpb.PullRequest{Subscription: subscriptionName(letters), MaxMessages: 1000, ReturnImmediately: true})
		x.must(err)
		if len(resp.ReceivedMessages) == 0 {
			break
		}
		for _, r := range resp.ReceivedMessages {
			got[r.Message.Attributes["CloudPubSubDeadLetterSourceSubscription"]+" "+string(r.Message.Data)]++
			if n := r.Message.Attributes["CloudPubSubDeadLetterSourceDeliveryCount"]; n != "5" {
				x.workers[0].fault("dead letter %s after %s deliveries", r.Message.Data, n)
			}
		}
		_, err = x.sub.Acknowledge(x.ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscriptionName(letters), AckIds: ackIDs(resp.ReceivedMessages)})
		x.must(err)
	}
	for _, w := range x.workers {
		for letter, n := range w.lettered {
			want[letter] += n
		}
	}
	for letter := range got {
		if got[letter] != want[letter] {
			x.workers[0].fault("%d dead letters %s, want %d", got[letter], letter, want[letter])
		}
		delete(want, letter)
	}
	for letter, n := range want {
		x.workers[0].fault("no dead letter %s, want %d", letter, n)
	}
}

// worker makes random calls, one at a time.
type worker struct {
	*trial
	id       string
	random   *rand.Rand
	own      *history
	shared   *history
	subs     [2]*model // of the own and of the shared topic
	deleted  [2]bool   // the subscription's topic is gone
	last     [2][]string
	lettered map[string]int // dead letters of subscriptions that are gone
	numbered int
	faults   []string
}

func (w *worker) fault(format string, args ...any) {
	w.faults = append(w.faults, w.id+": "+fmt.Sprintf(format, args...))
}

func (w *worker) topicID(at int) string { return []string{"own-" + w.id, "shared"}[at] }

func (w *worker) createTopic() {
	_, err := w.pub.CreateTopic(w.ctx, &pubsubpb.Topic{Name: topicName(w.topicID(0))})
	w.must(err)
	w.own = &history{}
}

// subscribe creates one of the two subscriptions with random settings.
func (w *worker) subscribe(at int) {
	chance := func(n int) bool { return w.random.IntN(n) == 0 }
	config := &pubsubpb.Subscription{
		Name: subscriptionName(w.topicID(at) + "-" + w.id), Topic: topicName(w.topicID(at)), AckDeadlineSeconds: int32(10 + w.random.IntN(30)),
		EnableMessageOrdering: chance(2), EnableExactlyOnceDelivery: chance(3), RetainAckedMessages: chance(2),
	}
	if chance(3) {
		config.Filter = "attributes:even"
	}
	if chance(2) {
		pause := durationpb.New(time.Duration(1+w.random.IntN(20)) * time.Second)
		config.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: pause, MaximumBackoff: pause}
	}
	if chance(2) {
		config.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicName(letters), MaxDeliveryAttempts: 5}
	}
	topic := []*history{w.own, w.shared}[at]
	born := topic.tick.Add(1)
	_, err := w.sub.CreateSubscription(w.ctx, config)
	w.must(err)
	w.subs[at], w.deleted[at], w.last[at] = newModel(config, topic, born, topic.tick.Add(1)), false, nil
}

// retire keeps the results of a subscription that ends.
func (w *worker) retire(at int) {
	m := w.subs[at]
	for text, n := range m.forwarded {
		w.lettered[idOf(m.config.Name)+" "+text] += n
	}
	m.forwarded = map[string]int{}
	w.faults = append(w.faults, m.faults...)
	m.faults = nil
}

func (w *worker) step() {
	at := w.random.IntN(2)
	m := w.subs[at]
	switch w.random.IntN(24) {
	case 0, 1, 2, 3:
		w.publish(at)
	case 4, 5, 6, 7, 8:
		w.pull(at, int32(1+w.random.IntN(10)))
	case 9, 10, 11:
		if ids := w.some(at); len(ids) > 0 {
			_, err := w.sub.Acknowledge(w.ctx, &pubsubpb.AcknowledgeRequest{Subscription: m.config.Name, AckIds: ids})
			w.compare(m, "ack", m.ack(ids), err)
		}
	case 12, 13, 14:
		w.modify(at, w.some(at), 0)
	case 15:
		w.modify(at, w.some(at), int32(10+w.random.IntN(60)))
	case 16:
		to := w.times[w.random.IntN(len(w.times))]
		_, err := w.sub.Seek(w.ctx, &pubsubpb.SeekRequest{
			Subscription: m.config.Name, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(time.Unix(0, to))},
		})
		w.must(err)
		m.seekTime(to)
	case 17:
		w.snapshot(at)
	case 18, 19:
		w.seekSnapshot(at)
	case 20:
		if w.random.IntN(4) == 0 {
			w.replaceSubscription(at)
		}
	case 21:
		if w.random.IntN(4) == 0 {
			w.replaceTopic()
		}
	case 22:
		w.pull(at, 1000)
	default:
		w.stream(at)
	}
}

func (w *worker) publish(at int) {
	if at == 0 && w.deleted[0] {
		return // no subscription would get it
	}
	topic := []*history{w.own, w.shared}[at]
	var batch []*sent
	var messages []*pubsubpb.PubsubMessage
	for range 1 + w.random.IntN(5) {
		w.numbered++
		s := &sent{text: fmt.Sprintf("%s-%d", w.id, w.numbered), at: w.now(), even: w.numbered%2 == 0}
		m := &pubsubpb.PubsubMessage{Data: []byte(s.text)}
		if w.random.IntN(3) > 0 {
			s.key = fmt.Sprintf("%s-k%d", w.id, w.random.IntN(2))
			m.OrderingKey = s.key
		}
		if s.even {
			m.Attributes = map[string]string{"even": ""}
		}
		batch, messages = append(batch, s), append(messages, m)
	}
	topic.begin(batch)
	_, err := w.pub.Publish(w.ctx, &pubsubpb.PublishRequest{Topic: topicName(w.topicID(at)), Messages: messages})
	w.must(err)
	topic.end(batch)
}

// pull asks once. An incomplete answer means that nothing else was deliverable.
func (w *worker) pull(at int, most int32) int {
	m := w.subs[at]
	tick := m.topic.tick.Add(1)
	//lint:ignore SA1019 an empty answer at once says that nothing is there
	resp, err := w.sub.Pull(w.ctx, &pubsubpb.PullRequest{Subscription: m.config.Name, MaxMessages: most, ReturnImmediately: true})
	w.must(err)
	w.took(at, resp.ReceivedMessages, time.Duration(m.config.AckDeadlineSeconds)*time.Second)
	if len(resp.ReceivedMessages) < int(most) {
		m.nothingToGive(tick)
	}
	return len(resp.ReceivedMessages)
}

// took records what one consumer got.
func (w *worker) took(at int, got []*pubsubpb.ReceivedMessage, lease time.Duration) {
	m := w.subs[at]
	m.consumers++
	for _, r := range got {
		m.delivered(r, m.consumers, w.now(), w.now()+int64(lease))
		w.last[at] = append(w.last[at], r.AckId)
	}
}

// some draws from the last ack ids.
func (w *worker) some(at int) []string {
	ids := w.last[at]
	ids = ids[max(len(ids)-12, 0):]
	var out []string
	for _, id := range ids {
		if w.random.IntN(2) == 0 {
			out = append(out, id)
		}
	}
	return out
}

func (w *worker) modify(at int, ids []string, seconds int32) {
	if len(ids) == 0 {
		return
	}
	m := w.subs[at]
	_, err := w.sub.ModifyAckDeadline(w.ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: m.config.Name, AckIds: ids, AckDeadlineSeconds: seconds})
	w.compare(m, fmt.Sprintf("modify to %d s", seconds), w.modelled(m, ids, seconds), err)
}

func (w *worker) modelled(m *model, ids []string, seconds int32) map[string]outcome {
	if seconds == 0 {
		return m.nack(ids, w.now())
	}
	return m.extend(ids, w.now()+int64(seconds)*int64(time.Second))
}

// compare checks the answer to an ack or nack.
func (w *worker) compare(m *model, call string, due map[string]outcome, err error) {
	if !m.config.EnableExactlyOnceDelivery {
		w.must(err)
		return
	}
	said := map[string]string{}
	if code := status.Code(err); code != codes.OK && code != codes.FailedPrecondition && code != codes.InvalidArgument {
		w.t.Error(err)
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			said = info.Metadata
		}
	}
	for id, want := range due {
		ok := strings.HasPrefix(said[id], map[outcome]string{
			invalid: "PERMANENT_FAILURE_INVALID_ACK_ID", unordered: "TRANSIENT_FAILURE_UNORDERED_ACK_ID", either: said[id],
		}[want])
		if want == valid {
			ok = said[id] == "" || said[id] == "TRANSIENT_FAILURE_REPEAT_WITHOUT_INVALID_ACK_IDS"
		}
		if !ok {
			m.fault("%s of %s was answered %q, want outcome %d", call, id, said[id], want)
		}
	}
}

func (w *worker) snapshot(at int) {
	if w.deleted[at] {
		return
	}
	m := w.subs[at]
	w.numbered++
	name := snapshotName(fmt.Sprintf("%s-%d", w.id, w.numbered))
	m.snapshot(name)
	_, err := w.sub.CreateSnapshot(w.ctx, &pubsubpb.CreateSnapshotRequest{Name: name, Subscription: m.config.Name})
	w.must(err)
}

func (w *worker) seekSnapshot(at int) {
	m := w.subs[at]
	for name := range m.snapshots {
		_, err := w.sub.Seek(w.ctx, &pubsubpb.SeekRequest{Subscription: m.config.Name, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: name}})
		if w.deleted[at] {
			if status.Code(err) != codes.FailedPrecondition {
				m.fault("seek to a snapshot of a deleted topic: %v", err)
			}
			return
		}
		w.must(err)
		m.seekSnapshot(name)
		if w.random.IntN(2) == 0 {
			_, err := w.sub.DeleteSnapshot(w.ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: name})
			w.must(err)
			delete(m.snapshots, name)
		}
		return
	}
}

func (w *worker) replaceSubscription(at int) {
	if w.deleted[at] {
		return
	}
	w.retire(at)
	m := w.subs[at]
	_, err := w.sub.DeleteSubscription(w.ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: m.config.Name})
	w.must(err)
	for name := range m.snapshots {
		_, err := w.sub.DeleteSnapshot(w.ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: name})
		w.must(err)
	}
	w.subscribe(at)
}

// replaceTopic deletes the worker's topic, whose subscription keeps its messages, or
// creates the topic again with another subscription.
func (w *worker) replaceTopic() {
	if !w.deleted[0] {
		_, err := w.pub.DeleteTopic(w.ctx, &pubsubpb.DeleteTopicRequest{Topic: topicName(w.topicID(0))})
		w.must(err)
		w.deleted[0] = true
		return
	}
	w.createTopic()
	w.deleted[0] = false
	w.replaceSubscription(0)
}

// stream opens a streaming pull, settles some of the messages and closes it.
func (w *worker) stream(at int) {
	m := w.subs[at]
	call, err := w.sub.StreamingPull(w.ctx)
	w.must(err)
	const deadline = 30
	w.must(call.Send(&pubsubpb.StreamingPullRequest{
		Subscription: m.config.Name, StreamAckDeadlineSeconds: deadline, MaxOutstandingMessages: int64(w.random.IntN(3) * 4),
	}))
	m.consumers++
	me := m.consumers
	var ids []string
	read := func() (ended, answer bool) {
		resp, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return true, false
		}
		w.must(err)
		for _, r := range resp.ReceivedMessages {
			m.delivered(r, me, w.now(), w.now()+deadline*int64(time.Second))
			ids = append(ids, r.AckId)
		}
		return false, len(resp.ReceivedMessages) == 0 && resp.AcknowledgeConfirmation == nil && resp.ModifyAckDeadlineConfirmation == nil
	}
	sync := func() { // the second answer comes after what could be delivered at the first
		for range 2 {
			w.must(call.Send(&pubsubpb.StreamingPullRequest{}))
			for answered := false; !answered; {
				_, answered = read()
			}
		}
	}
	sync()
	for range w.random.IntN(3) {
		var acked, nacked []string
		for _, id := range ids {
			switch w.random.IntN(3) {
			case 0:
				acked = append(acked, id)
			case 1:
				nacked = append(nacked, id)
			}
		}
		if len(acked)+len(nacked) == 0 {
			continue
		}
		// One kind for each request: a message that an ack makes deliverable may come before a nack of the same request.
		if len(acked) > 0 {
			m.ack(acked)
			w.must(call.Send(&pubsubpb.StreamingPullRequest{AckIds: acked}))
			sync()
		}
		// A message of a key that another worker published may be on its way when an earlier one is nacked.
		if len(nacked) > 0 && (at == 0 || !m.config.EnableMessageOrdering) {
			m.nack(nacked, w.now())
			w.must(call.Send(&pubsubpb.StreamingPullRequest{ModifyDeadlineAckIds: nacked, ModifyDeadlineSeconds: make([]int32, len(nacked))}))
			sync()
		}
	}
	w.must(call.CloseSend())
	for ended := false; !ended; {
		ended, _ = read()
	}
	w.last[at] = append(w.last[at], ids...)
}

// loosen leaves at most one lease for each key of a subscription that counts
// attempts: if several end at the same time, any of them may end first.
func (w *worker) loosen(at int) {
	m := w.subs[at]
	if !m.config.EnableMessageOrdering || m.config.DeadLetterPolicy == nil {
		return
	}
	seen := map[string]bool{}
	var ids []string
	for _, h := range m.byTurn() {
		if h.key != "" && seen[h.key] {
			ids = append(ids, h.ackID)
		}
		seen[h.key] = true
	}
	w.modify(at, ids, 0)
}

// drain takes and acks everything.
func (w *worker) drain(at int) {
	m := w.subs[at]
	for w.pull(at, 1000) > 0 {
		var ids []string
		for _, h := range m.byTurn() {
			ids = append(ids, h.ackID)
		}
		_, err := w.sub.Acknowledge(w.ctx, &pubsubpb.AcknowledgeRequest{Subscription: m.config.Name, AckIds: ids})
		w.compare(m, "ack", m.ack(ids), err)
		if len(w.faults)+len(m.faults) > 0 {
			return
		}
	}
}

func idOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Random calls of concurrent clients: no acked message comes again without a seek,
// no unacked one is lost, keys keep their order and attempts are counted.
// P-DEL-01, P-DEL-02, P-DEL-03, P-DEL-04, P-DEL-05, P-SEEK-01, P-DUR-01
func TestRandomOperations_MatchModel(t *testing.T) {
	began, first := time.Now(), randomSeed(t)
	for seed := first; seed < first+12 || time.Since(began) < randomTime(t); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := &trial{t: t, ctx: t.Context()}
			if seed%6 == 0 {
				x.dir = t.TempDir()
			}
			for _, fault := range x.run(seed, 20) {
				t.Error(fault)
			}
		})
	}
}

// The check must be able to fail: each of these servers breaks one promise.
func TestRandomOperations_FindsBrokenServers(t *testing.T) {
	for name, broken := range map[string]struct {
		says    string                // part of the violation that the check must find
		request func(any) (drop bool) // changes a request, or answers it with nothing done
		reply   func(req, reply any)
	}{
		"acks are forgotten": {says: "after its ack", request: func(req any) bool {
			_, ack := req.(*pubsubpb.AcknowledgeRequest)
			return ack
		}},
		"nacks are forgotten": {says: "neither acked nor delivered", request: func(req any) bool {
			modify, ok := req.(*pubsubpb.ModifyAckDeadlineRequest)
			return ok && modify.AckDeadlineSeconds == 0
		}},
		"leases are not extended": {says: "while its lease ran", request: func(req any) bool {
			modify, ok := req.(*pubsubpb.ModifyAckDeadlineRequest)
			return ok && modify.AckDeadlineSeconds > 0
		}},
		"seeks do nothing": {says: "neither acked nor delivered", request: func(req any) bool {
			_, seek := req.(*pubsubpb.SeekRequest)
			return seek
		}},
		"keys have no order": {says: "of its key", request: func(req any) bool {
			if config, ok := req.(*pubsubpb.Subscription); ok {
				config.EnableMessageOrdering = false
			}
			return false
		}},
		"retries do not back off": {says: "before its backoff ended", request: func(req any) bool {
			if config, ok := req.(*pubsubpb.Subscription); ok {
				config.RetryPolicy = nil
			}
			return false
		}},
		"exactly once is at least once": {says: "was answered", request: func(req any) bool {
			if config, ok := req.(*pubsubpb.Subscription); ok {
				config.EnableExactlyOnceDelivery = false
			}
			return false
		}},
		"filters let everything pass": {says: "does not pass the filter", request: func(req any) bool {
			if config, ok := req.(*pubsubpb.Subscription); ok {
				config.Filter = ""
			}
			return false
		}},
		"a delivery is lost": {says: "neither acked nor delivered", reply: func(_, reply any) {
			if pulled, ok := reply.(*pubsubpb.PullResponse); ok && len(pulled.ReceivedMessages) > 0 {
				pulled.ReceivedMessages = pulled.ReceivedMessages[1:]
			}
		}},
		"a key is delivered backwards": {says: "of its key", reply: func(_, reply any) {
			if pulled, ok := reply.(*pubsubpb.PullResponse); ok {
				slices.Reverse(pulled.ReceivedMessages)
			}
		}},
		"attempts are not counted": {says: "as attempt", reply: func(_, reply any) {
			if pulled, ok := reply.(*pubsubpb.PullResponse); ok {
				for _, r := range pulled.ReceivedMessages {
					r.DeliveryAttempt = min(r.DeliveryAttempt, 1)
				}
			}
		}},
		"dead letters are lost": {says: "no dead letter", reply: func(req, reply any) {
			if pull, ok := req.(*pubsubpb.PullRequest); ok && pull.Subscription == subscriptionName(letters) {
				reply.(*pubsubpb.PullResponse).ReceivedMessages = nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rewrite := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
				if config, ok := req.(*pubsubpb.Subscription); ok {
					req = proto.CloneOf(config)
				}
				if broken.request != nil && broken.request(req) {
					return nil
				}
				err := call(ctx, method, req, reply, conn, options...)
				if broken.reply != nil {
					broken.reply(req, reply)
				}
				return err
			}
			var found []string
			for seed := range uint64(50) {
				x := &trial{t: t, ctx: t.Context(), broken: rewrite}
				found = append(found, x.run(seed, 20)...)
				if slices.ContainsFunc(found, func(fault string) bool { return strings.Contains(fault, broken.says) }) {
					return
				}
			}
			t.Errorf("the check found %q, want %q", found, broken.says)
		})
	}
}
