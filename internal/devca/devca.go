package devca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// CA issues certificates of servers on this machine and of clients.
type CA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         func() time.Time
}

// lifetime is how long everything is valid.
const lifetime = 30 * 24 * time.Hour

// New makes an authority. now is its clock.
func New(now func() time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &CA{key: key, now: now}
	template := ca.template("DroneFleet development CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	ca.certificate, err = x509.ParseCertificate(der)
	return ca, err
}

func (ca *CA) template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // rand.Reader never fails
	begin := ca.now().Add(-time.Hour)                                        // clocks differ
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: begin, NotAfter: begin.Add(lifetime)}
}

// Roots holds the authority's certificate.
func (ca *CA) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

// Server issues a certificate of a server on this machine.
func (ca *CA) Server() (tls.Certificate, error) {
	template := ca.template("localhost")
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return ca.issue(template)
}

// Client issues a certificate of a client that its URI names.
func (ca *CA) Client(uri string) (tls.Certificate, error) {
	template := ca.template("client")
	name, err := url.Parse(uri)
	if err != nil {
		return tls.Certificate{}, err
	}
	template.URIs, template.ExtKeyUsage = []*url.URL{name}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return ca.issue(template)
}

func (ca *CA) issue(template *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, key.Public(), ca.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Write writes the authority as dir/ca.crt and dir/ca.key.
func (ca *CA) Write(dir string) error {
	return Write(dir, "ca", tls.Certificate{Certificate: [][]byte{ca.certificate.Raw}, PrivateKey: ca.key})
}

// Write writes a certificate as dir/name.crt and its key as dir/name.key.
func Write(dir, name string, c tls.Certificate) error {
	if err := write(dir, name+".crt", "CERTIFICATE", c.Certificate[0], 0o644); err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return fmt.Errorf("key of %s: %w", name, err)
	}
	return write(dir, name+".key", "PRIVATE KEY", key, 0o600)
}

func write(dir, name, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
