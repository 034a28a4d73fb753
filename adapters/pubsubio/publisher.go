package pubsubio

import (
	"context"
	"maps"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
)

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
}

// Wait returns when the server has the message, with its id, or an error when
// it may not have it.
func (p Published) Wait(ctx context.Context) (id string, err error) {
	id, err = p.result.Get(ctx)
	if err != nil {
		p.resume()
	}
	return id, err
}

// Publish sends one message; messages of one ordering key keep their order.
// The ordering key may be empty.
func (p *Publisher) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) Published {
	t := p.topic(topic)
	result := t.Publish(ctx, &pubsub.Message{Data: data, Attributes: maps.Clone(attrs), OrderingKey: orderingKey})
	return Published{result: result, resume: func() {
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
		p.topics[id] = t
	}
	return t
}

// Stop sends what is still waiting and ends the publisher's goroutines.
func (p *Publisher) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.topics {
		t.Stop()
	}
	clear(p.topics)
}
