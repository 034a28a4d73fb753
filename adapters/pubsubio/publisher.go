package pubsubio

import (
	"context"
	"maps"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// publishTimeout is how long the client tries to publish a message. It is shorter than the
// waits for dead letters and commands, so that they learn the cause, and than a shutdown.
const publishTimeout = 8 * time.Second

// Publisher publishes to the fleet's topics. It is safe for concurrent use.
type Publisher struct {
	client    *pubsub.Client
	mu        sync.Mutex
	topics    map[string]*pubsub.Publisher
	sequences map[orderingKey]*sequence
}

// orderingKey is an ordering key of a topic.
type orderingKey struct{ topic, key string }

// sequence is the state of one ordering key.
type sequence struct {
	last   *pubsub.PublishResult // of the newest message
	failed bool                  // a message failed and its sender knows it
}

// gatherOthers is how long a message waits for others of its topic and ordering key, to share
// their request. See Gather.
const gatherOthers = 5 * time.Millisecond

// NewPublisher returns a publisher on client, which stays the caller's to
// close; Stop flushes first.
func NewPublisher(client *pubsub.Client) *Publisher {
	return &Publisher{client: client, topics: map[string]*pubsub.Publisher{}, sequences: map[orderingKey]*sequence{}}
}

// Gather sets how long messages of a topic wait for others of their ordering key. It must be
// called before the first of them is published.
func (p *Publisher) Gather(topic string, wait time.Duration) {
	p.topic(topic).PublishSettings.DelayThreshold = wait
}

// Published is a message being published.
type Published struct {
	result   *pubsub.PublishResult
	answered func(error)
	span     trace.Span
}

// Wait returns the message's id once the server has it, or an error if it may not
// have it. It also ends the message's span.
func (p Published) Wait(ctx context.Context) (id string, err error) {
	id, err = p.result.Get(ctx)
	p.answered(err)
	if err != nil {
		p.span.SetStatus(codes.Error, err.Error())
	} else {
		p.span.SetAttributes(semconv.MessagingMessageID(id))
	}
	p.span.End()
	return id, err
}

// Publish sends one message, with the trace of ctx if there is one. Messages of one
// ordering key, which may be empty, keep their order. When one fails, those behind it fail
// too, until a sender has waited for a failed one and none is being sent. So no message
// overtakes one that its sender may send again.
func (p *Publisher) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, key string) Published {
	t := p.topic(topic)
	ctx, span := startSending(ctx, topic, key)
	msg := &pubsub.Message{Data: data, Attributes: inject(ctx, maps.Clone(attrs)), OrderingKey: key}
	if key == "" {
		return Published{result: t.Publish(ctx, msg), span: span, answered: func(error) {}}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := orderingKey{topic, key}
	s := p.sequences[id]
	if s == nil {
		s = &sequence{}
		p.sequences[id] = s
	}
	if s.failed && isReady(s.last) {
		// After a failure the client refuses the key until resumed.
		t.ResumePublish(key)
		s.failed = false
	}
	result := t.Publish(ctx, msg)
	s.last = result
	return Published{result: result, span: span, answered: func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			s.failed = true
		} else if s.last == result && !s.failed && p.sequences[id] == s {
			delete(p.sequences, id)
		}
	}}
}

func isReady(r *pubsub.PublishResult) bool {
	select {
	case <-r.Ready():
		return true
	default:
		return false
	}
}

func (p *Publisher) topic(id string) *pubsub.Publisher {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.topics[id]
	if !ok {
		t = p.client.Publisher(id)
		t.EnableMessageOrdering = true
		t.PublishSettings.DelayThreshold = gatherOthers
		t.PublishSettings.CountThreshold = 500
		t.PublishSettings.Timeout = publishTimeout
		p.topics[id] = t
	}
	return t
}

// Stop sends what is waiting and ends the publisher's goroutines. If Pub/Sub does
// not answer, it takes up to publishTimeout.
func (p *Publisher) Stop() {
	p.mu.Lock()
	topics := p.topics
	p.topics, p.sequences = map[string]*pubsub.Publisher{}, map[orderingKey]*sequence{}
	p.mu.Unlock()
	var stopping sync.WaitGroup
	for _, t := range topics {
		stopping.Go(t.Stop)
	}
	stopping.Wait()
}
