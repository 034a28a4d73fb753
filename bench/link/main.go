// Command link measures the drone link: how long a report takes from a drone through a gateway
// to its commit, how much memory and processor time the gateway takes, and how soon drones learn
// that a mission or an API key was revoked. The gateway is a process of its own; the embedded
// servers, the State Manager and the drones are in this one.
//
//	go run ./bench/link                  # 5,000 drones at 1 Hz, with mutual TLS
//	go run ./bench/link --drones 1000 --duration 20s
//	go run ./bench/link --revoke --drones 200
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/linksim"
)

type command struct {
	Drones   int           `help:"Drones that connect." default:"5000" check:"min 1 max 100000"`
	Hz       float64       `help:"Reports a second of each." default:"1" check:"over 0 max 10"`
	Duration time.Duration `help:"How long they report, once all are connected." default:"30s" check:"over 0s"`
	Revoke   bool          `help:"Measure how soon drones learn that their mission, and then their API key, was revoked, in place of reports."`
	Gateway  string        `help:"Program to measure, such as an older gateway; empty to build that of this source." placeholder:"FILE" type:"path"`
}

func main() {
	cli.Main(&command{}, "Measures the drone link: from a drone to the commit, and memory for each connection.")
}

// Run measures and prints some lines.
func (c *command) Run(ctx context.Context) (err error) {
	firestore, err := firestoreemu.Start(firestoreemu.Options{})
	if err != nil {
		return err
	}
	defer firestore.Close()
	topics, err := pubsubemu.Start(pubsubemu.Options{})
	if err != nil {
		return err
	}
	defer topics.Close()
	clients, err := connect.Open(ctx, connect.Config{FirestoreHost: firestore.Addr(), PubSubHost: topics.Addr()}, meter.New())
	if err != nil {
		return err
	}
	defer clients.Close()
	if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	m, err := manager.New(clients, simclock.Real(), manager.Config{}, log)
	if err != nil {
		return err
	}
	managing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { err = errors.Join(err, m.Run(managing)) })
	defer running.Wait()
	defer stop()
	ca, err := devca.New(time.Now)
	if err != nil {
		return err
	}
	gateway, err := c.startGateway(ca, clients.Config)
	if err != nil {
		return err
	}
	defer gateway.stop()
	if c.Revoke {
		return c.revoke(ctx, ca, gateway, m.Store, clients.Firestore)
	}
	return c.measure(ctx, ca, gateway, clients.Meter)
}

// droneID is the id of a drone, which are numbered from 0.
func droneID(i int) domain.DroneID { return domain.DroneID(fmt.Sprintf("DRONE-%05d", i+1)) }

// dial makes connections cheap for this process, which has them all.
func dial(secure *tls.Config) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(secure)), grpc.WithReadBufferSize(1 << 10), grpc.WithWriteBufferSize(1 << 10),
		grpc.WithStaticStreamWindowSize(64 << 10), grpc.WithStaticConnWindowSize(64 << 10),
	}
}

// measure connects the drones and lets them report.
func (c *command) measure(ctx context.Context, ca *devca.CA, gateway *process, counts *meter.Meter) error {
	empty := gateway.rssKB()
	flying, land := context.WithCancel(ctx)
	var aloft sync.WaitGroup
	defer aloft.Wait()
	defer land()
	connected := make(chan struct{}, c.Drones)
	drones := make([]*linksim.Drone, c.Drones)
	began := time.Now()
	for i := range drones {
		id := droneID(i)
		certificate, err := ca.Client("drone:" + string(id))
		if err != nil {
			return err
		}
		secure := &tls.Config{RootCAs: ca.Roots(), Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		var once sync.Once
		drones[i] = linksim.New(linksim.Config{
			Drone: id, Address: func() string { return gateway.addr }, Pause: time.Second + rand.N(time.Second),
			Dial:   dial(secure),
			Resume: func(*domain.Mission, int) { once.Do(func() { connected <- struct{}{} }) },
		})
		aloft.Go(func() { drones[i].Run(flying) })
		if i%50 == 49 { // they do not come all at once
			time.Sleep(20 * time.Millisecond)
		}
	}
	for range drones {
		select {
		case <-connected:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Fprintf(cli.Stdout, "%d drones connected in %s\n", c.Drones, time.Since(began).Round(100*time.Millisecond))
	time.Sleep(5 * time.Second) // what the handshakes needed is collected
	idle, theirs, ours := gateway.rssKB(), gateway.processor(), processor()
	took, lost := c.report(ctx, drones)
	full, theirs, ours := gateway.rssKB(), gateway.processor()-theirs, processor()-ours
	slices.Sort(took)
	fmt.Fprintf(cli.Stdout, "%d reports acked, %d not; send to ack p50 %s p99 %s\n", len(took), lost, quantile(took, 0.5), quantile(took, 0.99))
	for _, l := range []struct{ name, kind string }{{"send to commit", pubsubio.LatencySent}, {"publish to commit", pubsubio.TopicTelemetry}} {
		h := counts.Latency(l.kind)
		fmt.Fprintf(cli.Stdout, "%s p50 %s p99 %s\n", l.name, h.Quantile(0.5).Round(time.Millisecond), h.Quantile(0.99).Round(time.Millisecond))
	}
	perThousand := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(max(1, len(took))) }
	fmt.Fprintf(cli.Stdout, "processor time for 1,000 reports: gateway %.3f s, everything else %.3f s\n", perThousand(theirs), perThousand(ours))
	each := func(kb int) float64 { return float64(kb-empty) / float64(c.Drones) }
	fmt.Fprintf(cli.Stdout, "gateway: %d KB without drones; %.1f KB a connection that is idle, %.1f KB with reports; %d processors\n",
		empty, each(idle), each(full), runtime.GOMAXPROCS(0))
	return nil
}

// report has the drones report in turn, and returns how long each ack took.
func (c *command) report(ctx context.Context, drones []*linksim.Drone) (took []time.Duration, lost int) {
	var mu sync.Mutex
	var waiting sync.WaitGroup
	period := time.Duration(float64(time.Second) / c.Hz)
	begin, end := time.Now(), time.Now().Add(c.Duration)
	for n := 0; ctx.Err() == nil; n++ {
		at := begin.Add(time.Duration(float64(n) / float64(len(drones)) * float64(period)))
		if at.After(end) {
			break
		}
		time.Sleep(time.Until(at))
		sent := time.Now()
		result, err := drones[n%len(drones)].ReportState(domain.Telemetry{
			DroneID: droneID(n % len(drones)), Timestamp: sent, Battery: 80, SpeedKmh: 50,
			Position: domain.Position{Lat: 48.85 + float64(n/len(drones))*1e-4, Lon: 2.35}, Status: domain.DroneMoving,
		})
		if err != nil {
			return took, lost + 1
		}
		waiting.Go(func() {
			patient, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := result.Wait(patient)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost++
				return
			}
			took = append(took, time.Since(sent))
		})
	}
	waiting.Wait()
	return took, lost
}

// processor is the processor time that this process has used.
func processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Round(time.Millisecond)
}

// process is a gateway.
type process struct {
	cmd  *exec.Cmd
	dir  string
	addr string
}

// startGateway builds and starts a gateway with certificates of ca.
func (c *command) startGateway(ca *devca.CA, hosts connect.Config) (*process, error) {
	dir, err := os.MkdirTemp("", "bench-link-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir}
	file := func(name string) string { return filepath.Join(dir, name) }
	server, err := ca.Server()
	if err = errors.Join(err, ca.Write(dir), devca.Write(dir, "server", server)); err != nil {
		return nil, err
	}
	program := c.Gateway
	if program == "" {
		program = file("gateway")
		if out, err := exec.Command("go", "build", "-o", program, "github.com/dronefleet/dronefleet/cmd/gateway").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the gateway: %w: %s", err, out)
		}
	}
	p.cmd = exec.Command(program, "link", "--link-addr=127.0.0.1:0", "--tls-cert="+file("server.crt"), "--tls-key="+file("server.key"), "--client-ca="+file("ca.crt"))
	p.cmd.Env = append(os.Environ(), connect.FirestoreHost+"="+hosts.FirestoreHost, connect.PubSubHost+"="+hosts.PubSubHost)
	told, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(told)
	for p.addr == "" && lines.Scan() {
		var line struct{ Link string }
		_ = json.Unmarshal(lines.Bytes(), &line) // other lines have none
		p.addr = line.Link
	}
	if p.addr == "" {
		return nil, errors.New("the gateway did not start; run it by hand to see why")
	}
	go func() {
		for lines.Scan() { // so that it does not block
		}
	}()
	time.Sleep(2 * time.Second) // it follows its topics
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// rssKB is the gateway's memory; 0 where the system does not tell.
func (p *process) rssKB() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmRSS:"); is {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// ticksPerSecond is the unit of /proc/PID/stat: 100 on every Linux.
const ticksPerSecond = 100

// processor is the processor time that the gateway has used; 0 where the system does not tell.
func (p *process) processor() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ") // behind the program's name
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
