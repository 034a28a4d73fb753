package devrun

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/dronelink"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/gateway"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/devca"
	"github.com/dronefleet/dronefleet/internal/meter"
)

const (
	// certificateRule is where the certificates of drones name them.
	certificateRule = "uri:drone:" + dronelink.DroneMark
	// demoDrone is the drone that has a certificate.
	demoDrone = "DRONE-DEMO"
	// linkDrain is how long drones may take to leave at the end.
	linkDrain = 5 * time.Second
)

// link is a gateway for drones that join the run.
type link struct {
	listener  net.Listener
	clients   *connect.Clients
	publisher *pubsubio.Publisher
	gateway   *gateway.Gateway
	server    *dronelink.Server
	directory string // of the certificates
	temporary bool
}

// openLink starts a gateway with an authority of its own, whose files are in a directory. The
// run's clock is the gateway's.
func (run *devRun) openLink(ctx context.Context, listener net.Listener) (l *link, err error) {
	l = &link{listener: listener, directory: subdirectory(run.cfg.DataDir, "link")}
	if l.directory == "" {
		l.temporary = true
		if l.directory, err = os.MkdirTemp("", "dronefleet-link-"); err != nil {
			return nil, err
		}
	}
	ca, err := devca.New(time.Now)
	if err != nil {
		return nil, err
	}
	server, err := writeCertificates(ca, l.directory)
	if err != nil {
		return nil, fmt.Errorf("certificates in %s: %w", l.directory, err)
	}
	hosts := run.product.Config
	hosts.ReadOnly = true
	if l.clients, err = connect.Open(ctx, hosts, meter.New()); err != nil {
		return nil, err
	}
	rule, err := dronelink.ParseCertificateRule(certificateRule)
	if err != nil {
		return nil, err
	}
	l.publisher = pubsubio.NewPublisher(l.clients.PubSub)
	store := firestoretx.New(l.clients.Firestore, firestoretx.Config{Now: run.clock.Now})
	l.gateway = gateway.New(l.publisher, store, run.clock, gateway.Config{}, run.cfg.Log)
	auth := gateway.Authenticator{
		Certificates: &dronelink.Certificates{Roots: ca.Roots(), Rule: rule}, Now: time.Now,
		Keys: apikeys.New(apikeys.Config{Store: store, Now: run.clock.Now, Log: run.cfg.Log}),
	}
	l.server = dronelink.NewServer(l.gateway, auth, &tls.Config{Certificates: []tls.Certificate{server}, MinVersion: tls.VersionTLS12}, run.cfg.Log)
	return l, nil
}

// writeCertificates writes the authority and a drone's certificate, and returns the server's.
func writeCertificates(ca *devca.CA, dir string) (server tls.Certificate, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return server, err
	}
	if err := ca.Write(dir); err != nil {
		return server, err
	}
	drone, err := ca.Client(strings.Replace(strings.TrimPrefix(certificateRule, "uri:"), dronelink.DroneMark, demoDrone, 1))
	if err != nil {
		return server, err
	}
	if err := devca.Write(dir, demoDrone, drone); err != nil {
		return server, err
	}
	return ca.Server()
}

// serve takes connections until ctx ends.
func (l *link) serve(ctx context.Context) error {
	defer l.publisher.Stop()
	return l.gateway.Serve(ctx, l.clients.PubSub, uuid.NewString(), l.server, l.listener, linkDrain)
}

// close releases what openLink opened.
func (l *link) close() error {
	if l.temporary {
		_ = os.RemoveAll(l.directory) // a directory for temporary files is cleaned up anyway
	}
	return l.clients.Close()
}

// lines say how a drone joins.
func (l *link) lines() []string {
	at := l.listener.Addr().String()
	if tcp, is := l.listener.Addr().(*net.TCPAddr); is && tcp.IP.IsUnspecified() {
		at = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	file := func(name string) string { return filepath.Join(l.directory, name) }
	return []string{
		fmt.Sprintf("Drones connect to %s, by gRPC or WebSocket. This run has an authority of its own:", at),
		"  " + file("ca.crt") + " is what they trust, and " + file("ca.key") + " issues more",
		fmt.Sprintf("  %s and .key are the certificate of %s (its name is the URI drone:%[2]s)", file(demoDrone+".crt"), demoDrone),
	}
}
