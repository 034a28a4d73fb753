package mqttlink

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// window is how many reports may be on their way from the broker to Pub/Sub; the others
	// stay in the broker.
	window = 1000
	// maxPacket keeps the broker from sending what is far too large. It drops it instead.
	maxPacket = 64 << 10
	// keepAlive finds a broker that is gone without a word within twice that.
	keepAlive = 15 * time.Second
	// answerWithin bounds the broker's answer to a packet, and a write.
	answerWithin = 10 * time.Second
	// ackEvery gathers acks. It delays the broker's next reports only when the window is full.
	ackEvery = 10 * time.Millisecond
	// quiet is how long the broker sends nothing before a gateway that leaves believes that it
	// has everything.
	quiet = 500 * time.Millisecond
	// helloPatience is for how long Firestore is asked what a drone must know.
	helloPatience = 30 * time.Second
	// answerExpiry is for how long the broker keeps an answer.
	answerExpiry = time.Minute
)

// connection is one connection to the broker.
type connection struct {
	link    *Link
	client  *paho.Client
	resumed bool   // the broker had kept the session
	largest uint32 // packet that the broker takes; 0 for any
	failed  chan error
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	heard   atomic.Int64 // machine time of the last message, in Unix nanoseconds
}

// connect opens a connection and subscribes.
func (l *Link) connect(ctx context.Context) (*connection, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &connection{link: l, failed: make(chan error, 1)}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.client = paho.NewClient(paho.ClientConfig{
		ClientID: l.cfg.ClientID, Conn: packets.NewThreadSafeConn(conn), PacketTimeout: answerWithin,
		EnableManualAcknowledgment: true, SendAcksInterval: ackEvery,
		OnPublishReceived:  []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) { c.receive(p.Packet); return true, nil }},
		OnServerDisconnect: func(d *paho.Disconnect) { c.fail(disconnected(d)) },
		OnClientError:      c.fail,
	})
	if err := c.login(ctx); err != nil {
		c.cancel()
		return nil, err
	}
	if err := c.subscribe(ctx); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func (l *Link) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if l.cfg.Broker.Scheme != "mqtts" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.cfg.Broker.Host)
		return limited{conn}, err
	}
	conn, err := (&tls.Dialer{Config: l.cfg.TLS}).DialContext(ctx, "tcp", l.cfg.Broker.Host)
	return limited{conn}, err
}

// limited is a connection whose writes end: a broker that is gone without a word would
// otherwise block them, and the pings that find it out.
type limited struct{ net.Conn }

func (c limited) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(answerWithin)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// login sends CONNECT. The session lasts, so that a gateway that was killed gets again what it
// has not acked.
func (c *connection) login(ctx context.Context) error {
	cfg := c.link.cfg
	expiry := uint32(cfg.SessionExpiry.Seconds())
	receive, size := uint16(window), uint32(maxPacket)
	answer, err := c.client.Connect(ctx, &paho.Connect{
		ClientID: cfg.ClientID, KeepAlive: uint16(keepAlive.Seconds()), Username: cfg.User, UsernameFlag: cfg.User != "",
		Password: cfg.Password, PasswordFlag: len(cfg.Password) > 0,
		Properties: &paho.ConnectProperties{SessionExpiryInterval: &expiry, ReceiveMaximum: &receive, MaximumPacketSize: &size, RequestProblemInfo: true},
	})
	switch {
	case answer != nil && answer.ReasonCode >= 0x80:
		return refusedLogin(answer)
	case err != nil:
		return fmt.Errorf("log in: %w", err)
	case answer.Properties != nil && !answer.Properties.SharedSubAvailable:
		c.end()
		return errors.New("the broker has no shared subscriptions; enable them, or use another broker")
	}
	c.resumed = answer.SessionPresent
	if answer.Properties != nil && answer.Properties.MaximumPacketSize != nil {
		c.largest = *answer.Properties.MaximumPacketSize
	}
	return nil
}

// refusedLogin says why the broker refuses the connection, and what to do.
func refusedLogin(a *paho.Connack) error {
	fix := ""
	switch a.ReasonCode {
	case packets.ConnackUnsupportedProtocolVersion:
		fix = "; use a broker that speaks MQTT 5"
	case packets.ConnackInvalidClientID:
		fix = "; give another --client-id"
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized:
		fix = "; check --user and --password-file, or the certificate, and the broker's accounts"
	}
	return fmt.Errorf("the broker refuses the connection: %s%s", (&packets.Connack{ReasonCode: a.ReasonCode}).Reason(), fix)
}

// disconnected says why the broker has ended the connection.
func disconnected(d *paho.Disconnect) error {
	err := fmt.Errorf("the broker ended the connection: %s", (&packets.Disconnect{ReasonCode: d.ReasonCode}).Reason())
	if d.ReasonCode == packets.DisconnectSessionTakenOver {
		return fmt.Errorf("%w; another client has the same id, give each gateway its own --client-id", err)
	}
	return err
}

// subscribe subscribes anew on every connection: a broker may forget sessions.
func (c *connection) subscribe(ctx context.Context) error {
	filters := c.link.filters()
	var wanted paho.Subscribe
	for _, filter := range filters {
		wanted.Subscriptions = append(wanted.Subscriptions, paho.SubscribeOptions{Topic: filter, QoS: 1})
	}
	answer, err := c.client.Subscribe(ctx, &wanted)
	switch {
	case answer == nil:
		return fmt.Errorf("subscribe: %w", err)
	case len(answer.Reasons) != len(filters) || answer.Reasons[0] != 1 || answer.Reasons[1] != 1:
		return fmt.Errorf("the broker refuses the subscriptions %s with QoS 1 (reasons %#v); allow them to the gateway's user", strings.Join(filters, ", "), answer.Reasons)
	case answer.Reasons[2] != 1: // its rules may be older than the topic
		c.link.log.WarnContext(ctx, "lost drones are not noticed: the broker refuses a subscription; allow it to the gateway's user",
			slog.String("topic", filters[2]), slog.Int("reason", int(answer.Reasons[2])))
	}
	return nil
}

// fail ends the connection; the first reason counts.
func (c *connection) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// end closes the connection. The broker keeps the session.
func (c *connection) end() {
	c.disconnect(uint32(c.link.cfg.SessionExpiry.Seconds()))
}

func (c *connection) disconnect(expiry uint32) {
	_ = c.client.Disconnect(&paho.Disconnect{Properties: &paho.DisconnectProperties{SessionExpiryInterval: &expiry}}) // it may be closed
	c.cancel()
}

// leave ends the session for good: the broker sends new reports to other gateways, and forgets
// this one once it has sent what it kept.
func (c *connection) leave(ctx context.Context) error {
	if _, err := c.client.Unsubscribe(ctx, &paho.Unsubscribe{Topics: c.link.filters()}); err != nil {
		return fmt.Errorf("unsubscribe: %w", err)
	}
	c.listen()
	if err := c.drained(ctx); err != nil {
		return err
	}
	c.disconnect(0)
	return nil
}

// drained waits until the broker sends nothing more and everything is published and acked.
func (c *connection) drained(ctx context.Context) error {
	ticker := time.NewTicker(quiet / 10)
	defer ticker.Stop()
	for done := false; !done; {
		done = len(c.link.onTheWay) == 0 && time.Since(time.Unix(0, c.heard.Load())) >= quiet
		select {
		case <-ticker.C: // once more when done: acks are sent every ackEvery
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d reports are not published: %w", len(c.link.onTheWay), ctx.Err())
		}
	}
	return nil
}

// listen notes that the broker has sent something.
func (c *connection) listen() { c.heard.Store(time.Now().UnixNano()) }

// receive takes a message. It is called for one after the other and must not wait for long.
func (c *connection) receive(p *paho.Publish) {
	c.listen()
	drone, kind, ok := readTopic(p.Topic)
	switch {
	case ok && kind == telemetryTopic:
		c.report(p, drone)
	case ok && kind == helloTopic:
		c.hello(p, drone)
	case ok && kind == linkTopic:
		c.linked(p, drone)
	default: // of an earlier session's subscriptions
		c.ack(p)
	}
}

func (c *connection) ack(p *paho.Publish) { _ = c.client.Ack(p) } // a lost connection has forgotten it

// report publishes a report and acks it once Pub/Sub has it.
func (c *connection) report(p *paho.Publish, drone domain.DroneID) {
	now := c.link.clock.Now()
	if !c.link.usage.report(drone, now, timeOf(p, now)) {
		c.link.meter.SlowedDown.Inc()
		c.ack(p)
		c.refuse(p, drone, &dronelink.Refusal{Reason: dronelink.SlowDown, RetryAfter: usagePeriod,
			Text: fmt.Sprintf("more than %d reports a minute; the gateway drops the others", maxReports)})
		return
	}
	if !c.link.admit(p.QoS > 0) {
		if p.QoS == 0 {
			c.link.meter.Dropped.Inc()
		}
		return
	}
	r := dronelink.Report{Data: p.Payload, ContentType: p.Properties.ContentType}
	receipt, err := c.link.fleet.Publish(c.link.life, drone, r)
	if err != nil {
		c.link.release()
		c.reject(p, drone, err)
		return
	}
	c.link.work.Go(func() {
		defer c.link.release()
		if c.untilPublished(drone, r, receipt) {
			c.link.meter.Published.Inc()
			c.ack(p)
		}
	})
}

// timeOf is when a report was made; now if it cannot be read.
func timeOf(p *paho.Publish, now time.Time) time.Time {
	t, err := wire.DecodeTelemetry(p.Payload, map[string]string{wire.AttrContentType: p.Properties.ContentType})
	if err != nil {
		return now
	}
	return t.Timestamp
}

// untilPublished waits until Pub/Sub has a report. While it does not answer, it tries again, even
// after the end of the connection: a broker that was killed may have forgotten the report, and
// one that was not sends it again. It returns false if the gateway stops.
func (c *connection) untilPublished(drone domain.DroneID, r dronelink.Report, receipt dronelink.Receipt) bool {
	ctx := c.link.life
	err := receipt.Wait(ctx)
	if err == nil {
		return true
	}
	c.link.complain(ctx, err)
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	err = backoff.Retry(func() error {
		receipt, err := c.link.fleet.Publish(ctx, drone, r)
		if err != nil {
			return err
		}
		return receipt.Wait(ctx)
	}, backoff.WithContext(pauses, ctx))
	return err == nil
}

// reject answers a report or hello that is not taken. If the gateway stops, the broker keeps it.
func (c *connection) reject(p *paho.Publish, drone domain.DroneID, err error) {
	refused, is := errors.AsType[*dronelink.Refusal](err)
	if !is {
		return
	}
	c.link.meter.Refused.Inc()
	c.ack(p)
	c.refuse(p, drone, refused)
}

// hello tells a drone what it must know. The answer can take long and holds back no ack: acks
// go out in order.
func (c *connection) hello(p *paho.Publish, drone domain.DroneID) {
	hello, err := dronelink.ReadHello(p.Payload, p.Properties.ContentType)
	if err == nil && hello.Drone != drone {
		err = &dronelink.Refusal{Reason: dronelink.IdentityMismatch,
			Text: fmt.Sprintf("hello: drone_id is %.128q, but the topic is that of %q; say hello on the topic of the drone", hello.Drone, drone)}
	}
	if err != nil {
		c.reject(p, drone, err)
		return
	}
	c.ack(p)
	if !c.link.usage.answer(drone, c.link.clock.Now()) {
		c.link.meter.SlowedDown.Inc()
		return
	}
	c.link.work.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, helloPatience)
		defer cancel()
		messages, err := backoff.RetryWithData(func() ([]dronelink.Message, error) { return c.link.fleet.Resume(ctx, hello) },
			backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
		if err != nil {
			c.link.log.WarnContext(c.ctx, "hello of a drone not answered: its mission cannot be read", slog.String("drone_id", string(drone)), slog.Any("err", err))
			messages = []dronelink.Message{{Refusal: &dronelink.Refusal{Reason: dronelink.Unavailable, RetryAfter: usagePeriod / maxAnswers,
				Text: "the mission cannot be read now; say hello again"}}}
		}
		for _, m := range messages {
			c.tell(p, drone, m)
		}
	})
}

// linked passes on what a drone, or the broker by the drone's will, says of its connection.
func (c *connection) linked(p *paho.Publish, drone domain.DroneID) {
	c.ack(p)
	now := c.link.clock.Now()
	if !c.link.usage.answer(drone, now) {
		c.link.meter.SlowedDown.Inc()
		return
	}
	s, err := wire.DecodeLinkState(p.Payload, map[string]string{wire.AttrContentType: p.Properties.ContentType})
	var refused *dronelink.Refusal
	switch {
	case err != nil:
		refused = &dronelink.Refusal{Reason: dronelink.Invalid, Text: err.Error()}
	case s.DroneID != drone:
		refused = &dronelink.Refusal{Reason: dronelink.IdentityMismatch,
			Text: fmt.Sprintf("link state: drone_id is %.128q, but the topic is that of %q; use the topic of the drone", s.DroneID, drone)}
	case s.Status == domain.LinkRestored:
		refused = &dronelink.Refusal{Reason: dronelink.Invalid, Text: "link state: status is RESTORED, which gateways find out; give OPENED or LOST"}
	default:
		s.At = now // a will is older than the loss
		c.link.fleet.Linked(s)
		return
	}
	c.link.meter.Refused.Inc()
	c.refuse(p, drone, refused)
}

// refuse answers what is not taken, unless the drone has had many answers.
func (c *connection) refuse(p *paho.Publish, drone domain.DroneID, r *dronelink.Refusal) {
	if !c.link.usage.answer(drone, c.link.clock.Now()) {
		return
	}
	c.link.log.InfoContext(c.ctx, "refused a message over MQTT", slog.String("topic", p.Topic), slog.String("reason", string(r.Reason)), slog.String("text", r.Text))
	told := *r
	told.Final = false // there is no session
	c.link.work.Go(func() { c.tell(p, drone, dronelink.Message{Refusal: &told}) })
}

// tell sends a drone an answer to p.
func (c *connection) tell(p *paho.Publish, drone domain.DroneID, m dronelink.Message) {
	out, err := c.answer(drone, m)
	if err == nil {
		out.correlation = p.Properties.CorrelationData
		err = c.publish(c.ctx, out)
	}
	if err != nil && c.ctx.Err() == nil {
		c.link.log.WarnContext(c.ctx, "answer not sent; the drone will ask again", slog.String("drone_id", string(drone)), slog.Any("err", err))
	}
}

// answer is the message of an answer. A command goes where commands go.
func (c *connection) answer(drone domain.DroneID, m dronelink.Message) (outgoing, error) {
	if m.Command != nil {
		return c.link.command(*m.Command, c.link.clock.Now())
	}
	topic, err := topicOf(drone, answersTopic)
	if err != nil {
		return outgoing{}, err
	}
	data, contentType, err := dronelink.WriteMessage(m, c.link.cfg.Format)
	return outgoing{topic: topic, data: data, contentType: contentType, expiry: answerExpiry}, err
}

// outgoing is a message for a drone.
type outgoing struct {
	topic, contentType string
	data, correlation  []byte
	expiry             time.Duration
}

// neverError says that the broker will never take a message.
type neverError struct{ text string }

func (e *neverError) Error() string { return e.text }

// publish returns nil once the broker has the message. It is not retained: a drone that comes
// back asks, since a retained command may be one that was revoked.
func (c *connection) publish(ctx context.Context, m outgoing) error {
	seconds := uint32(m.expiry.Round(time.Second).Seconds())
	properties := &paho.PublishProperties{ContentType: m.contentType, MessageExpiry: &seconds, CorrelationData: m.correlation}
	if m.contentType == wire.JSON.ContentType() {
		text := byte(1)
		properties.PayloadFormat = &text
	}
	p := &paho.Publish{QoS: 1, Topic: m.topic, Payload: m.data, Properties: properties}
	if size := packetSize(p); c.largest > 0 && size > int64(c.largest) {
		return &neverError{fmt.Sprintf("the message has %d bytes and the broker takes %d; raise its largest packet size", size, c.largest)}
	}
	answer, err := c.client.Publish(ctx, p)
	switch {
	case answer != nil && answer.ReasonCode >= 0x80:
		return fmt.Errorf("the broker refuses %s: %s", m.topic, (&packets.Puback{ReasonCode: answer.ReasonCode}).Reason())
	case err != nil:
		return err
	case answer.ReasonCode == packets.PubackNoMatchingSubscribers:
		c.link.meter.Unheard.Inc()
	}
	return nil
}

// packetSize is the size of a message as it is sent.
func packetSize(p *paho.Publish) int64 {
	var b bytes.Buffer
	n, _ := p.Packet().WriteTo(&b) // a buffer takes everything
	return n
}
