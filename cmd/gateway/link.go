package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/internal/shutdown"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

type linkCommand struct {
	cli.Connection
	cli.Logging
	cli.Watching
	LinkAddr     string        `help:"Address at which drones connect, over gRPC and WebSocket." default:"127.0.0.1:8443" name:"link-addr" check:"listen"`
	TLSCert      string        `help:"File with the gateway's certificate and those between it and its root, in PEM. It is read again when it changes." placeholder:"FILE" type:"path" name:"tls-cert"`
	TLSKey       string        `help:"File with the certificate's key, in PEM." placeholder:"FILE" type:"path" name:"tls-key"`
	InsecureLink bool          `help:"Take connections without TLS; only behind something that provides it, such as Cloud Run." name:"insecure-link"`
	MaxDrones    int           `help:"Most drones that this gateway takes. Others are told to try another one." default:"20000" check:"min 1 max 1000000"`
	DrainTimeout time.Duration `help:"How long drones may take after SIGTERM to leave." default:"14s" check:"over 0s max 10m"`
	drones
	probing
}

// drones holds the flags that say how drones prove who they are.
type drones struct {
	ClientCA        string                    `help:"File with the authorities that issue drones' certificates, in PEM; empty if drones have none." placeholder:"FILE" type:"path" name:"client-ca"`
	DroneKeys       bool                      `help:"Take API keys of drones, as \"statemanager keys create\" makes them." default:"true" negatable:"" name:"drone-keys"`
	CertificateRule dronelink.CertificateRule `help:"Where a certificate names its drone: uri: or dns: and a name with {drone} in the place of the id." default:"uri:drone:{drone}" name:"certificate-rule"`
	OIDCIssuer      string                    `help:"OpenID Connect issuer of drones' tokens; empty if drones have none." placeholder:"URL" name:"oidc-issuer"`
	OIDCAudience    []string                  `help:"Accepted token audiences." placeholder:"NAME" name:"oidc-audience"`
	OIDCDrone       []identity.Grant          `help:"Which tokens of oidc-issuer are drones': CLAIM=VALUE, or * for all." placeholder:"GRANT" name:"oidc-drone"`
	OIDCDroneClaim  string                    `help:"Claim of a token that holds the drone's id; dots lead into nested claims." default:"sub" placeholder:"CLAIM" name:"oidc-drone-claim"`
	OIDCLeeway      time.Duration             `help:"Clock difference that is tolerated when a token's times are checked." default:"1m" check:"min 0s max 5m" name:"oidc-leeway"`
}

// Check implements config.Checker.
func (c *linkCommand) Check(r *config.Refuser) {
	c.CheckConnection(r)
	c.CheckWatching(r)
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		r.Refuse("tls-cert", "and tls-key belong together; give both")
	case c.TLSCert == "" && !c.InsecureLink:
		r.Refuse("tls-cert", "is missing, and so is tls-key; give both, or --insecure-link behind something that provides TLS")
	case c.TLSCert != "" && c.InsecureLink:
		r.Refuse("insecure-link", "takes connections without TLS, but tls-cert is given; give only one")
	case c.InsecureLink && c.ClientCA != "":
		r.Refuse("client-ca", "needs TLS, which insecure-link turns off; give tls-cert and tls-key")
	}
	c.drones.check(r)
}

func (c *drones) check(r *config.Refuser) {
	if c.OIDCIssuer == "" {
		if len(c.OIDCAudience)+len(c.OIDCDrone) > 0 {
			r.Refuse("oidc-issuer", "is missing, which oidc-audience and oidc-drone require; give it")
		}
		if c.ClientCA == "" && !c.DroneKeys {
			r.Refuse("drone-keys", "is false, and client-ca and oidc-issuer are missing: no drone could connect; give one")
		}
		return
	}
	if err := identity.CheckIssuer(c.OIDCIssuer); err != nil {
		r.Refuse("oidc-issuer", "%s", err) // without the URL, which may hold a password
	}
	if len(c.OIDCAudience) == 0 {
		r.Refuse("oidc-audience", "is missing; give the name that the issuer's tokens for this gateway carry")
	}
	if len(c.OIDCDrone) == 0 {
		r.Refuse("oidc-drone", "is missing; name the tokens that are drones', or * if all of the issuer's are")
	}
	if c.OIDCDroneClaim == "" {
		r.Refuse("oidc-drone-claim", "is empty; name the claim that holds the drone's id")
	}
}

// authenticator knows drones as the flags say.
func (c *drones) authenticator(ctx context.Context, store *firestoretx.Store, clock *simclock.Clock, log *slog.Logger) (a gateway.Authenticator, err error) {
	a.Now = clock.Now
	if c.DroneKeys {
		a.Keys = apikeys.New(apikeys.Config{Store: store, Now: clock.Now, Log: log})
	}
	if c.ClientCA != "" {
		text, err := os.ReadFile(c.ClientCA)
		if err != nil {
			return a, fmt.Errorf("--client-ca: %w", err)
		}
		a.Certificates = &dronelink.Certificates{Roots: x509.NewCertPool(), Rule: c.CertificateRule}
		if !a.Certificates.Roots.AppendCertsFromPEM(text) {
			return a, fmt.Errorf("--client-ca: %s holds no certificate in PEM; give the authorities that issue drones' certificates", c.ClientCA)
		}
	}
	if c.OIDCIssuer != "" {
		a.Tokens, err = identity.New(identity.Config{
			Issuer: c.OIDCIssuer, Audiences: c.OIDCAudience, Requesters: c.OIDCDrone, RequesterClaim: c.OIDCDroneClaim, Leeway: c.OIDCLeeway, Now: clock.Now, Log: log,
		})
		if err != nil {
			return a, err
		}
		if err := a.Tokens.Prepare(ctx); err != nil {
			log.WarnContext(ctx, "token issuer does not answer; drones with tokens must wait until it does", slog.Any("err", err))
		}
	}
	return a, nil
}

// gcPercent trades processor time for memory: what a gateway holds is connections, which change
// little and of which there are many.
const gcPercent = 30

// Run takes connections until interrupted, and then lets the drones leave.
func (c *linkCommand) Run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log := observe.LogTraces(c.Logger(os.Stderr), c.Project)
	plan := shutdown.Gateway(c.DrainTimeout)
	exporting, exported := plan.Context(ctx, shutdown.Export)
	defer exported()
	secure, err := c.secure(log)
	if err != nil {
		return err
	}
	link, err := net.Listen("tcp", c.LinkAddr)
	if err != nil {
		return fmt.Errorf("--link-addr: %w; give another one or stop the process that uses it", err)
	}
	defer link.Close()
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
		if err := pubsubio.Ensure(ctx, clients.PubSub); err != nil {
			return err
		}
	}
	_, stopWatch, err := c.Watch(ctx, "gateway", clients.Meter, log)
	if err != nil {
		return err
	}
	defer stopWatch(exporting)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now})
	auth, err := c.authenticator(ctx, store, clock, log)
	if err != nil {
		return err
	}
	auth.Meter = &clients.Meter.Link
	publisher := pubsubio.NewPublisher(clients.PubSub)
	defer publisher.Stop()
	g := gateway.New(publisher, store, clock, gateway.Config{MaxSessions: c.MaxDrones, Meter: &clients.Meter.Link, ClockError: clients.Meter.ClockOffset.Last}, log)
	server := dronelink.NewServer(g, auth, secure, log)
	log.InfoContext(ctx, "gateway serving", slog.String("project", clients.Config.Project), slog.String("link", link.Addr().String()))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // probes answer until the drones have left
	defer stop()
	var running errgroup.Group
	running.Go(func() error {
		defer stop()
		return g.Serve(ctx, clients.PubSub, uuid.NewString(), server, link, c.DrainTimeout)
	})
	if probes != nil {
		running.Go(func() error {
			return c.probe(ctx, serving, c.DrainTimeout, probes, httpapi.Config{}, clients, clock, log)
		})
	}
	if err := running.Wait(); err != nil {
		return err
	}
	log.Info("gateway stopped; its drones were told to reconnect")
	return nil
}

// secure is the gateway's side of TLS; nil without it.
func (c *linkCommand) secure(log *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	files := &certificateFiles{cert: c.TLSCert, key: c.TLSKey, log: log}
	if err := files.read(); err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return &tls.Config{GetCertificate: files.current, MinVersion: tls.VersionTLS12}, nil
}

// certificateFiles is a certificate that is renewed in place.
type certificateFiles struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	loaded  tls.Certificate
	changed time.Time // of the certificate's file
}

// current implements the field of tls.Config. A new certificate that cannot be read leaves the
// old one in use.
func (f *certificateFiles) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info, err := os.Stat(f.cert); err == nil && !info.ModTime().Equal(f.changed) {
		if err := f.read(); err != nil {
			f.log.Warn("new certificate not used", slog.String("file", f.cert), slog.Any("err", err))
			f.changed = info.ModTime()
		}
	}
	loaded := f.loaded
	return &loaded, nil
}

func (f *certificateFiles) read() error {
	info, err := os.Stat(f.cert)
	if err != nil {
		return err
	}
	loaded, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err == nil {
		f.loaded, f.changed = loaded, info.ModTime()
	}
	return err
}
