package pubsubio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Review is one look at a topic's dead letters. It leases every letter for ten minutes, so
// that they can be sorted and judged together. Close returns the unsettled ones.
type Review struct {
	// Letters are in the order in which the original messages were published.
	Letters []DeadLetter
	// More says that a limit of the review was reached and more letters may exist.
	More bool

	client       *pubsub.Client
	topic        string
	subscription string
	settled      map[string]settled // by ack id
	again        map[string]string  // ids of the messages published again, by ack id
}

// settled says how a letter was settled.
type settled int

const (
	replayed settled = iota + 1
	discarded
)

// Limits of one review, which holds its letters in memory.
const (
	maxReviewLetters = 10_000
	MaxReviewBytes   = 256 << 20
)

const (
	reviewLease  = 10 * time.Minute // Pub/Sub's longest
	ackIDsAtOnce = 1000             // keeps requests below Pub/Sub's 512 KiB
)

// OpenReview collects the dead letters of a topic until none arrives within wait. With wait
// 0 it trusts an empty answer, which only emulators deserve. It does not see letters that
// another review has leased. It stops once the letters hold that many bytes of data; 0
// means MaxReviewBytes.
func OpenReview(ctx context.Context, c *pubsub.Client, topic string, wait time.Duration, bytes int) (*Review, error) {
	r := &Review{client: c, topic: topic, subscription: subscriptionName(c, DeadLetterSubscription(topic)), settled: map[string]settled{}, again: map[string]string{}}
	seen := map[string]int{} // index in Letters by the dead letter's own id
	size := 0
	for !r.More {
		pulled, err := r.pull(ctx, wait)
		if err != nil {
			return nil, errors.Join(r.fail("read", err), r.Close(ctx))
		}
		fresh := false
		for _, m := range pulled {
			letter := decodeDeadLetter(m)
			if i, again := seen[letter.ID]; again {
				r.Letters[i].ackID = letter.ackID // the newer lease counts
				continue
			}
			seen[letter.ID] = len(r.Letters)
			r.Letters = append(r.Letters, letter)
			size += len(letter.Data)
			fresh = true
		}
		if err := r.lease(ctx, pulled); err != nil {
			return nil, errors.Join(r.fail("hold", err), r.Close(ctx))
		}
		if !fresh {
			break
		}
		r.More = len(r.Letters) >= maxReviewLetters || size >= cmp.Or(bytes, MaxReviewBytes)
	}
	slices.SortStableFunc(r.Letters, func(a, b DeadLetter) int {
		return cmp.Or(a.PublishTime.Compare(b.PublishTime), cmp.Compare(a.MessageID, b.MessageID))
	})
	return r, nil
}

// Topic is the topic of the original messages.
func (r *Review) Topic() string { return r.topic }

// pull asks for letters once; finding none is not an error.
func (r *Review) pull(ctx context.Context, wait time.Duration) ([]*pubsubpb.ReceivedMessage, error) {
	asking := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	req := &pubsubpb.PullRequest{Subscription: r.subscription, MaxMessages: ackIDsAtOnce}
	//lint:ignore SA1019 deprecated for its empty answers, which are answers here
	req.ReturnImmediately = wait <= 0
	resp, err := r.client.SubscriptionAdminClient.Pull(asking, req)
	if status.Code(err) == codes.NotFound {
		return nil, missing(DeadLetterSubscription(r.topic))
	}
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return resp.GetReceivedMessages(), err
}

func (r *Review) lease(ctx context.Context, pulled []*pubsubpb.ReceivedMessage) error {
	ids := make([]string, len(pulled))
	for i, m := range pulled {
		ids[i] = m.GetAckId()
	}
	return r.setLease(ctx, ids, reviewLease)
}

// setLease sets how long the review keeps letters, by their ack ids. 0 returns them.
func (r *Review) setLease(ctx context.Context, ids []string, lease time.Duration) error {
	for chunk := range slices.Chunk(ids, ackIDsAtOnce) {
		err := r.client.SubscriptionAdminClient.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
			Subscription: r.subscription, AckIds: chunk, AckDeadlineSeconds: int32(lease.Seconds()),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replayAtOnce bounds how many messages are published before their letters are
// deleted together.
const replayAtOnce = 200

// Replay publishes the original messages of letters again, in the order given, on behalf of
// by. A replayed message carries its first publish time, because a replay must not make it
// newer, and the id of the message it repeats. A letter is deleted once the server has the
// message and record has returned nil for it and the new id.
//
// Incomplete letters stay, each with an *IncompleteError. Replay stops after the first
// chunk with a failure and returns how many were replayed. If only the record or the
// deletion failed, replaying again is harmless: applied messages change nothing.
func (r *Review) Replay(ctx context.Context, p *Publisher, by string, letters []DeadLetter, record func(context.Context, DeadLetter, string) error) (n int, err error) {
	var complete []DeadLetter
	var refused []error
	for _, l := range letters {
		if err := l.Complete(); err != nil {
			refused = append(refused, r.fail("replay", err))
			continue
		}
		complete = append(complete, l)
	}
	for chunk := range slices.Chunk(complete, replayAtOnce) {
		pending := make([]Published, len(chunk))
		for i, l := range chunk {
			// The letter's own topic attribute is not trusted.
			pending[i] = p.Publish(ctx, r.topic, l.Data, l.replayed(by), l.OrderingKey)
		}
		var published []DeadLetter
		var errs []error
		for i, l := range chunk {
			id, err := pending[i].Wait(ctx)
			if err != nil {
				errs = append(errs, r.fail("replay", fmt.Errorf("message %s: %w", l.MessageID, err)))
				continue
			}
			r.again[l.ackID] = id
			published = append(published, l)
		}
		confirmed, err := recordEach(ctx, published, func(ctx context.Context, l DeadLetter) error { return record(ctx, l, r.again[l.ackID]) })
		if err != nil {
			errs = append(errs, r.fail("record the replay of", fmt.Errorf("%d messages were published again but their dead letters remain: %w", len(published)-len(confirmed), err)))
		}
		if err := r.acknowledge(ctx, confirmed, replayed); err != nil {
			errs = append(errs, r.fail("delete", fmt.Errorf("%d messages were published again but their dead letters remain: %w", len(confirmed), err)))
		} else {
			n += len(confirmed)
		}
		if len(errs) > 0 {
			return n, errors.Join(append(refused, errs...)...)
		}
	}
	return n, errors.Join(refused...)
}

// Replayed reports whether the letter's message was published again and the
// letter deleted.
func (r *Review) Replayed(l DeadLetter) bool { return r.settled[l.ackID] == replayed }

// ReplayedAs is the id that the letter's message was given when it was published
// again; "" if it was not.
func (r *Review) ReplayedAs(l DeadLetter) string { return r.again[l.ackID] }

const (
	discardAtOnce = 200 // letters, which are deleted together
	// recordAtOnce bounds the concurrent records. Their ids rise, so more at a time
	// would not be faster.
	recordAtOnce = 8
)

// Discard deletes letters, each after record has returned nil for it. It stops after the
// first failure and returns how many were discarded. If only the deletion failed,
// discarding again is harmless: record keeps the first entry.
func (r *Review) Discard(ctx context.Context, letters []DeadLetter, record func(context.Context, DeadLetter) error) (n int, err error) {
	for chunk := range slices.Chunk(letters, discardAtOnce) {
		recorded, failed := recordEach(ctx, chunk, record)
		failed = r.fail("record", failed)
		if err := r.acknowledge(ctx, recorded, discarded); err != nil {
			return n, errors.Join(failed, r.fail("delete", fmt.Errorf("%d are recorded as discarded but remain: %w", len(recorded), err)))
		}
		if n += len(recorded); failed != nil {
			return n, failed
		}
	}
	return n, nil
}

// recordEach records each letter. It returns the ack ids of the recorded ones, and the
// first failure.
func recordEach(ctx context.Context, letters []DeadLetter, record func(context.Context, DeadLetter) error) (recorded []string, err error) {
	on := make([]bool, len(letters)) // record
	g, recording := errgroup.WithContext(ctx)
	g.SetLimit(recordAtOnce)
	for i, l := range letters {
		g.Go(func() error {
			if err := record(recording, l); err != nil {
				return fmt.Errorf("message %s: %w", l.MessageID, err)
			}
			on[i] = true
			return nil
		})
	}
	err = g.Wait()
	for i, l := range letters {
		if on[i] {
			recorded = append(recorded, l.ackID)
		}
	}
	return recorded, err
}

// Discarded reports whether the letter was deleted for good.
func (r *Review) Discarded(l DeadLetter) bool { return r.settled[l.ackID] == discarded }

func (r *Review) acknowledge(ctx context.Context, ids []string, as settled) error {
	if len(ids) == 0 {
		return nil
	}
	err := r.client.SubscriptionAdminClient.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: r.subscription, AckIds: ids})
	if err != nil {
		return err
	}
	for _, id := range ids {
		r.settled[id] = as
	}
	return nil
}

// closeTimeout bounds returning letters.
const closeTimeout = 10 * time.Second

// Close returns the unsettled letters to the subscription. It works after ctx has
// ended, too; if it fails they return when their lease ends.
func (r *Review) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var ids []string
	for _, l := range r.Letters {
		if r.settled[l.ackID] == 0 {
			ids = append(ids, l.ackID)
		}
	}
	return r.fail("return", r.setLease(ctx, ids, 0))
}

// fail wraps an error with what failed; nil stays nil.
func (r *Review) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s dead letters of %s: %w", what, r.topic, err)
}
