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

// publishTimeout is how long the client tries to publish a message: less than
// dead letters and commands are waited for, so that who waits hears why. The
// client's own minute would outlast a shutdown.
const publishTimeout = 8 * time.Second

// Publisher publishes to the fleet's topics. It is safe for concurrent use.
type Publisher struct {
	client *pubsub.Client
	mu     sync.Mutex
	topics map[string]*pubsub.Publisher
}

// NewPublisher returns a publisher on client, which stays the caller's to
// close; Stop flushes first.
func NewPublisher(client *pubsub.Client) *Publisher {
	return &Publisher{client: client, topics: map[string]*pubsub.Publisher{}}
}

// Published is a publication under way.
type Published struct {
	result *pubsub.PublishResult
	resume func()
	span   trace.Span
}

// Wait returns when the server has the message, with its id, or an error when
// it may not have it. It also ends the message's span.
func (p Published) Wait(ctx context.Context) (id string, err error) {
	id, err = p.result.Get(ctx)
	if err != nil {
		p.resume()
		p.span.SetStatus(codes.Error, err.Error())
	} else {
		p.span.SetAttributes(semconv.MessagingMessageID(id))
	}
	p.span.End()
	return id, err
}

// Publish sends one message; messages of one ordering key keep their order.
// The ordering key may be empty. The message carries the trace of ctx, if there
// is one.
func (p *Publisher) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) Published {
	t := p.topic(topic)
	ctx, span := startSending(ctx, topic, orderingKey)
	result := t.Publish(ctx, &pubsub.Message{Data: data, Attributes: inject(ctx, maps.Clone(attrs)), OrderingKey: orderingKey})
	return Published{result: result, span: span, resume: func() {
		if orderingKey != "" {
			// After a failure the client refuses the key until told otherwise.
			t.ResumePublish(orderingKey)
		}
	}}
}

func (p *Publisher) topic(id string) *pubsub.Publisher {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.topics[id]
	if !ok {
		t = p.client.Publisher(id)
		t.EnableMessageOrdering = true
		t.PublishSettings.DelayThreshold = 5 * time.Millisecond
		t.PublishSettings.CountThreshold = 500
		t.PublishSettings.Timeout = publishTimeout
		p.topics[id] = t
	}
	return t
}

// Stop sends what is still waiting and ends the publisher's goroutines. When
// Pub/Sub does not answer, it takes as long as a publish may.
func (p *Publisher) Stop() {
	p.mu.Lock()
	topics := p.topics
	p.topics = map[string]*pubsub.Publisher{}
	p.mu.Unlock()
	var stopping sync.WaitGroup
	for _, t := range topics {
		stopping.Go(t.Stop)
	}
	stopping.Wait()
}
