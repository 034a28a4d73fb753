package devrun

import (
	"context"
	"crypto/tls"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/linksim"
)

// GatewayDrill has the simulated drones fly over gateways, which are killed. The zero value
// lets them publish themselves.
type GatewayDrill struct {
	Gateways int
	// Kills is how often at least a gateway is killed and replaced, and a drone restarts: whenever
	// half as many reports were acked as there are drones, and until a drone that had
	// restarted was told its mission. Done is called then.
	Kills int
	Done  func()
}

// GatewaySummary says what a drill did.
type GatewaySummary struct {
	Killed    int `json:"killed"`    // gateways
	Restarted int `json:"restarted"` // drones
	Resumed   int `json:"resumed"`   // times that a gateway told a drone its mission
	Twice     int `json:"twice"`     // missions that a command made a drone begin a second time
}

// drill is a drill that runs.
type drill struct {
	run   *devRun
	ca    *devca.CA
	links *linksim.Fleet

	mu       sync.Mutex
	gateways []*drilled
	summary  GatewaySummary
}

// drilled is a gateway that may be killed at any moment.
type drilled struct {
	addr string
	kill func()
}

// killPause keeps drones from trying a gateway that was killed too often.
const killPause = 20 * time.Millisecond

// newDrill starts the gateways and makes the drones' links.
func newDrill(run *devRun, drones []domain.Drone) (*drill, error) {
	d := &drill{run: run, links: &linksim.Fleet{Drones: map[domain.DroneID]*linksim.Drone{}}}
	var err error
	if d.ca, err = devca.New(time.Now); err != nil {
		return nil, err
	}
	for range run.cfg.Drill.Gateways {
		g, err := d.start()
		if err != nil {
			return nil, err
		}
		d.gateways = append(d.gateways, g)
	}
	for _, drone := range drones {
		certificate, err := d.ca.Client(droneURI(drone.ID))
		if err != nil {
			return nil, err
		}
		secure := &tls.Config{RootCAs: d.ca.Roots(), Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		d.links.Drones[drone.ID] = linksim.New(linksim.Config{
			Drone: drone.ID, Address: d.address, Pause: killPause, Dial: []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(secure))},
			Command: func(c domain.Command) { run.outside.network.Deliver(c, run.outside.drones.Deliver) },
			Resume:  func(m *domain.Mission, completed int) { d.resume(drone.ID, m, completed) },
		})
	}
	return d, nil
}

func droneURI(id domain.DroneID) string {
	return strings.Replace(strings.TrimPrefix(certificateRule, "uri:"), dronelink.DroneMark, string(id), 1)
}

// address is a gateway, chosen at random.
func (d *drill) address() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gateways[rand.IntN(len(d.gateways))].addr
}

// resume tells a drone what a gateway says.
func (d *drill) resume(id domain.DroneID, m *domain.Mission, completed int) {
	if m != nil {
		d.mu.Lock()
		d.summary.Resumed++
		d.mu.Unlock()
	}
	d.run.outside.drones.Resume(id, m, completed)
}

// start starts a gateway. Killing it cuts its connections, and what it does with Pub/Sub and
// Firestore goes nowhere.
func (d *drill) start() (*drilled, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server, err := d.ca.Server()
	if err != nil {
		return nil, err
	}
	rule, err := dronelink.ParseCertificateRule(certificateRule)
	if err != nil {
		return nil, err
	}
	clients := d.run.outside.clients
	publisher := pubsubio.NewPublisher(clients.PubSub)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: d.run.clock.Now})
	g := gateway.New(publisher, store, d.run.clock, gateway.Config{}, d.run.cfg.Log)
	auth := gateway.Authenticator{Certificates: &dronelink.Certificates{Roots: d.ca.Roots(), Rule: rule}, Now: time.Now}
	s := dronelink.NewServer(g, auth, &tls.Config{Certificates: []tls.Certificate{server}, MinVersion: tls.VersionTLS12}, d.run.cfg.Log)
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	go g.Run(ctx, clients.PubSub, uuid.NewString(), func() { close(ready) })
	go func() {
		select {
		case <-ready:
			_ = s.Serve(listener) // it ends when the gateway is killed
		case <-ctx.Done():
		}
	}()
	return &drilled{addr: listener.Addr().String(), kill: func() {
		cancel()
		_ = listener.Close() // nobody waits for it
		s.Close(ctx)
		go publisher.Stop()
	}}, nil
}

// fly connects the drones and kills gateways until ctx ends.
func (d *drill) fly(ctx context.Context) error {
	var flying sync.WaitGroup
	defer func() {
		flying.Wait()
		for _, g := range d.gateways {
			g.kill()
		}
	}()
	flying.Go(func() { d.links.Run(ctx) })
	ids := slices.Sorted(maps.Keys(d.links.Drones))
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	acked := int64(0) // at the last kill
	for kills := 0; kills < d.run.cfg.Drill.Kills || d.result().Resumed == 0; kills++ {
		for d.run.outside.drones.Stats().Telemetry.Confirmed < acked+int64(len(ids)/2) {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
		acked = d.run.outside.drones.Stats().Telemetry.Confirmed
		if err := d.kill(ids[rand.IntN(len(ids))]); err != nil {
			return err
		}
	}
	if done := d.run.cfg.Drill.Done; done != nil {
		done()
	}
	<-ctx.Done()
	return nil
}

// kill kills a gateway and replaces it, and restarts a drone.
func (d *drill) kill(restart domain.DroneID) error {
	next, err := d.start()
	if err != nil {
		return err
	}
	d.mu.Lock()
	i := rand.IntN(len(d.gateways))
	old := d.gateways[i]
	d.gateways[i] = next
	d.summary.Killed++
	d.summary.Restarted++
	d.mu.Unlock()
	old.kill()
	d.run.outside.drones.Restart(restart)
	d.links.Drones[restart].Restart()
	return nil
}

// linked is the publisher of drones that fly over gateways.
func (d *drill) linked(others fleetsim.Publisher) fleetsim.Publisher {
	d.links.Others = others
	return d.links
}

// result is what the drill did.
func (d *drill) result() *GatewaySummary {
	d.mu.Lock()
	defer d.mu.Unlock()
	result := d.summary
	result.Twice = int(d.run.outside.drones.Stats().BegunAgain)
	return &result
}
