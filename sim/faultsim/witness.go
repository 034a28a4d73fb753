package faultsim

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// witness sits on the product's connections, next to the servers, and looks
// whether the store holds the effect of a report when its message is acked. In
// the end only a drone's last report shows: any later one hides that an earlier
// was lost. Of orders and decisions each keeps its own document or row.
type witness struct {
	store *firestoretx.Store // the judge's, which no fault strikes

	mu        sync.Mutex
	delivered map[string]*pubsubpb.PubsubMessage // by ack id, until it is acked
	early     []earlyAck
	err       error // the first that kept it from looking
}

// earlyAck is the ack of a report newer than anything the store had of its
// drone. It is right only if the message was dead-lettered.
type earlyAck struct {
	message           string
	drone             domain.DroneID
	reported, applied time.Time
}

func (e earlyAck) String() string {
	return fmt.Sprintf("F-ACK-01 drone %s: its report of %s, message %s, was acked when lastUpdate was %s, and there is no dead letter",
		e.drone, e.reported.Format(time.RFC3339Nano), e.message, e.applied.Format(time.RFC3339Nano))
}

func newWitness(store *firestoretx.Store) *witness {
	return &witness{store: store, delivered: map[string]*pubsubpb.PubsubMessage{}}
}

func (w *witness) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(w.unary), grpc.WithChainStreamInterceptor(w.stream)}
}

func (w *witness) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if ack, ok := req.(*pubsubpb.AcknowledgeRequest); ok && path.Base(ack.GetSubscription()) == pubsubio.Subscription(pubsubio.TopicTelemetry) {
		w.look(context.WithoutCancel(ctx), ack.GetAckIds())
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// look compares the reports of messages about to be acked with the store.
func (w *witness) look(ctx context.Context, ackIDs []string) {
	drones, err := w.store.Drones(ctx, "", firestoretx.Page{})
	applied := make(map[domain.DroneID]time.Time, len(drones))
	for _, d := range drones {
		applied[d.ID] = d.LastUpdate
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("look at the drones: %w", err)
		}
		return
	}
	for _, id := range ackIDs {
		m := w.delivered[id]
		delete(w.delivered, id)
		t, err := wire.DecodeTelemetry(m.GetData(), m.GetAttributes())
		if err != nil {
			continue // poison, whose dead letter shows in the end
		}
		reported := t.Timestamp.Truncate(time.Microsecond) // as documents keep times
		if reported.After(applied[t.DroneID]) {
			w.early = append(w.early, earlyAck{m.GetMessageId(), t.DroneID, reported, applied[t.DroneID]})
		}
	}
}

func (w *witness) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &witnessed{stream, w}, nil
}

// witnessed is a stream whose deliveries are remembered.
type witnessed struct {
	grpc.ClientStream
	witness *witness
}

func (s *witnessed) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	if r, ok := m.(*pubsubpb.StreamingPullResponse); ok {
		s.witness.mu.Lock()
		defer s.witness.mu.Unlock()
		for _, d := range r.GetReceivedMessages() {
			s.witness.delivered[d.GetAckId()] = d.GetMessage()
		}
	}
	return nil
}

// complaints are the acks that came before effect or dead letter. Ask when
// nothing is in flight any more.
func (w *witness) complaints(refused map[string]bool) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, e := range w.early {
		if !refused[e.message] {
			found = append(found, e.String())
		}
	}
	return found, w.err
}
