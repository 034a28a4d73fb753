//go:build linux

package deploy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// image is the file system and user of a container of one of the Dockerfile's images: only
// the image's files, nothing writable.
type image struct {
	root     string
	uid, gid int
	entry    []string
	command  []string // what it does unless told otherwise
}

// openImage copies the files of a stage into its own root folder, following the COPY
// instructions.
func openImage(t *testing.T, name string) image {
	t.Helper()
	file, err := readDockerfile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.stage(name)
	if err != nil {
		t.Fatal(err)
	}
	i := image{root: t.TempDir()}
	if i.entry, err = s.words("ENTRYPOINT"); err != nil {
		t.Fatal(err)
	}
	if i.command, err = s.words("CMD"); err != nil {
		t.Fatal(err)
	}
	uid, gid, _ := strings.Cut(s.all("USER")[0], ":")
	i.uid, err = strconv.Atoi(uid)
	if err != nil {
		t.Fatal(err)
	}
	i.gid, err = strconv.Atoi(gid)
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.copies()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range files {
		if rest, built := strings.CutPrefix(from, outDir); built {
			from = filepath.Join(imageBinaries(t), rest)
		}
		// Files that are not built come from the build's base image, here from this machine if
		// it has them. Emulators need no certificates.
		if err := copyFile(from, filepath.Join(i.root, to)); err != nil && !(errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(from, builtIn)) {
			t.Fatal(err)
		}
	}
	return i
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o555)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// container is the isolation of the image's processes: its root, its user. As
// root chroot is enough; else a user namespace gives the right to it.
func (i image) container() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Chroot: i.root, Credential: &syscall.Credential{Uid: uint32(i.uid), Gid: uint32(i.gid)}}
	if os.Getuid() != 0 {
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: i.uid, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: i.gid, HostID: os.Getgid(), Size: 1}}
		attr.Credential.NoSetGroups = true
	}
	return attr
}

// environment is the whole environment of the image's processes.
func environment(hosts connect.Config) []string {
	if hosts.FirestoreHost == "" {
		return nil
	}
	return []string{
		"GOOGLE_CLOUD_PROJECT=" + hosts.Project,
		connect.FirestoreHost + "=" + hosts.FirestoreHost, connect.PubSubHost + "=" + hosts.PubSubHost,
	}
}

func (i image) exec(ctx context.Context, hosts connect.Config, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, i.entry[0], append(i.entry[1:], args...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", environment(hosts), i.container()
	return cmd
}

// requireContainers skips the test on machines that allow no chroot.
func requireContainers(t *testing.T, i image) {
	t.Helper()
	out, err := i.exec(t.Context(), connect.Config{}, "--version").CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("this machine allows neither chroot nor user namespaces: %v", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// process is a container that runs until it is told to stop.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of both outputs, as far as somebody reads
	mu    sync.Mutex
	log   strings.Builder
	ended chan error
}

func (i image) start(t *testing.T, hosts connect.Config, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: i.exec(context.WithoutCancel(t.Context()), hosts, args...), lines: make(chan string, 1000), ended: make(chan error, 1)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.mu.Lock()
			fmt.Fprintln(&p.log, scanner.Text())
			p.mu.Unlock()
			select {
			case p.lines <- scanner.Text():
			default: // no test is reading lines
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // of no effect after stop
	return p
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// find waits for a line that holds prefix, and returns what follows it.
func (p *process) find(prefix string) string {
	p.t.Helper()
	for line := range p.lines {
		if _, rest, ok := strings.Cut(line, prefix); ok {
			return rest
		}
	}
	p.t.Fatalf("%v ended without %q:\n%s", p.cmd.Args, prefix, p.output())
	return ""
}

// stop sends the signal that Cloud Run and Kubernetes send, and expects an
// orderly end.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.ended; err != nil {
		p.t.Errorf("%v: %v\n%s", p.cmd.Args, err, p.output())
	}
}

// The images' binaries work from a root that holds only themselves, each with the Pub/Sub
// rights that Terraform gives its account: a State Manager becomes ready, "optimizer once"
// turns an order into a mission and a command, an undecodable message is dead-lettered, and
// "optimizer run" keeps running. F-DLQ-01, F-DEC-05, F-OPT-01, F-API-01
func TestImages_WorkInAnEmptyRoot(t *testing.T) {
	longtest.Only(t, "runs a whole fleet")
	manager, optimizer := openImage(t, "statemanager"), openImage(t, "optimizer")
	requireContainers(t, manager)

	hosts := emutest.Hosts(t)
	hosts.Project = testProject // for which Terraform's rights are planned
	granted, err := plan(deployFiles(t), ways["Cloud Run"])
	if err != nil {
		t.Fatal(err)
	}
	clients := emutest.Connect(t, hosts)
	if err := pubsubio.Ensure(t.Context(), clients.PubSub); err != nil {
		t.Fatal(err)
	}
	as := func(account string) connect.Config {
		guarded := hosts
		guarded.PubSubHost = startGuard(t, hosts.PubSubHost, account, granted)
		return guarded
	}
	serve := manager.start(t, as("statemanager"), append(manager.command, "--http-addr=127.0.0.1:0")...)
	url, _, _ := strings.Cut(serve.find(`"url":"`), `"`)
	emutest.Eventually(t, "ready", func() error { return get(t, url+"/readyz", nil) })

	where := domain.Position{Lat: 48.85, Lon: 2.35}
	err = firestoretx.New(clients.Firestore, firestoretx.Config{}).Setup(t.Context(),
		[]domain.Depot{{ID: "DEPOT", Name: "Depot", Position: where, Capacity: 1, ChargingSlots: 1}},
		[]domain.Warehouse{{ID: "W1", Name: "Warehouse", Position: where, ProductTypes: []string{"BLOOD"}, ColdStorage: true}},
		[]domain.Drone{{ID: "D1", HomeDepotID: "DEPOT", Position: where, Battery: 100, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 60, PayloadCapacityKg: 5}})
	if err != nil {
		t.Fatal(err)
	}
	gateway := as("gateway")
	manager.publish(t, gateway, "orders", map[string]any{"priority": "of no order"})
	manager.publish(t, gateway, "orders", map[string]any{
		"id": "O1", "productType": "BLOOD", "priority": "CRITICAL", "deliveryLocation": map[string]any{"lat": 48.86, "lon": 2.36},
	})
	planner := as("optimizer")
	emutest.Eventually(t, "a mission", func() error {
		// A silent drone is not available, so it keeps reporting.
		manager.publish(t, gateway, "telemetry", map[string]any{
			"droneId": "D1", "status": "IDLE", "batteryPercentage": 100, "position": map[string]any{"lat": where.Lat, "lon": where.Lon},
			"timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		})
		var idle struct{ Drones []struct{ ID, Status string } }
		if err := get(t, url+"/api/v1/drones?status=IDLE", &idle); err != nil {
			return err
		}
		if len(idle.Drones) == 1 {
			if out, err := optimizer.exec(t.Context(), planner, "once", "--solve-limit=100ms").CombinedOutput(); err != nil {
				t.Fatalf("optimizer once: %v\n%s", err, out)
			}
		}
		var missions struct{ Missions []struct{ OrderIDs []string } }
		if err := get(t, url+"/api/v1/missions", &missions); err != nil {
			return err
		}
		if len(missions.Missions) != 1 {
			return fmt.Errorf("%d missions, drones %v", len(missions.Missions), idle)
		}
		return nil
	})
	refused, err := clients.PubSub.SubscriptionAdminClient.Pull(t.Context(), &pubsubpb.PullRequest{
		Subscription: "projects/" + testProject + "/subscriptions/" + pubsubio.DeadLetterSubscription(pubsubio.TopicOrders), MaxMessages: 10,
	})
	if err != nil || len(refused.GetReceivedMessages()) != 1 {
		t.Errorf("%d dead letters, want one (%v)", len(refused.GetReceivedMessages()), err)
	}
	emutest.Eventually(t, "the mission's command", func() error {
		missions, err := clients.Firestore.Collection(firestoretx.Missions).Documents(t.Context()).GetAll()
		if err != nil || len(missions) != 1 || missions[0].Data()["commandPublishedAt"] == nil {
			return fmt.Errorf("%d missions, none of which was sent (%w)", len(missions), err)
		}
		return nil
	})

	run := optimizer.start(t, planner, append(optimizer.command, "--http-addr=127.0.0.1:0", "--interval=1s", "--solve-limit=100ms")...)
	url, _, _ = strings.Cut(run.find(`"url":"`), `"`)
	emutest.Eventually(t, "the optimizer ready", func() error { return get(t, url+"/readyz", nil) })
	http.DefaultClient.CloseIdleConnections()
	run.stop()
	serve.stop()
}

// publish has the image publish a message.
func (i image) publish(t *testing.T, hosts connect.Config, topic string, message any) {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	cmd := i.exec(t.Context(), hosts, "publish", topic)
	cmd.Stdin = strings.NewReader(string(text))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("publish %s: %v\n%s", topic, err, out)
	}
}

// get reads JSON from url into v, if that is not nil.
func get(t *testing.T, url string, v any) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %s", url, resp.Status, text)
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(text, v)
}
