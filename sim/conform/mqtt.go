package conform

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// MQTT is a Line over an MQTT broker. It stands where a gateway stands.
type MQTT struct {
	*droneTime
	id       domain.DroneID
	link     *mqttlink.Link
	stop     context.CancelFunc
	running  sync.WaitGroup
	messages chan Message

	mu      sync.Mutex
	mission *domain.Mission
	reached int
}

// OpenMQTT connects with a drone over a broker; speed is that of the drone's time. Of cfg it takes
// the broker and how to log in. Close ends it.
func OpenMQTT(ctx context.Context, cfg mqttlink.Config, id domain.DroneID, speed float64, log *slog.Logger) (*MQTT, error) {
	m := &MQTT{droneTime: newDroneTime(id, speed), id: id, messages: make(chan Message, messageQueue)}
	// A group of its own, so that gateways of the same broker get their reports, too; and a session
	// that the broker does not keep.
	cfg.ClientID, cfg.Group, cfg.SessionExpiry, cfg.Drain = "conform-"+rand.Text(), "conform", time.Second, time.Second
	m.link = mqttlink.New(cfg, m, m, log, meter.New())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.running.Go(func() { m.link.Run(running) })
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := m.link.Ready()
		if err == nil {
			return m, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if !errors.Is(err, mqttlink.ErrNotYet) {
			m.Close()
			return nil, err
		}
	}
}

// Close ends the connection.
func (m *MQTT) Close() {
	m.stop()
	m.running.Wait()
}

// Publish implements mqttlink.Fleet.
func (m *MQTT) Publish(ctx context.Context, who domain.DroneID, r dronelink.Report) (dronelink.Receipt, error) {
	if who != m.id {
		return taken{}, nil
	}
	attrs := map[string]string{wire.AttrSender: string(who)}
	if r.ContentType != "" {
		attrs[wire.AttrContentType] = r.ContentType
	}
	m.meet(r.Data, attrs)
	select {
	case m.messages <- Message{Data: r.Data, Attributes: attrs, Arrived: m.Now()}:
		return taken{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// taken is the receipt of a report that the examination has.
type taken struct{}

// Wait implements dronelink.Receipt.
func (taken) Wait(context.Context) error { return nil }

// Resume implements mqttlink.Fleet.
func (m *MQTT) Resume(_ context.Context, hello dronelink.Hello) ([]dronelink.Message, error) {
	if hello.Drone != m.id {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return []dronelink.Message{{Resume: &dronelink.Resume{Mission: m.mission, CompletedStops: m.reached}}}, nil
}

// Linked implements mqttlink.Fleet. A drone need not have a will.
func (m *MQTT) Linked(domain.LinkState) {}

// Stand implements Standing.
func (m *MQTT) Stand(mission *domain.Mission, reached int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mission, m.reached = copied(mission), reached
}

// Send implements Line. A command of another drone goes to the topic of that drone, which the
// examined one does not read.
func (m *MQTT) Send(ctx context.Context, c domain.Command) error {
	if c.Mission.DroneID != m.id {
		return nil
	}
	if err := m.link.Command(ctx, c, m.Now()); err != nil {
		return fmt.Errorf("send a command to the broker: %w", err)
	}
	return nil
}

// Next implements Line.
func (m *MQTT) Next(ctx context.Context) (Message, bool, error) {
	return m.next(ctx, m.messages)
}
