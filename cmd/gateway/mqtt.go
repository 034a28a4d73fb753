package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/mqttlink"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

type mqttCommand struct {
	cli.Connection
	cli.Logging
	cli.Watching
	Broker        string        `help:"Broker of the drones, which must speak MQTT 5: mqtt://HOST:PORT, or mqtts:// for TLS." required:"" placeholder:"URL"`
	User          string        `help:"User name at the broker." placeholder:"NAME"`
	PasswordFile  string        `help:"File with the password of user." placeholder:"FILE" type:"path" name:"password-file"`
	BrokerCA      string        `help:"File with the authorities that issue the broker's certificate, in PEM; empty for those of the machine." placeholder:"FILE" type:"path" name:"broker-ca"`
	ClientCert    string        `help:"File with a certificate to show to the broker, in PEM." placeholder:"FILE" type:"path" name:"client-cert"`
	ClientKey     string        `help:"File with the key of client-cert, in PEM." placeholder:"FILE" type:"path" name:"client-key"`
	ClientID      string        `help:"Name of this gateway at the broker, which keeps reports under it. Each gateway needs its own and must keep it over restarts; empty for gateway- and the host's name." placeholder:"NAME" name:"client-id"`
	Group         string        `help:"Name of the shared subscription. Gateways of the same group share the reports." default:"dronefleet" placeholder:"NAME"`
	SessionExpiry time.Duration `help:"How long the broker keeps reports for a gateway that is away." default:"5m" check:"min 1s max 24h" name:"session-expiry"`
	Format        wire.Format   `help:"Form of the messages for drones: protobuf or json." default:"json" enum:"protobuf,json"`
	Subscription  string        `help:"Pub/Sub subscription of missions that the gateways share." default:"missions-mqtt" placeholder:"NAME" check:"id"`
	Leave         bool          `help:"Only take what the broker keeps under client-id, end its subscription, and stop. For a gateway that does not return."`
	DrainTimeout  time.Duration `help:"How long reports may take to be published after SIGTERM." default:"14s" check:"over 0s max 10m"`
	probing
}

// Check implements config.Checker.
func (c *mqttCommand) Check(r *config.Refuser) {
	c.CheckConnection(r)
	c.CheckWatching(r)
	broker, err := mqttlink.ParseBroker(c.Broker)
	if err != nil {
		r.Refuse("broker", "%s", err)
		return
	}
	switch secure := broker.Scheme == "mqtts"; {
	case !secure && c.BrokerCA+c.ClientCert+c.ClientKey != "":
		r.Refuse("broker", "is without TLS, which broker-ca, client-cert and client-key need; give mqtts://")
	case (c.ClientCert == "") != (c.ClientKey == ""):
		r.Refuse("client-cert", "and client-key belong together; give both")
	}
	if c.PasswordFile != "" && c.User == "" {
		r.Refuse("user", "is missing, and password-file is given; give both")
	}
	if strings.ContainsAny(c.Group, "/+#") || c.Group == "" {
		r.Refuse("group", "cannot be part of a topic; give a name without /, + and #")
	}
}

// broker is how to reach the broker, as the flags say.
func (c *mqttCommand) broker() (cfg mqttlink.Config, err error) {
	cfg = mqttlink.Config{
		User: c.User, ClientID: c.ClientID, Group: c.Group, SessionExpiry: c.SessionExpiry, Format: c.Format, Drain: c.DrainTimeout,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if cfg.Broker, err = mqttlink.ParseBroker(c.Broker); err != nil {
		return cfg, fmt.Errorf("--broker %w", err)
	}
	if cfg.ClientID == "" {
		host, err := os.Hostname()
		if err != nil {
			return cfg, fmt.Errorf("host name for --client-id: %w; give --client-id", err)
		}
		cfg.ClientID = "gateway-" + host
	}
	if cfg.Password, err = mqttlink.ReadPassword(c.PasswordFile); err != nil {
		return cfg, fmt.Errorf("--password-file: %w", err)
	}
	if c.BrokerCA != "" {
		text, err := os.ReadFile(c.BrokerCA)
		if err != nil {
			return cfg, fmt.Errorf("--broker-ca: %w", err)
		}
		cfg.TLS.RootCAs = x509.NewCertPool()
		if !cfg.TLS.RootCAs.AppendCertsFromPEM(text) {
			return cfg, fmt.Errorf("--broker-ca: %s holds no certificate in PEM; give the authorities that issue the broker's certificate", c.BrokerCA)
		}
	}
	if c.ClientCert != "" {
		files := &certificateFiles{cert: c.ClientCert, key: c.ClientKey, log: slog.New(slog.DiscardHandler)}
		if err := files.read(); err != nil {
			return cfg, fmt.Errorf("--client-cert, --client-key: %w", err)
		}
		cfg.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return files.current(nil) }
	}
	return cfg, nil
}

// Run carries messages between broker and Pub/Sub until interrupted.
func (c *mqttCommand) Run(ctx context.Context) error {
	log := observe.LogTraces(c.Logger(os.Stderr), c.Project)
	exporting, exported := shutdown.Gateway(c.DrainTimeout).Context(ctx, shutdown.Export)
	defer exported()
	cfg, err := c.broker()
	if err != nil {
		return err
	}
	probes, err := c.listen()
	if err != nil {
		return err
	}
	if probes != nil {
		defer probes.Close()
	}
	clients, clock, err := c.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	if clients.Config.Emulated() {
		err := pubsubio.Ensure(ctx, clients.PubSub)
		if err == nil {
			err = pubsubio.EnsureSubscription(ctx, clients.PubSub, c.Subscription, pubsubio.TopicMissions, true)
		}
		if err != nil {
			return err
		}
	}
	_, stopWatch, err := c.Watch(ctx, "gateway", clients.Meter, log)
	if err != nil {
		return err
	}
	defer stopWatch(exporting)
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now})
	core := gateway.NewBrokered(gateway.New(publisher, store, clock, gateway.Config{Meter: &clients.Meter.Link, ClockError: clients.Meter.ClockOffset.Last}, log))
	link := mqttlink.New(cfg, core, clock, log, clients.Meter)
	if c.Leave {
		if err := link.Leave(ctx); err != nil {
			return fmt.Errorf("leave the broker: %w; reports may be left under --client-id %s", err, cfg.ClientID)
		}
		log.InfoContext(ctx, "left the MQTT broker; nothing is kept there", slog.String("client_id", cfg.ClientID))
		return nil
	}
	log.InfoContext(ctx, "gateway serving", slog.String("project", clients.Config.Project), slog.String("broker", cfg.Broker.String()), slog.String("client_id", cfg.ClientID))
	return c.serve(ctx, core, link, probes, clients, clock, log)
}

// serve runs the link and the commands. The link ends last: commands go through it.
func (c *mqttCommand) serve(ctx context.Context, core *gateway.Brokered, link *mqttlink.Link, probes *httpapi.Listener, clients *connect.Clients, clock *simclock.Clock, log *slog.Logger) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running errgroup.Group
	running.Go(func() error {
		defer stop()
		pubsubio.TakeCommands(ctx, clients.PubSub, c.Subscription, log, link.Command)
		return nil
	})
	running.Go(func() error { link.Run(serving); return nil })
	running.Go(func() error { core.Follow(ctx, clients.PubSub, uuid.NewString(), c.DrainTimeout); return nil })
	if probes != nil {
		running.Go(func() error {
			return c.probe(ctx, serving, c.DrainTimeout, probes, httpapi.Config{Outages: func() (list []error) {
				if err := link.Ready(); err != nil {
					list = append(list, err)
				}
				return list
			}}, clients, clock, log)
		})
	}
	err := running.Wait()
	log.Info("gateway stopped; the broker keeps further reports")
	return err
}
