package mqttlink_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// fleet is a broker, set up as the documents say, and a gateway's core on embedded servers.
type fleet struct {
	broker  *storeserver.Server
	clients *connect.Clients
	core    *gateway.Brokered
	meter   *meter.Meter
}

const password = "secret-of-a-test"

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{broker: newBroker(t), clients: emutest.Clients(t), meter: meter.New()}
	if err := pubsubio.Ensure(t.Context(), f.clients.PubSub); err != nil {
		t.Fatal(err)
	}
	publisher := pubsubio.NewPublisher(f.clients.PubSub)
	t.Cleanup(publisher.Stop)
	f.core = gateway.NewBrokered(gateway.New(publisher, firestoretx.New(f.clients.Firestore, firestoretx.Config{}), simclock.Real(), gateway.Config{}, emutest.Log(t)))
	return f
}

// newBroker runs Mosquitto with the files of deploy/mqtt, and users whose password is password.
func newBroker(t *testing.T) *storeserver.Server {
	t.Helper()
	for _, program := range []string{"mosquitto_passwd", "mosquitto_pub"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed; install the packages mosquitto and mosquitto-clients", program)
		}
	}
	settings, err := os.ReadFile("../../deploy/mqtt/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	acl, err := filepath.Abs("../../deploy/mqtt/acl")
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users")
	var lines []string
	for _, user := range []string{"gateway", "D-1", "D-2"} {
		lines = append(lines, user+":"+password)
	}
	if err := os.WriteFile(users, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mosquitto_passwd", "-U", users).CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_passwd: %v\n%s", err, out)
	}
	return storeserver.Mosquitto(t, string(settings), "acl_file "+acl, "password_file "+users)
}

// newLink is a link that Run connects.
func (f *fleet) newLink(t *testing.T, cfg mqttlink.Config, core mqttlink.Fleet) *mqttlink.Link {
	t.Helper()
	var err error
	if cfg.Broker, err = url.Parse(f.broker.URL); err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.ClientID = cmp.Or(cfg.User, "gateway"), cmp.Or(cfg.ClientID, "gateway-1")
	cfg.Password = []byte(cmp.Or(string(cfg.Password), password))
	return mqttlink.New(cfg, core, simclock.Real(), emutest.Log(t), f.meter)
}

// link connects a link, until stop is called or the test ends.
func (f *fleet) link(t *testing.T, cfg mqttlink.Config, core mqttlink.Fleet) (l *mqttlink.Link, stop func()) {
	t.Helper()
	l = f.newLink(t, cfg, core)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	emutest.Eventually(t, "connected", l.Ready)
	return l, stop
}

// mosquitto runs mosquitto_pub or mosquitto_sub as a user.
func (f *fleet) mosquitto(t *testing.T, program, user string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), program, append([]string{"-V", "5", "-p", fmt.Sprint(f.broker.Port), "-u", user, "-P", password, "-q", "1"}, args...)...)
}

// send publishes a payload on a topic of a drone, as the drone.
func (f *fleet) send(t *testing.T, user, drone, kind, payload string, args ...string) {
	t.Helper()
	cmd := f.mosquitto(t, "mosquitto_pub", user, append([]string{"-t", "fleet/" + drone + "/" + kind, "-s"}, args...)...)
	cmd.Stdin = strings.NewReader(payload)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_pub: %v\n%s", err, out)
	}
}

// hears returns what a drone is sent on a topic, line by line, while it listens.
func (f *fleet) hears(t *testing.T, user, drone, kind string, args ...string) func() []string {
	t.Helper()
	cmd := f.mosquitto(t, "mosquitto_sub", user, append([]string{"-t", "fleet/" + drone + "/" + kind, "-t", "started/" + drone}, args...)...)
	var heard output
	cmd.Stdout = &heard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return heard.lines
}

type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(strings.TrimSpace(o.text.String()), "\n")
}

// answered sends a payload until an answer with the texts comes.
func (f *fleet) answered(t *testing.T, heard func() []string, send func(), texts ...string) {
	t.Helper()
	var sent time.Time
	emutest.Eventually(t, "answer", func() error {
		if time.Since(sent) > 500*time.Millisecond { // the subscriber may not have been there
			sent = time.Now()
			send()
		}
		all := strings.Join(heard(), "\n")
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return fmt.Errorf("no %q in:\n%s", text, all)
			}
		}
		return nil
	})
}

// published collects the messages of topic telemetry.
func (f *fleet) published(t *testing.T) func() []*pubsub.Message {
	t.Helper()
	var mu sync.Mutex
	var list []*pubsub.Message
	if err := pubsubio.EnsureSubscription(t.Context(), f.clients.PubSub, "test", pubsubio.TopicTelemetry, true); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = f.clients.PubSub.Subscriber("test").Receive(t.Context(), func(_ context.Context, m *pubsub.Message) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, m)
			m.Ack()
		})
	}()
	return func() []*pubsub.Message {
		mu.Lock()
		defer mu.Unlock()
		return append([]*pubsub.Message(nil), list...)
	}
}

// count waits until reports with want different times have been published.
func count(t *testing.T, published func() []*pubsub.Message, want int) {
	t.Helper()
	emutest.Eventually(t, "reports", func() error {
		times := map[time.Time]bool{}
		for _, m := range published() {
			r, err := wire.DecodeTelemetry(m.Data, m.Attributes)
			if err != nil {
				t.Fatal(err)
			}
			times[r.Timestamp] = true
		}
		if len(times) != want {
			return fmt.Errorf("%d of %d", len(times), want)
		}
		return nil
	})
}

var begin = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

func telemetry(drone string, n int) domain.Telemetry {
	return domain.Telemetry{DroneID: domain.DroneID(drone), Timestamp: begin.Add(time.Duration(n) * time.Second), Position: domain.Position{Lat: 48.85, Lon: 2.35},
		Battery: 90, Status: domain.DroneIdle}
}

func encoded(t *testing.T, drone string, n int, f wire.Format) string {
	t.Helper()
	data, _, err := wire.EncodeTelemetry(telemetry(drone, n), f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// F-GW-06: a report of a drone behind a broker reaches the topic with the drone's name as
// sender and ordering key, in either form; what is wrong is answered and published by nobody.
func TestLink_PublishesWhatADroneReports(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.link(t, mqttlink.Config{}, f.core)
	published := f.published(t)
	heard := f.hears(t, "D-1", "D-1", "answers", "-F", "%C %D %p")

	for name, c := range map[string]struct {
		kind, payload string
		args, answer  []string
	}{
		"another drone's report": {"telemetry", encoded(t, "D-2", 1, wire.JSON), nil, []string{"IDENTITY_MISMATCH", `drone_id is \"D-2\"`}},
		"not JSON":               {"telemetry", `{"droneId":`, []string{"-D", "publish", "content-type", "application/json"}, []string{"UNDECODABLE"}},
		"not UTF-8":              {"telemetry", "{\"droneId\": \"\xff\"}", nil, []string{"UNDECODABLE", "UTF-8"}},
		"too deep":               {"telemetry", strings.Repeat(`{"position":`, 1000), nil, []string{"UNDECODABLE"}},
		"a field":                {"telemetry", `{"droneId":"D-1","baterryPercentage":90}`, nil, []string{"INVALID", "battery_percentage"}},
		"content type":           {"telemetry", encoded(t, "D-1", 1, wire.JSON), []string{"-D", "publish", "content-type", "text/html"}, []string{"text/html"}},
		"too large":              {"telemetry", encoded(t, "D-1", 1, wire.JSON) + strings.Repeat(" ", 17<<10), nil, []string{"INVALID", "bytes; send at most 16384"}},
		"another drone's hello":  {"hello", `{"droneId":"D-2"}`, nil, []string{"IDENTITY_MISMATCH", "say hello"}},
		"another drone's will":   {"link", `{"droneId":"D-2","sessionId":"1","status":"LOST","time":"2026-11-27T10:00:00Z"}`, nil, []string{"IDENTITY_MISMATCH", "link state"}},
		"a will without a time":  {"link", `{"droneId":"D-1","sessionId":"1","status":"LOST"}`, nil, []string{"INVALID", "time"}},
		"a restored link":        {"link", `{"droneId":"D-1","sessionId":"1","status":"RESTORED","time":"2026-11-27T10:00:00Z"}`, nil, []string{"INVALID", "OPENED or LOST"}},
		"a hello":                {"hello", `{"droneId":"D-1"}`, []string{"-D", "publish", "correlation-data", "hello-7"}, []string{"hello-7", "DRONE_UNREGISTERED", `"resume":{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			f.answered(t, heard, func() { f.send(t, "D-1", "D-1", c.kind, c.payload, c.args...) }, c.answer...)
		})
	}
	// The broker drops what is far too large, and lets go on.
	f.send(t, "D-1", "D-1", "telemetry", strings.Repeat("x", 200<<10))
	if n := len(published()); n != 0 {
		t.Fatalf("%d messages were published", n)
	}

	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 1, wire.JSON))
	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 2, wire.Protobuf), "-D", "publish", "content-type", "application/protobuf")
	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 3, wire.JSON), "-q", "0")
	count(t, published, 3)
	for i, m := range published() {
		if m.Attributes[wire.AttrSender] != "D-1" || m.OrderingKey == "" || m.OrderingKey != published()[0].OrderingKey {
			t.Errorf("message %d: key %q, attributes %v", i, m.OrderingKey, m.Attributes)
		}
	}
	// With the broker's rules of deploy/mqtt, a drone has only its own topics.
	f.send(t, "D-2", "D-1", "telemetry", encoded(t, "D-1", 4, wire.JSON))
	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 5, wire.JSON))
	count(t, published, 4)
	if m := &f.meter.MQTT; m.Published.Value() != 4 || m.Refused.Value() < 8 {
		t.Errorf("%d published, %d refused", m.Published.Value(), m.Refused.Value())
	}
}

// gated holds reports back until it is opened. It stands for a Pub/Sub that does not answer.
type gated struct {
	mqttlink.Fleet
	open  chan struct{}
	taken atomic.Int64
}

type gatedReceipt struct {
	dronelink.Receipt
	open chan struct{}
}

func (g *gated) Publish(ctx context.Context, who domain.DroneID, r dronelink.Report) (dronelink.Receipt, error) {
	receipt, err := g.Fleet.Publish(ctx, who, r)
	g.taken.Add(1)
	return gatedReceipt{receipt, g.open}, err
}

func (r gatedReceipt) Wait(ctx context.Context) error {
	if err := r.Receipt.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-r.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// F-GW-06: the broker keeps a report until Pub/Sub has it. A gateway that ends before, or is
// killed, gets it again; one that ends in good order leaves nothing behind.
func TestLink_AcksOnlyWhatPubSubHas(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := f.published(t)
	shut := &gated{Fleet: f.core, open: make(chan struct{})}
	_, stop := f.link(t, mqttlink.Config{Drain: time.Second}, shut)
	for n := range 3 {
		f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", n, wire.JSON))
	}
	emutest.Eventually(t, "reports at the gateway", func() error {
		if n := shut.taken.Load(); n != 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	before := len(published())
	stop()
	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 3, wire.JSON)) // waits in the broker
	_, stop = f.link(t, mqttlink.Config{}, f.core)
	count(t, published, 4)
	emutest.Eventually(t, "the three again", func() error {
		if n := len(published()); n < before+4 {
			return fmt.Errorf("%d messages, %d before", n, before)
		}
		return nil
	})
	stop()
	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 4, wire.JSON))
	if err := f.newLink(t, mqttlink.Config{}, f.core).Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	count(t, published, 5)
	all := f.meter.MQTT.Published.Value()
	f.link(t, mqttlink.Config{}, f.core)
	f.send(t, "D-1", "D-1", "telemetry", encoded(t, "D-1", 5, wire.JSON))
	count(t, published, 6)
	if again := f.meter.MQTT.Published.Value() - all - 1; again != 0 {
		t.Errorf("the broker repeated %d reports that were acked", again)
	}
}

// F-GW-06: gateways share the reports. A broker that is killed while they are connected, or is
// restarted while one is away, lose none that the broker acked.
func TestLink_SurvivesTheBroker(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	published := f.published(t)
	away, stop := f.link(t, mqttlink.Config{ClientID: "gateway-1"}, f.core)
	stays, _ := f.link(t, mqttlink.Config{ClientID: "gateway-2"}, f.core)
	again := func(end func()) {
		end()
		emutest.Eventually(t, "noticed", func() error { // before it can be connected again
			if stays.Ready() == nil {
				return errors.New("still connected")
			}
			return nil
		})
		f.broker.Restart()
	}
	acked := map[int]bool{}
	sent := 0
	send := func() {
		for range 8 {
			cmd := f.mosquitto(t, "mosquitto_pub", "D-1", "-d", "-t", "fleet/D-1/telemetry", "-m", encoded(t, "D-1", sent, wire.JSON))
			out, err := cmd.CombinedOutput()
			acked[sent] = err == nil && strings.Contains(string(out), "RC:0") // 16 says that no gateway is there
			sent++
		}
	}
	for range longtest.Size(t, "kills of the broker", 1, 6) {
		emutest.Eventually(t, "connected", func() error { return errors.Join(stays.Ready(), away.Ready()) })
		var ending sync.WaitGroup
		ending.Go(send)
		again(f.broker.Kill) // in the middle
		ending.Wait()
		send()
		emutest.Eventually(t, "connected", away.Ready)
		stop()
		send() // for the one that is away, too
		again(f.broker.Stop)
		away, stop = f.link(t, mqttlink.Config{ClientID: "gateway-1"}, f.core)
	}
	send()
	emutest.Eventually(t, "all that was acked", func() error {
		arrived := map[time.Time]bool{}
		for _, m := range published() {
			if r, err := wire.DecodeTelemetry(m.Data, m.Attributes); err == nil {
				arrived[r.Timestamp] = true
			}
		}
		for n, yes := range acked {
			if yes && !arrived[begin.Add(time.Duration(n)*time.Second)] {
				return fmt.Errorf("report %d of %d is missing", n, len(acked))
			}
		}
		if len(arrived) < len(acked)/3 {
			return fmt.Errorf("only %d of %d arrived", len(arrived), len(acked))
		}
		return nil
	})
}

// F-GW-06: a drone that sends far too much is told to slow down, and no other one waits. What an
// outage has held back is taken, however much it is.
func TestLink_HoldsBackADroneThatSendsTooMuch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.link(t, mqttlink.Config{}, f.core)
	heard := f.hears(t, "D-1", "D-1", "answers", "-F", "%p")
	f.answered(t, heard, func() { f.send(t, "D-1", "D-1", "hello", `{"droneId":"D-1"}`) }, `"resume":{}`)
	lines := func(drone string, from time.Time, n int) string {
		var text strings.Builder
		for i := range n {
			r := telemetry(drone, 0)
			r.Timestamp = from.Add(time.Duration(i) * time.Millisecond)
			data, _, err := wire.EncodeTelemetry(r, wire.JSON)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(data, '\n'))
		}
		return text.String()
	}
	flood := f.mosquitto(t, "mosquitto_pub", "D-1", "-t", "fleet/D-1/telemetry", "-l")
	flood.Stdin = strings.NewReader(lines("D-1", time.Now(), 2000))
	late := f.mosquitto(t, "mosquitto_pub", "D-2", "-t", "fleet/D-2/telemetry", "-l")
	late.Stdin = strings.NewReader(lines("D-2", begin.Add(-24*time.Hour), 1000))
	for _, cmd := range []*exec.Cmd{flood, late} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_pub: %v\n%s", err, out)
		}
	}
	emutest.Eventually(t, "all of one and the allowance of the other", func() error {
		if taken, held := f.meter.MQTT.Published.Value(), f.meter.MQTT.SlowedDown.Value(); taken < 1600 || held == 0 || taken+held != 3000 {
			return fmt.Errorf("%d published, %d held back", taken, held)
		}
		return nil
	})
	f.answered(t, heard, func() {}, "SLOW_DOWN", "600 reports a minute")
}

// F-GW-06: a command goes to its drone's topic with the rest of its life, and waits in the
// broker for a drone that is away.
func TestLink_SendsCommands(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	l, stop := f.link(t, mqttlink.Config{}, f.core)
	if err := pubsubio.EnsureSubscription(t.Context(), f.clients.PubSub, pubsubio.MissionsMQTT, pubsubio.TopicMissions, true); err != nil {
		t.Fatal(err)
	}
	go pubsubio.TakeCommands(t.Context(), f.clients.PubSub, pubsubio.MissionsMQTT, emutest.Log(t), l.Command)
	publisher := pubsubio.NewPublisher(f.clients.PubSub)
	t.Cleanup(publisher.Stop)
	command := func(drone, mission string, expires time.Time, revoke bool) {
		c := domain.Command{Mission: domain.Mission{ID: domain.MissionID(mission), DroneID: domain.DroneID(drone), Status: domain.MissionActive}, ExpiresAt: expires, Revoke: revoke}
		data, attrs, err := wire.EncodeCommand(c, wire.Protobuf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := publisher.Publish(t.Context(), pubsubio.TopicMissions, data, attrs, drone).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// A session that lasts while the drone is away.
	session := []string{"-i", "D-1", "-c", "-x", "600", "-F", "%E %C %p"}
	if out, err := f.mosquitto(t, "mosquitto_sub", "D-1", append([]string{"-t", "fleet/D-1/missions", "-E"}, session...)...).CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_sub: %v\n%s", err, out)
	}
	for id, life := range map[string]time.Duration{"M-1": time.Minute, "M-late": -time.Minute} {
		command("D-1", id, time.Now().Add(life), false)
	}
	command("D-1", "M-1", time.Time{}, true)
	command("D+2", "M-2", time.Now().Add(time.Minute), false) // cannot be a topic, and stops nothing
	emutest.Eventually(t, "three commands at the broker", func() error {
		if n := f.meter.MQTT.Sent.Value(); n != 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	stop()
	heard := f.hears(t, "D-1", "D-1", "missions", session...)
	var got []string
	emutest.Eventually(t, "command and revocation", func() error {
		got = slices.DeleteFunc(heard(), func(line string) bool { return line == "" || strings.Contains(line, `"M-late"`) }) // which the broker may drop
		if len(got) < 2 {
			return fmt.Errorf("%d of 2: %q", len(got), got)
		}
		return nil
	})
	var expiry int
	var kind, payload string
	for i, want := range []struct {
		least, most int
		revoke      bool
	}{{50, 60, false}, {3500, 3600, true}} {
		if n, err := fmt.Sscanf(got[i], "%d %s %s", &expiry, &kind, &payload); n != 3 {
			t.Fatalf("%q: %v", got[i], err)
		}
		c, err := wire.DecodeCommand([]byte(payload), map[string]string{wire.AttrContentType: kind})
		if err != nil || c.Mission.ID != "M-1" || c.Revoke != want.revoke || expiry < want.least || expiry > want.most || !json.Valid([]byte(payload)) {
			t.Errorf("%q: %+v, %v", got[i], c, err)
		}
	}
}

// F-GW-06: what is wrong with the broker is said, with the fix.
func TestLink_SaysWhatIsWrongWithTheBroker(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	simple := storeserver.Mosquitto(t, "max_qos 0", "allow_anonymous true")
	for name, c := range map[string]struct {
		password, url, want string
	}{
		"password": {"wrong", f.broker.URL, "check --user and --password-file"},
		"QoS":      {password, simple.URL, "with QoS 1"},
		"nobody":   {password, "mqtt://127.0.0.1:1", "refused"},
		"no TLS":   {password, strings.Replace(f.broker.URL, "mqtt:", "mqtts:", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			broker, err := url.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			l := mqttlink.New(mqttlink.Config{Broker: broker, User: "gateway", Password: []byte(c.password), ClientID: "gateway-1"}, f.core, simclock.Real(), emutest.Log(t), meter.New())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go l.Run(ctx)
			emutest.Eventually(t, "outage", func() error {
				if err := l.Ready(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "not connected yet") {
					return fmt.Errorf("%w, want %q", errors.Join(err), c.want)
				}
				return nil
			})
		})
	}
}
