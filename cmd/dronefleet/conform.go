package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/domain"
	pubsubemu "github.com/dronefleet/dronefleet/emulator/pubsub"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/sim/conform"
	"github.com/dronefleet/dronefleet/sim/devrun"
)

type conformCommand struct {
	Drone conformDroneCommand `cmd:"" help:"Play the fleet's side to a drone, over Pub/Sub, the drone link or an MQTT broker: missions, late and repeated commands, a revocation, a restart."`

	Optimizer conformOptimizerCommand `cmd:"" help:"Give an optimizer a fleet with orders that need care, and judge its decisions."`
	Hospital  conformHospitalCommand  `cmd:"" help:"Take the orders of a hospital's program, over HTTP and Pub/Sub, and judge them."`
}

// conformOutput holds the flag of what an examination prints.
type conformOutput struct {
	Output string `help:"How to print the results on standard output: text or json. Progress goes to standard error with json." enum:"text,json" default:"text" short:"o"`
}

// progress is where an examination says what happens.
func (o conformOutput) progress() io.Writer {
	if o.Output == "json" {
		return os.Stderr
	}
	return cli.Stdout
}

// print prints a summary and fails if a rule was broken.
func (o conformOutput) print(s conform.Summary) error {
	var err error
	if o.Output == "json" {
		encoder := json.NewEncoder(cli.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(s)
	} else {
		err = s.Print(cli.Stdout)
	}
	if err != nil {
		return err
	}
	if s.Ended != "" && len(s.Broken()) == 0 {
		return fmt.Errorf("the examination of %s ended early: %s", s.Subject, s.Ended)
	}
	if broken := s.Broken(); len(broken) > 0 {
		return fmt.Errorf("%s broke %d rules: %s; api/asyncapi.yaml says what each asks for", s.Subject, len(broken), strings.Join(broken, ", "))
	}
	return nil
}

type conformDroneCommand struct {
	conformOutput
	ID             string        `help:"Id of the drone." required:"" name:"id" check:"id" placeholder:"ID"`
	Pubsub         string        `help:"Address of the embedded Pub/Sub that the drone connects to." default:"127.0.0.1:8085" check:"listen on loopback"`
	PubsubHost     string        `help:"Use the Pub/Sub emulator at this address instead of an embedded one." env:"PUBSUB_EMULATOR_HOST" placeholder:"HOST:PORT" check:"address"`
	Link           string        `help:"Speak over the drone link, gRPC or WebSocket, at this address, instead of over Pub/Sub." placeholder:"HOST:PORT" check:"listen on loopback"`
	Broker         string        `help:"Speak over this MQTT broker, which must speak MQTT 5: mqtt://HOST:PORT, or mqtts:// for TLS with a certificate that this machine trusts." placeholder:"URL"`
	User           string        `help:"User name at the broker; it needs the rights of a gateway." placeholder:"NAME"`
	PasswordFile   string        `help:"File with the password of user." placeholder:"FILE" type:"path" name:"password-file"`
	Project        string        `help:"Project of the topics." default:"dronefleet" env:"GOOGLE_CLOUD_PROJECT" check:"id"`
	RestartCommand string        `help:"Shell command that restarts the drone's program in flight, and returns. Without it a person is asked at the terminal." placeholder:"COMMAND"`
	Speed          float64       `help:"How fast the time of a simulated drone runs, in seconds per second. Above 1 its clock is not judged." default:"1" check:"min 1 max 100"`
	Limit          time.Duration `help:"End after this long, in the drone's time." default:"10m" check:"min 1m max 1h"`
}

// Run examines the drone, prints the results, and fails if a rule was broken.
func (c *conformDroneCommand) Run(ctx context.Context) error {
	switch {
	case c.Link != "":
		return c.overLink(ctx)
	case c.Broker != "":
		return c.overMQTT(ctx)
	}
	return c.overPubSub(ctx)
}

func (c *conformDroneCommand) overMQTT(ctx context.Context) (err error) {
	cfg := mqttlink.Config{User: c.User}
	if cfg.Broker, err = mqttlink.ParseBroker(c.Broker); err != nil {
		return fmt.Errorf("--broker %w", err)
	}
	if cfg.Password, err = mqttlink.ReadPassword(c.PasswordFile); err != nil {
		return fmt.Errorf("--password-file: %w", err)
	}
	line, err := conform.OpenMQTT(ctx, cfg, domain.DroneID(c.ID), c.Speed, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer line.Close()
	fmt.Fprintf(c.progress(), "Let the drone publish its reports to fleet/%[1]s/telemetry, and read fleet/%[1]s/missions and fleet/%[1]s/answers.\n", c.ID)
	return c.examine(ctx, line, conform.DroneConfig{OwnOnly: true})
}

func (c *conformDroneCommand) overLink(ctx context.Context) (err error) {
	listener, err := net.Listen("tcp", c.Link)
	if err != nil {
		return fmt.Errorf("--link: %w", err)
	}
	line, err := conform.OpenLink(listener, domain.DroneID(c.ID), c.Speed, slog.New(slog.DiscardHandler))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, line.Close()) }()
	file := func(name string) string { return filepath.Join(line.Directory, name) }
	fmt.Fprintf(c.progress(), "Let the drone connect to %s by gRPC (dronefleet.v1.DroneLink), or by WebSocket (%s). It trusts\n  %s\nand shows the certificate\n  %s\n  %s\nor the bearer token %s\n",
		listener.Addr(), dronelink.WebSocketPath, file("ca.crt"), file(c.ID+".crt"), file(c.ID+".key"), line.Token)
	return c.examine(ctx, line, conform.DroneConfig{OwnOnly: true})
}

func (c *conformDroneCommand) overPubSub(ctx context.Context) (err error) {
	id, host := domain.DroneID(c.ID), c.PubsubHost
	if host == "" {
		server, err := pubsubemu.Start(pubsubemu.Options{Addr: c.Pubsub, HTTPHint: "Drones publish reports to the topic telemetry, or connect to the drone link: see --link."})
		if err != nil {
			return devrun.Unserved("--pubsub", err)
		}
		defer server.Close()
		host = server.Addr()
	}
	// Google's libraries prefer the variable, even to what a flag says.
	if err := os.Unsetenv(connect.PubSubHost); err != nil {
		return err
	}
	// Firestore is not used.
	clients, err := connect.Open(ctx, connect.Config{Project: c.Project, FirestoreHost: host, PubSubHost: host}, meter.New())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clients.Close()) }()
	if err := conform.PrepareDrone(ctx, clients.PubSub, id); err != nil {
		return err
	}
	line, err := conform.OpenPubSub(ctx, clients.PubSub, id, c.Speed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, line.Close()) }()
	fmt.Fprintf(c.progress(), "Let the drone publish its reports to the topic telemetry. Its commands are in the subscription %s. It connects with\n  export %s=%s GOOGLE_CLOUD_PROJECT=%s\n",
		conform.DroneSubscription(id), connect.PubSubHost, host, c.Project)
	return c.examine(ctx, line, conform.DroneConfig{Keys: true})
}

// examine examines the drone over a line.
func (c *conformDroneCommand) examine(ctx context.Context, line conform.Line, cfg conform.DroneConfig) error {
	out := c.progress()
	cfg.ID, cfg.Limit, cfg.Slack, cfg.Restart = domain.DroneID(c.ID), c.Limit, conform.Slack(c.Speed), c.restart(out)
	cfg.Progress = func(text string) { fmt.Fprintln(out, text) }
	summary, err := conform.Drone(ctx, cfg, line)
	if err != nil {
		return err
	}
	return errors.Join(c.print(summary), ctx.Err())
}

// restart restarts the drone: by a command, or by a person at the terminal; nil if there is neither.
func (c *conformDroneCommand) restart(out io.Writer) func(context.Context) error {
	switch {
	case c.RestartCommand != "":
		return func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.RestartCommand)
			cmd.Stdout, cmd.Stderr = out, os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("--restart-command: %w", err)
			}
			return nil
		}
	case isTerminal(os.Stdin):
		return func(ctx context.Context) error {
			fmt.Fprintln(out, "Restart the drone's program now, as after a loss of power, then press Enter.")
			return answered(ctx, os.Stdin)
		}
	}
	return nil
}

// answered waits for a line of a person.
func answered(ctx context.Context, in io.Reader) error {
	line := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(in).ReadString('\n')
		line <- err
	}()
	select {
	case err := <-line:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var subscriptionName = regexp.MustCompile(`^[A-Za-z0-9_.~+%-]{1,128}$`)

// Check implements config.Checker.
func (c *conformDroneCommand) Check(r *config.Refuser) {
	if !subscriptionName.MatchString(c.ID) {
		r.Refuse("id", "%q cannot end the name of a subscription of Pub/Sub; give letters, digits and any of -_.~+%%", c.ID)
	}
	if c.Broker == "" {
		return
	}
	if _, err := mqttlink.ParseBroker(c.Broker); err != nil {
		r.Refuse("broker", "%s", err)
	}
	if c.Link != "" {
		r.Refuse("broker", "and link are both given; examine the drone over one of them")
	}
	if strings.Contains(c.ID, "+") {
		r.Refuse("id", "%q cannot be part of a topic of MQTT; give an id without +", c.ID)
	}
}
