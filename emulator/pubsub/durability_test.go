package pubsubemu_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// childDataDir makes the test binary a server on this data directory, for the test to
// kill.
const childDataDir = "PUBSUBEMU_TEST_CHILD_DATA_DIR"

// runChild serves until standard input closes, when this process is the child.
func runChild() bool {
	dir := os.Getenv(childDataDir)
	if dir == "" {
		return false
	}
	server, err := pubsubemu.Start(pubsubemu.Options{DataDir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin) // the parent died: end too
	_ = server.Close()
	return true
}

// startChild runs a server in another process and returns its address.
func startChild(t *testing.T, dir string) (addr string, kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDataDir+"="+dir)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = child.Process.Kill() // SIGKILL: nothing is flushed
		_ = child.Wait()
		_ = stdin.Close()
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

func TestDurability_PublishSurvivesKill(t *testing.T) { // P-DUR-01
	dir := t.TempDir()
	addr, kill := startChild(t, dir)
	b := connect(t, addr)
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	orders := b.subscribe("orders", topic, func(c *pubsubpb.Subscription) {
		c.Filter, c.EnableMessageOrdering = "attributes:order", true
	})

	// Writers publish until the server dies; one reader acks.
	var mu sync.Mutex
	answered, acked := map[string]bool{}, map[string]bool{}
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("w%d-%d", w, i)
				m := &pubsubpb.PubsubMessage{Data: []byte(text)}
				if i%2 == 0 {
					m.OrderingKey, m.Attributes = fmt.Sprint(w), map[string]string{"order": ""}
				}
				_, err := b.pub.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{m}})
				if err != nil {
					return
				}
				mu.Lock()
				if answered[text] = true; len(answered) == 800 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		for {
			got, err := b.sub.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: sub, MaxMessages: 10})
			if err != nil {
				return
			}
			mu.Lock()
			for _, text := range payloads(got.ReceivedMessages) {
				acked[text] = true // before the call: the ack may land though its answer does not
			}
			mu.Unlock()
			_, err = b.sub.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: sub, AckIds: ackIDs(got.ReceivedMessages)})
			if err != nil {
				return
			}
		}
	})
	select {
	case <-enough:
	case <-b.deadline().Done():
		t.Fatal("publishing stalled")
	}
	kill()
	wg.Wait()

	again := start(t, pubsubemu.Options{DataDir: dir})
	left := everything(again, sub)
	for text := range answered {
		if !acked[text] && left[text] == 0 {
			t.Errorf("%s was answered OK, never acked, and is gone", text)
		}
	}
	ordered := again.stream(&pubsubpb.StreamingPullRequest{Subscription: orders})
	next := map[string]int{}
	for _, m := range ordered.receive(again.server.Counters().Subscriptions[orders].Backlog) {
		if want := fmt.Sprintf("w%s-%d", m.Message.OrderingKey, next[m.Message.OrderingKey]); string(m.Message.Data) != want {
			t.Fatalf("after the crash key %s continued with %s, want %s", m.Message.OrderingKey, m.Message.Data, want)
		}
		next[m.Message.OrderingKey] += 2
	}
}

// everything drains a subscription and counts payloads.
func everything(b *bench, sub string) map[string]int {
	b.t.Helper()
	got := map[string]int{}
	for batch := b.pull(sub, 1000); len(batch) > 0; batch = b.pull(sub, 1000) {
		for _, text := range payloads(batch) {
			got[text]++
		}
		b.ack(sub, batch...)
	}
	return got
}

func TestDurability_RestartKeepsState(t *testing.T) { // P-DUR-01, P-SEEK-01
	dir, clock := t.TempDir(), clockwork.NewFakeClockAt(epoch)
	open := func() *bench { return start(t, pubsubemu.Options{DataDir: dir, Clock: clock}) }
	b := open()
	ctx := b.deadline()
	topic, gone := b.topic("telemetry"), b.topic("gone")
	replay := topicName("replay")
	if _, err := b.pub.CreateTopic(ctx, &pubsubpb.Topic{Name: replay, MessageRetentionDuration: durationpb.New(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	sub := b.subscribe("ingest", topic, func(c *pubsubpb.Subscription) { c.RetainAckedMessages = true })
	snapped, detached := b.subscribe("snapped", topic, nil), b.subscribe("detached", topic, nil)
	orphan := b.subscribe("orphan", gone, nil)
	b.publish(topic, texts("m", 4)...)
	b.publish(gone, texts("left", 1)...)
	b.publish(replay, texts("replayed", 1)...)
	if _, err := b.pub.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: gone}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pub.DetachSubscription(ctx, &pubsubpb.DetachSubscriptionRequest{Subscription: detached}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.sub.CreateSnapshot(ctx, &pubsubpb.CreateSnapshotRequest{Name: snapshotName("snap"), Subscription: snapped}); err != nil {
		t.Fatal(err)
	}
	b.ack(sub, b.pull(sub, 2)...)
	stale := b.pull(sub, 1) // leased when the server stops
	b.ack(snapped, b.pull(snapped, 10)...)
	if _, err := pubsubemu.Start(pubsubemu.Options{DataDir: dir}); !errors.Is(err, boltfile.ErrInUse) {
		t.Errorf("second server on one directory: %v", err)
	}
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}

	b = open()
	ctx = b.deadline()
	b.ack(sub, stale...) // an ack id of the first start must not ack a delivery of the second
	current := b.pull(sub, 1)
	b.ack(sub, stale...)
	b.modify(sub, 0, current...)
	if got := b.server.Counters().Subscriptions[sub]; got.Backlog != 2 {
		t.Errorf("backlog %d after stale acks, want 2", got.Backlog)
	}
	seek(b, sub, epoch)
	if got := everything(b, sub); len(got) != 4 {
		t.Errorf("replayed %v, want all 4", got)
	}
	if _, err := b.sub.Seek(ctx, &pubsubpb.SeekRequest{Subscription: snapped, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: snapshotName("snap")}}); err != nil {
		t.Fatal(err)
	}
	if got := everything(b, snapped); len(got) != 4 {
		t.Errorf("the snapshot restored %v, want all 4", got)
	}
	if got := payloads(b.pull(orphan, 10)); !slices.Equal(got, []string{"left0"}) {
		t.Errorf("orphan holds %v", got)
	}
	if _, err := b.sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: detached, MaxMessages: 1}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("detached subscription: %v", err)
	}
	late := b.subscribe("late", replay, nil)
	seek(b, late, epoch)
	if diff := cmp.Diff([]string{"replayed0"}, payloads(b.pull(late, 10))); diff != "" {
		t.Error(diff)
	}
	ids := b.publish(topic, texts("new", 1)...)
	if ids[0] <= "6" && len(ids[0]) == 1 {
		t.Errorf("message id %s was used before the restart", ids[0])
	}
}

// A name that the server assigns is unused, even after a restart. P-RPC-01, P-DUR-01
func TestDurability_AssignedNamesAreUnused(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	topic := b.topic("telemetry")
	ingest := b.subscribe("ingest", topic, nil)
	for range 2 {
		snap, err := b.sub.CreateSnapshot(b.deadline(), &pubsubpb.CreateSnapshotRequest{Subscription: ingest})
		if err != nil || !strings.HasPrefix(snap.GetName(), project+"/snapshots/") {
			t.Errorf("snapshot %q: %v", snap.GetName(), err)
		}
		if err := b.server.Close(); err != nil {
			t.Fatal(err)
		}
		b = start(t, pubsubemu.Options{DataDir: dir})
	}
	for range 2 {
		sub, err := b.sub.CreateSubscription(b.deadline(), &pubsubpb.Subscription{Topic: topic})
		if err != nil || !strings.HasPrefix(sub.GetName(), project+"/subscriptions/") {
			t.Errorf("subscription %q: %v", sub.GetName(), err)
		}
	}
}

// A snapshot that is refused keeps nothing. P-SEEK-01, P-DUR-01
func TestDurability_RefusedSnapshotKeepsNothing(t *testing.T) {
	clock, dir := clockwork.NewFakeClockAt(epoch), t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir, Clock: clock})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 3)...)
	clock.Advance(7*24*time.Hour - time.Minute)
	_, err := b.sub.CreateSnapshot(b.deadline(), &pubsubpb.CreateSnapshotRequest{Name: snapshotName("late"), Subscription: sub})
	if status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("a snapshot that would live for a minute: %v", err)
	}
	b.ack(sub, b.pull(sub, 3)...)
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	state := onDisk(t, dir)
	if len(state.Messages) != 0 {
		t.Errorf("%d messages are still on disk, held by %v", len(state.Messages), state.Holds)
	}
}

// A subscription shows the current retention of its topic. P-RPC-01, P-DUR-01
func TestDurability_SubscriptionShowsTopicRetention(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	_, err := b.pub.UpdateTopic(b.deadline(), &pubsubpb.UpdateTopicRequest{
		Topic:      &pubsubpb.Topic{Name: topic, MessageRetentionDuration: durationpb.New(time.Hour)},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"message_retention_duration"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	b = start(t, pubsubemu.Options{DataDir: dir})
	got, err := b.sub.GetSubscription(b.deadline(), &pubsubpb.GetSubscriptionRequest{Subscription: sub})
	if err != nil || got.TopicMessageRetentionDuration.AsDuration() != time.Hour {
		t.Errorf("after a restart the topic's retention is %v, want 1h: %v", got.GetTopicMessageRetentionDuration(), err)
	}
}

// A topic and what depends on it change in one transaction: a crash between two
// would leave a subscription that joins a new topic of the old name. P-RPC-01,
// P-DUR-01
func TestDurability_DeletionIsOneTransaction(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	topic := b.topic("telemetry")
	ingest := b.subscribe("ingest", topic, nil)
	b.subscribe("archive", topic, nil)
	detached := b.subscribe("detached", topic, nil)
	if _, err := b.sub.CreateSnapshot(b.deadline(), &pubsubpb.CreateSnapshotRequest{Name: snapshotName("snap"), Subscription: ingest}); err != nil {
		t.Fatal(err)
	}
	b.publish(topic, texts("m", 1)...)

	transactions := func(call func() error) int {
		t.Helper()
		before := b.stopAndCount(dir)
		*b = *start(t, pubsubemu.Options{DataDir: dir}) // one transaction of its own
		if err := call(); err != nil {
			t.Fatal(err)
		}
		return b.stopAndCount(dir) - before - 1
	}
	if n := transactions(func() error {
		_, err := b.pub.DetachSubscription(b.deadline(), &pubsubpb.DetachSubscriptionRequest{Subscription: detached})
		return err
	}); n != 1 {
		t.Errorf("DetachSubscription took %d transactions", n)
	}
	if n := transactions(func() error {
		_, err := b.pub.DeleteTopic(b.deadline(), &pubsubpb.DeleteTopicRequest{Topic: topic})
		return err
	}); n != 1 {
		t.Errorf("DeleteTopic took %d transactions", n)
	}

	b = start(t, pubsubemu.Options{DataDir: dir})
	b.topic("telemetry")
	b.publish(topic, texts("new", 1)...)
	if got := everything(b, ingest); len(got) != 1 || got["m0"] != 1 {
		t.Errorf("a subscription of the deleted topic holds %v, want m0 alone", got)
	}
	snap, err := b.sub.GetSnapshot(b.deadline(), &pubsubpb.GetSnapshotRequest{Snapshot: snapshotName("snap")})
	if err != nil || snap.Topic != "_deleted-topic_" {
		t.Errorf("the snapshot is of %q: %v", snap.GetTopic(), err)
	}
}

// stopAndCount stops the server and returns how many transactions its file has had.
func (b *bench) stopAndCount(dir string) int {
	b.t.Helper()
	if err := b.server.Close(); err != nil {
		b.t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(dir, journal.FileName), 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.View(func(tx *bolt.Tx) error { n = tx.ID(); return nil }); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// A message that nothing holds is not on disk, but its id is not used again.
// P-RPC-01, P-DUR-01
func TestDurability_UnheldMessageIDIsNotReused(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	topic := b.topic("telemetry")
	used := b.publish(topic, texts("m", 3)...)
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	b = start(t, pubsubemu.Options{DataDir: dir})
	for _, id := range b.publish(topic, texts("m", 3)...) {
		if slices.Contains(used, id) {
			t.Errorf("message id %s was used before the restart", id)
		}
	}
}

// When the clock is set back between two starts, messages are from the future. Their
// age is 0, and a snapshot lives no longer than the service allows. P-SEEK-01,
// P-DUR-01
func TestDurability_ClockSetBack(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	b := start(t, pubsubemu.Options{DataDir: dir, Clock: clockwork.NewFakeClockAt(now)})
	topic := b.topic("telemetry")
	sub := b.subscribe("ingest", topic, nil)
	b.publish(topic, texts("m", 1)...)
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-48 * time.Hour)
	b = start(t, pubsubemu.Options{DataDir: dir, Clock: clockwork.NewFakeClockAt(now)})
	if age := b.server.Counters().Subscriptions[sub].OldestAge; age != 0 {
		t.Errorf("the oldest message is %v old", age)
	}
	snap, err := b.sub.CreateSnapshot(b.deadline(), &pubsubpb.CreateSnapshotRequest{Name: snapshotName("snap"), Subscription: sub})
	if life := snap.GetExpireTime().AsTime().Sub(now); err != nil || life != 7*24*time.Hour {
		t.Errorf("the snapshot lives for %v: %v", life, err)
	}
	if got := payloads(b.pull(sub, 2)); len(got) != 1 {
		t.Errorf("pulled %v, want m0", got)
	}
}

// A damaged or emptied data file is refused with its path, the record and what to
// do, instead of serving what nobody published. P-DUR-01
func TestDurability_RefusesDamagedFile(t *testing.T) {
	dir := t.TempDir()
	b := start(t, pubsubemu.Options{DataDir: dir})
	topic := b.topic("telemetry")
	b.subscribe("ingest", topic, nil)
	id := b.publish(topic, texts("battery 80 %", 1)...)[0]
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, journal.FileName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, damaged := range map[string][]byte{
		"message " + id + " is damaged": bytes.ReplaceAll(content, []byte("battery 80 %"), []byte("battery 00 %")),
		"the file is empty":             nil,
	} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		server, err := pubsubemu.Start(pubsubemu.Options{DataDir: dir})
		if err == nil {
			t.Errorf("%s: served", want)
			_ = server.Close()
		} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "restore it from a copy") && !strings.Contains(err.Error(), "restore the file from a copy") {
			t.Errorf("%v; want the path, %q and what to do", err, want)
		}
	}
}

// onDisk loads what a closed server has left in its data directory.
func onDisk(t *testing.T, dir string) *journal.State {
	t.Helper()
	j, state, err := journal.Open(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return state
}
