package conform_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/paho"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
	"github.com/dronefleet/dronefleet/sim/conform"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// F-KIT-01, F-GW-06: over an MQTT broker; a drone that has forgotten its mission gets it back when it
// says hello.
func TestMQTT_ExaminesADrone(t *testing.T) {
	t.Parallel()
	broker := storeserver.Mosquitto(t, "allow_anonymous true", "max_inflight_messages 0", "max_queued_messages 0")
	at, err := url.Parse(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	line, err := conform.OpenMQTT(t.Context(), mqttlink.Config{Broker: at}, maker, speed, emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram()
	var client *paho.Client
	publish := func(topic string, data []byte) error {
		_, err := client.Publish(t.Context(), &paho.Publish{
			QoS: 1, Topic: "fleet/" + string(maker) + "/" + topic, Payload: data, Properties: &paho.PublishProperties{ContentType: wire.JSON.ContentType()},
		})
		return err
	}
	p.restart = func() (err error) {
		if client != nil {
			if err := client.Disconnect(&paho.Disconnect{}); err != nil {
				return err
			}
		}
		if client, err = p.connect(t.Context(), broker.Addr()); err != nil {
			return err
		}
		if err := publish("hello", []byte(`{"droneId": "`+string(maker)+`"}`)); err != nil {
			return err
		}
		select { // it reports nothing before it knows whether it has a mission
		case <-p.answered:
			return nil
		case <-t.Context().Done():
			return t.Context().Err()
		}
	}
	p.report = func(t domain.Telemetry) error {
		data, _, err := wire.EncodeTelemetry(t, wire.JSON)
		if err != nil {
			return err
		}
		return publish("telemetry", data)
	}
	if err := p.restart(); err != nil {
		t.Fatal(err)
	}
	examined(t, p, line, conform.DroneConfig{OwnOnly: true}, 2)
	line.Close()
}

// connect connects to a broker and takes what comes as commands.
func (p *program) connect(ctx context.Context, addr string) (*paho.Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	client := paho.NewClient(paho.ClientConfig{Conn: conn, OnPublishReceived: []func(paho.PublishReceived) (bool, error){
		func(r paho.PublishReceived) (bool, error) {
			if strings.HasSuffix(r.Packet.Topic, "/answers") {
				var m pb.GatewayMessage
				err := protojson.Unmarshal(r.Packet.Payload, &m)
				p.take(&m)
				p.answered <- struct{}{}
				return true, err
			}
			c, err := wire.DecodeCommand(r.Packet.Payload, map[string]string{wire.AttrContentType: r.Packet.Properties.ContentType})
			if err == nil {
				p.commands <- c
			}
			return true, err
		},
	}})
	if _, err := client.Connect(ctx, &paho.Connect{ClientID: string(maker), KeepAlive: 30, CleanStart: true}); err != nil {
		return nil, err
	}
	topics := []paho.SubscribeOptions{{Topic: "fleet/" + string(maker) + "/missions", QoS: 1}, {Topic: "fleet/" + string(maker) + "/answers", QoS: 1}}
	_, err = client.Subscribe(ctx, &paho.Subscribe{Subscriptions: topics})
	return client, err
}

// F-KIT-01: a broker that is not there is an error.
func TestMQTT_SaysThatThereIsNoBroker(t *testing.T) {
	t.Parallel()
	nobody := &url.URL{Scheme: "mqtt", Host: "127.0.0.1:1"}
	if _, err := conform.OpenMQTT(t.Context(), mqttlink.Config{Broker: nobody}, maker, 1, emutest.Log(t)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("an examination without a broker: %v", err)
	}
}
