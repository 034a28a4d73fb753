package pubsubemu

import (
	"errors"
	"io"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

// pullStream is one StreamingPull call. The handler's goroutine sends, a
// second one receives: gRPC allows one of each at a time.
type pullStream struct {
	server *Server
	sub    *subscription
	stream pubsubpb.Subscriber_StreamingPullServer
	c      *consumer
	broken chan error // receives why the receiver stopped

	mu       sync.Mutex
	controls []*pubsubpb.StreamingPullResponse // answers to keepalives and acks that are not sent yet
}

// StreamingPull delivers messages until the client closes the stream or the
// subscription is deleted or detached.
func (s *Server) StreamingPull(stream pubsubpb.Subscriber_StreamingPullServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return invalid("subscription: the stream ended before its first request")
	}
	if err != nil {
		return err
	}
	sub, err := s.subscription("subscription", first.Subscription)
	if err != nil {
		return err
	}
	if err := checkStreamDeadline(first.StreamAckDeadlineSeconds); err != nil {
		return err
	}
	c := newConsumer(first.MaxOutstandingMessages, first.MaxOutstandingBytes)
	c.lease = time.Duration(first.StreamAckDeadlineSeconds) * time.Second
	if err := sub.open(c); err != nil {
		return err
	}
	defer sub.closeStream(c)
	p := &pullStream{server: s, sub: sub, stream: stream, c: c, broken: make(chan error, 1)}
	if err := p.settle(first); err != nil {
		return err
	}
	s.serving.Go(p.receive) // ends when the handler has returned
	return p.send()
}

func checkStreamDeadline(seconds int32) error {
	if seconds < minAckDeadline || seconds > maxAckDeadline {
		return invalid("stream_ack_deadline_seconds: %d is out of range; use %d to %d", seconds, minAckDeadline, maxAckDeadline)
	}
	return nil
}

func (p *pullStream) send() error {
	var (
		room     []*entry
		response pullResponse
	)
	for {
		if err := p.sendControls(); err != nil {
			return err
		}
		room = p.sub.take(p.c, largestBatch, room, &response)
		if len(room) > 0 {
			clear(room) // keep no message longer than the backlog does
			if err := p.deliver(&response); err != nil {
				return err
			}
			p.c.nudge() // there may be more
		}
		select {
		case <-p.c.wake:
		case err := <-p.broken:
			if err == nil { // half-closed: answer the requests that came before
				err = p.sendControls()
			}
			return err
		case <-p.sub.gone:
			return p.sub.ended
		case <-p.server.faults.Outage():
			return errOutage
		case <-p.stream.Context().Done():
			return status.FromContextError(p.stream.Context().Err()).Err()
		}
	}
}

// deliver sends deliveries. A fault may have dropped all of them, or may break the
// stream after them.
func (p *pullStream) deliver(response *pullResponse) error {
	if len(response.deliveries) == 0 {
		return nil
	}
	if err := p.stream.SendMsg(response); err != nil {
		return err
	}
	breaks := p.server.faults.Hit(fault.BreakStream, p.sub.name, response.deliveries[0].lease)
	clear(response.deliveries)
	if breaks {
		return errStreamBroken
	}
	return nil
}

func (p *pullStream) receive() {
	for {
		req, err := p.stream.Recv()
		if errors.Is(err, io.EOF) {
			p.sub.mu.Lock() // the sender may wait for a client that reads nothing
			p.c.halfClosed = true
			p.sub.mu.Unlock()
			p.broken <- nil
			return
		}
		if err == nil {
			err = p.handle(req)
		}
		if err != nil {
			p.broken <- err
			return
		}
	}
}

// handle processes a request after the first. An empty request is the client's
// keepalive: without an answer, the client reopens the stream.
func (p *pullStream) handle(req *pubsubpb.StreamingPullRequest) error {
	switch {
	case req.Subscription != "":
		return invalid("subscription: set on a later request; set it only on the first one")
	case req.MaxOutstandingMessages != 0, req.MaxOutstandingBytes != 0:
		return invalid("max_outstanding_messages, max_outstanding_bytes: set on a later request; set them only on the first one")
	case req.ProtocolVersion != 0:
		return invalid("protocol_version: set on a later request; set it only on the first one")
	}
	if seconds := req.StreamAckDeadlineSeconds; seconds != 0 {
		if err := checkStreamDeadline(seconds); err != nil {
			return err
		}
		p.sub.mu.Lock()
		p.c.lease = time.Duration(seconds) * time.Second
		p.sub.mu.Unlock()
	}
	if len(req.AckIds) == 0 && len(req.ModifyDeadlineAckIds) == 0 && len(req.ModifyDeadlineSeconds) == 0 {
		p.answer(&pubsubpb.StreamingPullResponse{})
		return nil
	}
	return p.settle(req)
}

// settle applies the acks and deadlines of a request.
func (p *pullStream) settle(req *pubsubpb.StreamingPullRequest) error {
	if len(req.ModifyDeadlineAckIds) != len(req.ModifyDeadlineSeconds) {
		return invalid("modify_deadline_ack_ids: %d ids but %d values in modify_deadline_seconds; give one for each",
			len(req.ModifyDeadlineAckIds), len(req.ModifyDeadlineSeconds))
	}
	for _, seconds := range req.ModifyDeadlineSeconds {
		if err := checkExtension(seconds); err != nil {
			return err
		}
	}
	acked, err := p.sub.acknowledge(req.AckIds)
	if err != nil {
		return err
	}
	modified, err := p.sub.modify(req.ModifyDeadlineAckIds, func(i int) int32 { return req.ModifyDeadlineSeconds[i] })
	if err != nil {
		return err
	}
	if response := confirmation(req, acked, modified); response != nil {
		p.answer(response)
	}
	return nil
}

// confirmation reports exactly-once results; nil when there are none.
func confirmation(req *pubsubpb.StreamingPullRequest, acked, modified *ackReport) *pubsubpb.StreamingPullResponse {
	response := &pubsubpb.StreamingPullResponse{}
	if acked != nil && len(req.AckIds) > 0 {
		response.AcknowledgeConfirmation = &pubsubpb.StreamingPullResponse_AcknowledgeConfirmation{
			AckIds: acked.applied, InvalidAckIds: acked.invalid, UnorderedAckIds: acked.unordered,
		}
	}
	if modified != nil && len(req.ModifyDeadlineAckIds) > 0 {
		response.ModifyAckDeadlineConfirmation = &pubsubpb.StreamingPullResponse_ModifyAckDeadlineConfirmation{
			AckIds: modified.applied, InvalidAckIds: modified.invalid,
		}
	}
	if response.AcknowledgeConfirmation == nil && response.ModifyAckDeadlineConfirmation == nil {
		return nil
	}
	return response
}

// answer queues a response for the sender.
func (p *pullStream) answer(response *pubsubpb.StreamingPullResponse) {
	p.sub.mu.Lock()
	rules := p.sub.backlog.rules
	p.sub.mu.Unlock()
	response.SubscriptionProperties = &pubsubpb.StreamingPullResponse_SubscriptionProperties{
		ExactlyOnceDeliveryEnabled: rules.exactlyOnce, MessageOrderingEnabled: rules.ordered,
	}
	p.mu.Lock()
	p.controls = append(p.controls, response)
	p.mu.Unlock()
	p.c.nudge()
}

func (p *pullStream) sendControls() error {
	p.mu.Lock()
	controls := p.controls
	p.controls = nil
	p.mu.Unlock()
	for _, control := range controls {
		if err := p.stream.Send(control); err != nil {
			return err
		}
	}
	return nil
}
