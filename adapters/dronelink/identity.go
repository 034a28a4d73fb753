package dronelink

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// bearer is the token of an authorization header; empty for none.
func bearer(header string) string {
	if scheme, token, found := strings.Cut(header, " "); found && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}

// CertificateRule says where a client's certificate names its drone: a URI or a DNS name with
// {drone} in the place of its id, such as "uri:spiffe://example.org/drone/{drone}" or
// "dns:{drone}.drones.example.org".
type CertificateRule struct {
	kind           string // uri or dns
	before, behind string
}

// DroneMark stands for the drone's id in the text of a CertificateRule.
const DroneMark = "{drone}"

// ParseCertificateRule reads a rule.
func ParseCertificateRule(text string) (CertificateRule, error) {
	kind, pattern, _ := strings.Cut(text, ":")
	before, behind, found := strings.Cut(pattern, DroneMark)
	if kind != "uri" && kind != "dns" || !found || strings.Contains(behind, DroneMark) || before+behind == "" {
		return CertificateRule{}, fmt.Errorf(`%q is not a rule; give one such as "uri:spiffe://example.org/drone/{drone}" or "dns:{drone}.drones.example.org"`, text)
	}
	return CertificateRule{kind, before, behind}, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *CertificateRule) UnmarshalText(text []byte) (err error) {
	*r, err = ParseCertificateRule(string(text))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (r CertificateRule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String is the rule as it was given.
func (r CertificateRule) String() string {
	if r.kind == "" {
		return ""
	}
	return r.kind + ":" + r.before + DroneMark + r.behind
}

// drone is the drone that a certificate names.
func (r CertificateRule) drone(c *x509.Certificate) (domain.DroneID, error) {
	names := c.DNSNames
	if r.kind == "uri" {
		names = nil
		for _, u := range c.URIs {
			names = append(names, u.String())
		}
	}
	var found []string
	for _, name := range names {
		if id, ok := r.match(name); ok {
			found = append(found, id)
		}
	}
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("the certificate has no name like %s, but %q; issue one with the drone's id in that place", r, names)
	case len(found) > 1:
		return "", fmt.Errorf("the certificate names the drones %q; issue one for each drone", found)
	}
	if err := domain.CheckID(found[0]); err != nil {
		return "", fmt.Errorf("the certificate names the drone %q, which %s", found[0], err)
	}
	return domain.DroneID(found[0]), nil
}

// match returns what stands in the place of the drone's id.
func (r CertificateRule) match(name string) (id string, ok bool) {
	rest, begins := strings.CutPrefix(name, r.before)
	id, ends := strings.CutSuffix(rest, r.behind)
	if !begins || !ends || id == "" {
		return "", false
	}
	if r.kind == "dns" {
		return id, !strings.ContainsAny(id, ".*")
	}
	id, err := url.PathUnescape(id)
	return id, err == nil && !strings.ContainsAny(id, "/?#")
}

// Certificates authenticates connections by the client's certificate.
type Certificates struct {
	Roots *x509.CertPool
	Rule  CertificateRule
}

// Authenticate returns the drone of the client's certificate. The error is a *Refusal.
func (a Certificates) Authenticate(c Credentials, now time.Time) (Identity, error) {
	if c.TLS == nil || len(c.TLS.State.PeerCertificates) == 0 {
		return Identity{}, unauthenticated("the connection shows no certificate; connect with the drone's")
	}
	chain := c.TLS.State.PeerCertificates
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: a.Roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return Identity{}, unauthenticated("the certificate is not valid: " + err.Error() + "; connect with one that the gateway's --client-ca has issued")
	}
	drone, err := a.Rule.drone(chain[0])
	if err != nil {
		return Identity{}, unauthenticated(err.Error())
	}
	return Identity{Drone: drone, Method: "certificate", Until: chain[0].NotAfter}, nil
}

func unauthenticated(text string) *Refusal {
	return &Refusal{Reason: Unauthenticated, Text: text, Final: true}
}
