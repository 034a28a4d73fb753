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
	"github.com/dronefleet/dronefleet/policy"
)

// ackChecker intercepts the product's connections, next to the servers, and checks
// that the store holds the effect of a report when its message is acked, or needs none. At the
// end of a run only a drone's last report shows: it hides that an earlier one was
// lost. Orders and decisions need no such check, because each keeps a document or
// row of its own.
type ackChecker struct {
	store *firestoretx.Store // of a connection without faults

	mu sync.Mutex
	// heard are the latest reports of a drone that each process got.
	heard     map[domain.DroneID]map[string][]domain.Telemetry
	delivered map[string]*pubsubpb.PubsubMessage // by ack id, until it is acked
	early     []earlyAck
	err       error // the first failed check
}

// earlyAck is the ack of a report that says more than the store held of its
// drone. It is correct only if the message was dead-lettered.
type earlyAck struct {
	message  string
	reported domain.Telemetry
	applied  domain.Drone
}

func (e earlyAck) String() string {
	d, t := e.applied, e.reported
	return fmt.Sprintf("F-ACK-01 drone %s: its report of %s, message %s, was acked when lastUpdate was %s, and there is no dead letter; it says %s, the document %s, foretold %.0f m away",
		t.DroneID, t.Timestamp.Format(time.RFC3339Nano), e.message, d.LastUpdate.Format(time.RFC3339Nano), t.Status, d.ReportedStatus, d.Motion.From(d.Position, t.Timestamp.Sub(d.LastUpdate)).DistanceMetres(t.Position))
}

func newAckChecker(store *firestoretx.Store) *ackChecker {
	return &ackChecker{store: store, delivered: map[string]*pubsubpb.PubsubMessage{}, heard: map[domain.DroneID]map[string][]domain.Telemetry{}}
}

// dialOptions are those of a process's connections.
func (c *ackChecker) dialOptions(process string) []grpc.DialOption {
	p := ackTap{c, process}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(p.unary), grpc.WithChainStreamInterceptor(p.stream)}
}

// ackTap is the checker of one process.
type ackTap struct {
	*ackChecker
	process string
}

func (c ackTap) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if ack, ok := req.(*pubsubpb.AcknowledgeRequest); ok && path.Base(ack.GetSubscription()) == pubsubio.Subscription(pubsubio.TopicTelemetry) {
		c.compare(context.WithoutCancel(ctx), ack.GetAckIds())
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// compare compares the reports of messages about to be acked with the store.
func (c ackTap) compare(ctx context.Context, ackIDs []string) {
	drones, err := c.store.Drones(ctx, "", firestoretx.Page{})
	applied := make(map[domain.DroneID]domain.Drone, len(drones))
	for _, d := range drones {
		applied[d.ID] = d
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.err == nil {
			c.err = fmt.Errorf("check an ack: read the drones: %w", err)
		}
		return
	}
	for _, id := range ackIDs {
		m := c.delivered[id]
		delete(c.delivered, id)
		t, err := wire.DecodeTelemetry(m.GetData(), m.GetAttributes())
		if err != nil {
			continue // poison: its dead letter is checked at the end
		}
		t.Timestamp = t.Timestamp.Truncate(time.Microsecond) // as documents keep times
		if d := applied[t.DroneID]; t.Timestamp.After(d.LastUpdate) && !saysNothingNew(d, t) && !(!d.Motion.At.IsZero() && c.superseded(d, t)) {
			c.early = append(c.early, earlyAck{m.GetMessageId(), t, d})
		}
	}
}

// superseded reports whether the process got a newer report of the drone that says nothing new, or
// another process got one about then. Of a drone whose reports two processes get in turn, one may
// leave a report unwritten without knowing what the other wrote; it finds out at its next write.
func (c ackTap) superseded(d domain.Drone, t domain.Telemetry) bool {
	for process, reports := range c.heard[t.DroneID] {
		for _, other := range reports {
			newer := other.Timestamp.After(t.Timestamp)
			if process == c.process && newer && saysNothingNew(d, other) || process != c.process && t.Timestamp.Sub(other.Timestamp) <= mostUnwritten {
				return true
			}
		}
	}
	return false
}

// mostUnwritten is how much newer than its drone's document a report may be and not be written.
var mostUnwritten = policy.DefaultForetelling().Unwritten(policy.Limits{})

// keptReports is more than a process gets of a drone in mostUnwritten.
const keptReports = 32

// saysNothingNew reports whether a drone's document tells what the report says, so that the report
// need not be written (F-POS-01). What a report proves of its mission is checked at the end.
func saysNothingNew(d domain.Drone, t domain.Telemetry) bool {
	newer, most := t.Timestamp.Sub(d.LastUpdate), policy.DefaultForetelling().ErrorMetres
	return d.Foretells() && newer <= mostUnwritten && (t.Status == "" || t.Status == d.ReportedStatus) &&
		d.Motion.From(d.Position, newer).DistanceMetres(t.Position) <= most
}

func (c ackTap) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &deliveryRecorder{stream, c}, nil
}

// deliveryRecorder is a stream whose deliveries are remembered.
type deliveryRecorder struct {
	grpc.ClientStream
	checker ackTap
}

func (s *deliveryRecorder) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	if r, ok := m.(*pubsubpb.StreamingPullResponse); ok {
		s.checker.mu.Lock()
		defer s.checker.mu.Unlock()
		for _, d := range r.GetReceivedMessages() {
			s.checker.delivered[d.GetAckId()] = d.GetMessage()
			s.checker.hear(d.GetMessage())
		}
	}
	return nil
}

// hear notes who got a report; with mu held.
func (c ackTap) hear(m *pubsubpb.PubsubMessage) {
	t, err := wire.DecodeTelemetry(m.GetData(), m.GetAttributes())
	if err != nil {
		return
	}
	if c.heard[t.DroneID] == nil {
		c.heard[t.DroneID] = map[string][]domain.Telemetry{}
	}
	all := append(c.heard[t.DroneID][c.process], t)
	c.heard[t.DroneID][c.process] = all[max(0, len(all)-keptReports):]
}

// complaints lists the acks that came before effect or dead letter. Call it when
// nothing is in flight any more.
func (c *ackChecker) complaints(refused map[string]bool) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for _, e := range c.early {
		if !refused[e.message] {
			found = append(found, e.String())
		}
	}
	return found, c.err
}
