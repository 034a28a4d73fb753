package meter

import "sync/atomic"

// MQTT counts what passes between a gateway and a broker.
type MQTT struct {
	Published  Counter // reports that Pub/Sub has
	Refused    Counter // reports and hellos that are invalid or of another drone
	SlowedDown Counter // reports beyond a drone's allowance
	Dropped    Counter // reports without acks that came while too many were on their way
	Sent       Counter // commands that the broker has taken
	Unheard    Counter // those of them that nobody had subscribed to
	Failed     Counter // attempts to send a command; each is repeated

	connected atomic.Bool
}

// SetConnected says whether the broker sends reports.
func (m *MQTT) SetConnected(is bool) { m.connected.Store(is) }

func (m *MQTT) collect(c collector) {
	c.count(mqttReportsTotal, m.Published.Value(), "published")
	c.count(mqttReportsTotal, m.Refused.Value(), "refused")
	c.count(mqttReportsTotal, m.SlowedDown.Value(), "slowed_down")
	c.count(mqttReportsTotal, m.Dropped.Value(), "dropped")
	c.count(mqttCommandsTotal, m.Sent.Value(), "sent")
	c.count(mqttCommandsTotal, m.Unheard.Value(), "unheard")
	c.count(mqttCommandsTotal, m.Failed.Value(), "failed")
	connected := 0.0
	if m.connected.Load() {
		connected = 1
	}
	c.value(mqttConnected, connected)
}
