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
	broken chan error // holds why the receiver stopped

	mu       sync.Mutex
	controls []*pubsubpb.StreamingPullResponse // answers to pings and acks, yet to be sent
}

// StreamingPull delivers messages until the client closes the stream or the
// subscription goes.
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
			clear(room) // hold no message longer than the backlog does
			if err := p.handOver(&response); err != nil {
				return err
			}
			p.c.nudge() // look again at once
		}
		select {
		case <-p.c.wake:
		case err := <-p.broken:
			if err == nil { // half-closed: what was asked before is answered
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

// handOver sends deliveries; a fault may have dropped all of them, or breaks
// the stream behind them.
func (p *pullStream) handOver(response *pullResponse) error {
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
			err = nil // half-closed: the client is done
			p.broken <- err
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

// handle does a request after the first. A request with nothing in it is the
// client's keepalive and wants an answer, else the client reopens the stream.
func (p *pullStream) handle(req *pubsubpb.StreamingPullRequest) error {
	switch {
	case req.Subscription != "":
		return invalid("subscription: set on a later request; it belongs in the first one only")
	case req.MaxOutstandingMessages != 0, req.MaxOutstandingBytes != 0:
		return invalid("max_outstanding_messages, max_outstanding_bytes: set on a later request; they belong in the first one only")
	case req.ProtocolVersion != 0:
		return invalid("protocol_version: set on a later request; it belongs in the first one only")
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

// confirmation reports exactly-once results; nil when there is nothing to say.
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
