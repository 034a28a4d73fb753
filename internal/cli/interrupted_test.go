package cli_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// A service that stops when told to has succeeded. A command that is interrupted
// before its result has not, and its exit status must tell a scheduler. A service that
// never began to serve has failed.
func TestMain_ExitCodeAfterAnInterrupt(t *testing.T) {
	start := func(t *testing.T, hosts connect.Config, line string) *exec.Cmd {
		args := strings.Fields(line)
		cmd := exec.CommandContext(t.Context(), clitest.Program(args[0]).Path(t), args[1:]...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "GOOGLE_CLOUD_PROJECT=" + hosts.Project,
			connect.FirestoreHost + "=" + hosts.FirestoreHost, connect.PubSubHost + "=" + hosts.PubSubHost}
		return cmd
	}
	end := func(t *testing.T, cmd *exec.Cmd, sig os.Signal, want int) {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit code is checked below
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d", sig, got, want)
		}
	}
	for line, want := range map[string]int{
		"optimizer once": 130,
		"optimizer solve --at=2026-11-21T12:00:00Z": 130,
		"statemanager orders list":                  130,
		"statemanager audit order O1":               130,
		"statemanager deadletters list":             130,
		"statemanager deadletters replay --all":     130,
		"statemanager locks list":                   130,
		"optimizer run":                             1,
		"statemanager serve --http-addr=off":        1,
	} {
		t.Run(line, func(t *testing.T) {
			// A Firestore that accepts the connection and never answers.
			mute, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer mute.Close()
			addr := mute.Addr().String()
			cmd := start(t, connect.Config{Project: "p", FirestoreHost: addr, PubSubHost: addr}, line)
			var told strings.Builder
			cmd.Stderr = &told
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			called, err := mute.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer called.Close()
			end(t, cmd, os.Interrupt, want)
			if name, _, _ := strings.Cut(line, " "); !strings.HasSuffix(told.String(), name+": interrupted\n") {
				t.Errorf("printed %s", told.String())
			}
		})
	}
	hosts := emutest.Hosts(t)
	for line, told := range map[string]string{
		"optimizer solve --in=-":      "optimizer: interrupted\n",
		"statemanager publish orders": "statemanager: interrupted; nothing was published\n",
	} {
		t.Run(line, func(t *testing.T) {
			cmd := start(t, hosts, line)
			var errs strings.Builder
			cmd.Stderr = &errs
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// More than a pipe's buffer: once it is written, the command is reading.
			if _, err := in.Write(make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			end(t, cmd, os.Interrupt, 130)
			if errs.String() != told {
				t.Errorf("printed %s", errs.String())
			}
		})
	}

	store := firestoretx.New(emutest.Connect(t, hosts).Firestore, firestoretx.Config{})
	if err := store.Setup(t.Context(), []domain.Depot{{ID: "D1"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for line, begun := range map[string]string{
		"optimizer run":                      "optimizer started",
		"statemanager serve --http-addr=off": "State Manager serving",
		"dronefleet emulators --firestore=127.0.0.1:0 --pubsub=127.0.0.1:0": "emulators serving",
		"dronefleet dev --http-addr=off --drones=1 --log-level=info":        `"message":"cycle"`,
	} {
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			t.Run(line+" "+sig.String(), func(t *testing.T) {
				cmd := start(t, hosts, line)
				told, err := cmd.StderrPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(told)
				for lines.Scan() && !strings.Contains(lines.Text(), begun) {
				}
				go func() {
					for lines.Scan() { // a full pipe would block the command
					}
				}()
				end(t, cmd, sig, 0)
			})
		}
	}
}
