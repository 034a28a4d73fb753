package mqttlink_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// linking notes what becomes of connections.
type linking struct {
	mqttlink.Fleet
	mu     sync.Mutex
	states []domain.LinkState
}

func (l *linking) Linked(s domain.LinkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = append(l.states, s)
}

// await waits until the connections of one session had these statuses.
func (l *linking) await(t *testing.T, want ...domain.LinkStatus) {
	t.Helper()
	emutest.Eventually(t, fmt.Sprint(want), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		var got []domain.LinkStatus
		for _, s := range l.states {
			if got = append(got, s.Status); s.DroneID != "D-1" || s.Session != l.states[0].Session || time.Since(s.At) > time.Minute {
				t.Errorf("%+v", s)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// F-GW-06: the example loses no command that it gets in parts, more than a tick apart.
func TestExample_TakesACommandThatComesInParts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	tools := t.TempDir()
	for name, script := range map[string]string{
		"mosquitto_pub": "echo PUBACK RC:0\n",
		"mosquitto_sub": `command='{"mission": {"id": "M-1", "status": "ACTIVE", "route": []}}'
for part in 'fleet/D-1/mis' 'sions ' "${command:0:20}" "${command:20}"; do printf %s "$part"; sleep 0.2; done
echo
exec sleep 60
`} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/usr/bin/env bash\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "../../examples/drone-mqtt.sh", "D-1", "48.85", "2.35")
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "TICK=0.05")
	cmd.WaitDelay = time.Second
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "D-1 takes M-1 with 0 stops completed\n" {
		t.Errorf("it says %q, %v", line, err)
	}
}

// F-GW-06: examples/drone-mqtt.sh, which has none of our code, is told who it is not,
// flies the mission that it is sent, and gives up one that is revoked. F-GW-05: the gateway hears
// when it is connected, and when it is gone without a word.
func TestExample_FliesAMission(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	f := newFleet(t)
	links := &linking{Fleet: f.core}
	l, _ := f.link(t, mqttlink.Config{}, links)
	published := f.published(t)
	cmd := exec.CommandContext(t.Context(), "../../examples/drone-mqtt.sh", "D-1", "48.85", "2.35")
	cmd.Env = append(os.Environ(), fmt.Sprintf("MQTT_PORT=%d", f.broker.Port), "MQTT_USER=D-1", "MQTT_PASSWORD="+password, "TICK=0.05", "STEP=100")
	cmd.WaitDelay = time.Second
	var said output
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	says := func(text string) {
		t.Helper()
		emutest.Eventually(t, text, func() error {
			if all := strings.Join(said.lines(), "\n"); !strings.Contains(all, text) {
				return fmt.Errorf("it says:\n%s", all)
			}
			return nil
		})
	}
	says("is refused: DRONE_UNREGISTERED")
	links.await(t, domain.LinkOpened)

	stop := func(kind domain.WaypointType, lat float64, order domain.OrderID) domain.Waypoint {
		return domain.Waypoint{Type: kind, Position: domain.Position{Lat: lat, Lon: 2.35}, OrderID: order}
	}
	route := []domain.Waypoint{
		stop(domain.WaypointDepotStart, 48.85, ""), stop(domain.WaypointWarehousePickup, 48.852, "O-1"), stop(domain.WaypointHospitalDelivery, 48.854, "O-1"), stop(domain.WaypointDepotReturn, 48.85, ""),
	}
	command := func(id domain.MissionID, life time.Duration, revoke bool) {
		t.Helper()
		c := domain.Command{Revoke: revoke, Mission: domain.Mission{ID: id, DroneID: "D-1", OrderIDs: []domain.OrderID{"O-1"}, Route: route, Status: domain.MissionActive}}
		if !revoke {
			c.ExpiresAt = time.Now().Add(life)
		}
		if err := l.Command(t.Context(), c, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	command("M-late", -time.Minute, false)
	says("ignores M-late")
	command("M-1", time.Minute, false)
	says("takes M-1 with 0")
	says("has flown M-1")
	command("M-1", time.Minute, false)
	says("ignores M-1")
	command("M-2", time.Minute, false)
	says("takes M-2 with 0")
	command("M-2", 0, true)
	says("gives M-2 up")

	highest := map[domain.MissionID]int{}
	emutest.Eventually(t, "reports", func() error {
		for _, m := range published() {
			r, err := wire.DecodeTelemetry(m.Data, m.Attributes)
			if err != nil {
				t.Fatal(err)
			}
			if r.CompletedStops != nil {
				highest[r.MissionID] = max(highest[r.MissionID], *r.CompletedStops)
			}
		}
		if highest["M-1"] != len(route) || highest["M-late"] != 0 {
			return fmt.Errorf("stops %v", highest)
		}
		return nil
	})
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if err != nil {
		t.Skip("the drone's connection cannot be found: ", err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that sends a report may have ended
		}
	}
	links.await(t, domain.LinkOpened, domain.LinkLost)
}
